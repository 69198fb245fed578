"""Answers of the API server to typed objects: one decoder per struct, made once, one pass over the bytes."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from kruise.api.meta import Object, ObjectMeta, PartialObject
from kruise.api.resource import Resource
from kruise.machinery.client.errors import BadAnswerError, Status, StatusDetails, from_status
from kruise.machinery.client.requests import Request
from kruise.machinery.codec import DecodeError, Raw, Struct, decode, decoder, field

T = TypeVar("T", bound=Object)

_EVENT_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})
_SNIPPET = 200


class WatchEvent(Struct, Generic[T]):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK. Of a bookmark's object only the resource version counts."""

    type: str
    object: T


@dataclasses.dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    items: tuple[T, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    """How many items follow; None where the server does not say."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """`object` is there when the server still holds it (graceful deletion, finalizers) or showed it a last time."""

    object: T | None
    uid: str


class ScaleSpec(Struct):
    replicas: int = 0


class ScaleStatus(Struct):
    replicas: int = 0
    selector: str = ""


class Scale(Struct):
    """`autoscaling/v1 Scale`: what the scale subresource of any workload answers."""

    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()


class _ListMeta(Struct):
    resource_version: str = ""
    continue_token: str = field(default="", name="continue")
    remaining_item_count: int | None = None


class _Page(Struct, Generic[T]):
    kind: str = ""
    metadata: _ListMeta = _ListMeta()
    items: tuple[T, ...] = ()


class _RawPage(Struct):
    kind: str = ""
    metadata: _ListMeta = _ListMeta()
    items: tuple[Raw, ...] = ()


class _ErrorEvent(Struct):
    object: Status


class _Envelope(Struct):
    kind: str = ""
    details: StatusDetails = StatusDetails()


def read_object(resource: Resource[T], body: bytes, request: Request, *, any_kind: bool = False) -> T:
    """The object in an answer. `any_kind` is for subresources that answer with a kind of their own."""
    kind = struct_of(resource)
    try:
        found = _object_decoder(kind)(body)
    except DecodeError as error:
        raise _no_answer(resource.kind, body, request, error) from error
    told = getattr(found, "kind", "")
    if told and told != resource.kind and not any_kind:
        raise BadAnswerError(f"{request}: the server answered with a {told} where a {resource.kind} was expected")
    return cast(T, found)


def read_as(kind: type[T], body: bytes, request: Request) -> T:
    """The answer as a struct that belongs to no resource."""
    try:
        return decode(body, kind)
    except DecodeError as error:
        raise _no_answer(kind.__name__, body, request, error) from error


def read_page(resource: Resource[T], body: bytes, request: Request) -> ListPage[T]:
    kind = struct_of(resource)
    page: Any
    try:
        if _holds_raw(kind):
            page, items = _page_of_copies(kind, body)
        else:
            page = _page_decoder(kind)(body)
            items = page.items
    except DecodeError as error:
        raise _no_answer(f"{resource.kind}List", body, request, _culprit(kind, body) or error) from error
    _check_list_kind(resource, page.kind, request)
    if hasattr(kind, "kind"):
        for item in items:
            if item.kind != resource.kind and item.kind:
                raise BadAnswerError(
                    f"{request}: the list holds a {item.kind} ({item.metadata.name}) among {resource.kind} objects"
                )
    meta = page.metadata
    return ListPage(items, meta.resource_version, meta.continue_token, meta.remaining_item_count)


def read_deleted(resource: Resource[T], body: bytes, request: Request) -> Deleted[T]:
    """A delete answers with the object, or with a Status that names its uid."""
    try:
        envelope = decode(body, _Envelope)
    except DecodeError as error:
        raise _no_answer(resource.kind, body, request, error) from error
    if envelope.kind == "Status":
        return Deleted(None, envelope.details.uid)
    found = read_object(resource, body, request)
    return Deleted(found, found.metadata.uid)


def event_reader(resource: Resource[T]) -> Callable[[bytes], WatchEvent[T]]:
    """A function from lines of a watch to events. ERROR events raise the typed error."""
    kind = struct_of(resource)
    fast, wanted = _event_decoder(kind), resource.kind
    if not hasattr(kind, "kind"):
        raise TypeError(f"{kind.__name__} has no field `kind`: events of another kind could not be told apart")

    def read(line: bytes) -> WatchEvent[T]:
        try:
            event = fast(line)
        except DecodeError as error:
            return cast(WatchEvent[T], _unusual_event(resource, line, error))
        told = event.object.kind
        if event.type in _EVENT_TYPES and (told == wanted or not told):
            return cast(WatchEvent[T], event)
        return cast(WatchEvent[T], _unusual_event(resource, line, None))

    return read


def _unusual_event(resource: Resource[Any], line: bytes, error: DecodeError | None) -> WatchEvent[PartialObject]:
    try:
        event = decode(line, WatchEvent[PartialObject])
    except DecodeError as broken:
        raise BadAnswerError(f"watch of {resource}: a line is no event ({broken}): {_snippet(line)}") from broken
    if event.type == "ERROR":
        try:
            status = decode(line, _ErrorEvent).object
        except DecodeError as broken:
            raise BadAnswerError(f"watch of {resource}: an ERROR without a status: {_snippet(line)}") from broken
        raise from_status(status)
    told, meta = event.object.kind, event.object.metadata
    what = f"watch of {resource}: {event.type} event of {told or resource.kind} {meta.namespace}/{meta.name}"
    if told and told != resource.kind:
        raise BadAnswerError(f"{what}: a {resource.kind} was expected")
    if event.type == "BOOKMARK":
        return event
    if event.type not in _EVENT_TYPES:
        raise BadAnswerError(f"{what}: {event.type!r} is no type of event")
    raise BadAnswerError(f"{what} cannot be read: {error}")


def struct_of(resource: Resource[Any]) -> Any:
    """The struct that a resource's objects are read into; a resource without one is read for its metadata."""
    return PartialObject if cast(Any, resource.type) is object else resource.type


def _page_of_copies(kind: Any, body: bytes) -> tuple[_RawPage, tuple[Any, ...]]:
    """Raw fields are views into the bytes that they were read from. Each item gets bytes of its own, so that one
    object kept does not keep the whole page."""
    page = decode(body, _RawPage)
    read = _object_decoder(kind)
    return page, tuple(read(bytes(item)) for item in page.items)


def _culprit(kind: Any, body: bytes) -> str:
    """Names the first item of a list that cannot be read."""
    try:
        items = decode(body, _RawPage).items
    except DecodeError:
        return ""
    for number, item in enumerate(items):
        try:
            decode(item, kind)
        except DecodeError as error:
            try:
                meta = decode(item, PartialObject).metadata
            except DecodeError:
                meta = ObjectMeta()
            return f"item {number} ({meta.namespace}/{meta.name}): {error}"
    return ""


def _check_list_kind(resource: Resource[Any], told: str, request: Request) -> None:
    expected = resource.list_kind or f"{resource.kind}List"
    if told in ("", expected) or (not resource.list_kind and told.endswith("List")):
        return
    raise BadAnswerError(f"{request}: the server answered with a {told} where a {expected} was expected")


def _no_answer(expected: str, body: bytes, request: Request, why: object) -> BadAnswerError:
    return BadAnswerError(f"{request}: the answer is no {expected} ({why}): {_snippet(body)}")


def _snippet(data: bytes) -> str:
    text = data[:_SNIPPET].decode("utf-8", "replace").strip()
    return text if len(data) <= _SNIPPET else f"{text}..."


@functools.cache
def _object_decoder(kind: Any) -> Callable[[bytes], Any]:
    return decoder(kind)


@functools.cache
def _page_decoder(kind: Any) -> Callable[[bytes], Any]:
    return decoder(cast(Any, _Page)[kind])


@functools.cache
def _event_decoder(kind: Any) -> Callable[[bytes], Any]:
    return decoder(cast(Any, WatchEvent)[kind])


@functools.cache
def _holds_raw(kind: Any) -> bool:
    """Whether a struct keeps raw JSON anywhere inside."""
    seen: set[Any] = set()

    def search(annotation: Any) -> bool:
        if annotation is Raw:
            return True
        if annotation in seen:
            return False
        seen.add(annotation)  # a struct may contain itself
        if isinstance(annotation, type) and issubclass(annotation, Struct):
            return any(search(hint) for hint in typing.get_type_hints(annotation).values())
        return any(search(part) for part in typing.get_args(annotation) if part is not Ellipsis)

    return search(kind)
