"""From a path to what it is about: the grammar of `/api` and `/apis`, as pure functions."""

from __future__ import annotations

import dataclasses
from typing import Final
from urllib.parse import parse_qsl, unquote

from kruise.local.apicore import errors
from kruise.local.apicore.errors import StatusError
from kruise.local.apicore.kinds import KindDescription, Registry
from kruise.local.apicore.listing import parse_bool
from kruise.local.apicore.serving import UnknownPathError
from kruise.machinery.client.requests import Query, Verb

# A namespace is the only object whose subresources could be taken for resources inside of it.
_NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
_LIST_METHODS: Final = {"POST": Verb.CREATE, "DELETE": Verb.DELETE_COLLECTION}
_OBJECT_METHODS: Final = {"GET": Verb.GET, "PUT": Verb.UPDATE, "PATCH": Verb.PATCH, "DELETE": Verb.DELETE}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path below a version: which objects, and what of them."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """What follows a subresource: only `proxy` takes any."""
    watch: bool = False
    """An old path with `/watch/` in it."""


def parse_query(text: str) -> Query:
    return tuple(parse_qsl(text, keep_blank_values=True)) if text else ()


def split(path: str) -> tuple[str, ...]:
    """The segments of a path, decoded. One slash at the end is no difference."""
    segments = path.split("/")[1:]
    if segments and not segments[-1]:
        segments.pop()
    return tuple(unquote(segment) if "%" in segment else segment for segment in segments)


def place_of(segments: tuple[str, ...]) -> Place | None:
    """The place of an object or a list; None for everything above (`/apis/apps/v1`)."""
    if len(segments) >= 3 and segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    elif len(segments) >= 4 and segments[0] == "apis":
        group, version, rest = segments[1], segments[2], segments[3:]
    else:
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and not (len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = (*rest, "", "")[: max(len(rest), 3)]
    return Place(
        group=group,
        version=version,
        plural=plural,
        namespace=namespace,
        name=name,
        subresource=subresource,
        rest=tuple(more),
        watch=watch,
    )


def nothing_at(registry: Registry, group: str) -> StatusError:
    """A path that does not exist: a Status where the group is one of the server's own, else plain text."""
    refused = errors.no_such_resource()
    if not group or any(kind.group == group and not kind.custom for kind in registry):
        return refused
    return UnknownPathError(refused.status)


def verb_of(method: str, place: Place, query: Query, *, custom: bool = False) -> Verb:
    """What is asked for; raises `StatusError` (405, or 400 where a custom kind lacks a name)."""
    if place.watch:
        if method != "GET":
            raise errors.method_not_allowed()
        return Verb.WATCH
    if place.name:
        if method == "POST" and place.subresource:
            return Verb.CREATE
        verb = _OBJECT_METHODS.get(method)
        if verb is Verb.DELETE and place.subresource:
            verb = None
    elif method == "GET":
        asked = next((value for name, value in query if name == "watch"), "false")
        verb = Verb.WATCH if parse_bool(asked) else Verb.LIST
    else:
        verb = _LIST_METHODS.get(method)
    if verb is None:
        if custom and not place.name and method in _OBJECT_METHODS:
            raise errors.bad_request("name must be provided")
        raise errors.method_not_allowed()
    return verb


def check_scope(registry: Registry, kind: KindDescription, place: Place, method: str) -> None:
    """Raises `StatusError` where the kind does not live at such a path."""
    if place.namespace:
        if not kind.namespaced:
            raise nothing_at(registry, kind.group)
    elif kind.namespaced:
        if place.name:
            raise nothing_at(registry, kind.group)
        if method != "GET":
            raise nothing_at(registry, kind.group) if kind.custom else errors.method_not_allowed()
