"""What a list or watch asks for (`ListOptions`), and pages that stay consistent while objects change.

A continue token holds the version of the first page and where the next one begins, in Kubernetes' own encoding. When
that version is compacted the answer is 410 with a new token that goes on at the newest state.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, go_quote
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.storage import CompactedError, Having, Storage, path_of
from kruise.machinery import selectors
from kruise.machinery.client.requests import Query
from kruise.machinery.codec import DecodeError, Struct, decode, encode, field

_INCONSISTENT: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)

_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")


class _Token(Struct):
    version: str = field(name="v", default="")
    resource_version: int = field(name="rv", default=0)
    start: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The query of a list, watch or delete-collection."""

    labels: str = ""
    fields: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None

    @classmethod
    def from_query(cls, query: Query, *, watch: bool = False) -> ListOptions:
        """Raises `StatusError` for values that Kubernetes refuses."""
        values = dict(reversed(query))
        options = cls(
            labels=values.get("labelSelector", ""),
            fields=values.get("fieldSelector", ""),
            limit=_integer(values.get("limit")) or 0,
            continue_token=values.get("continue", ""),
            resource_version=values.get("resourceVersion", ""),
            resource_version_match=values.get("resourceVersionMatch", ""),
            timeout_seconds=_integer(values.get("timeoutSeconds")),
            bookmarks=parse_bool(values.get("allowWatchBookmarks", "false")),
            send_initial_events=(
                parse_bool(values["sendInitialEvents"]) if values.get("sendInitialEvents") is not None else None
            ),
        )
        problems = options._watch_problems() if watch else options._list_problems()
        if problems:
            raise errors.invalid_object("meta.k8s.io", "ListOptions", "", problems)
        return options

    def _list_problems(self) -> list[FieldError]:
        problems: list[FieldError] = []
        name, match = "resourceVersionMatch", self.resource_version_match
        if match:
            if not self.resource_version:
                problems.append(field_errors.forbidden(name, f"{name} is forbidden unless resourceVersion is provided"))
            if self.continue_token:
                problems.append(field_errors.forbidden(name, f"{name} is forbidden when continue is provided"))
            if match not in ("Exact", "NotOlderThan"):
                problems.append(field_errors.not_supported(name, match, ("Exact", "NotOlderThan", "")))
            if match == "Exact" and self.resource_version == "0":
                text = f'{name} "exact" is forbidden for resourceVersion "0"'
                problems.append(field_errors.forbidden(name, text))
        if self.send_initial_events is not None:
            problems.append(field_errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
        return problems

    def _watch_problems(self) -> list[FieldError]:
        problems: list[FieldError] = []
        name, match = "resourceVersionMatch", self.resource_version_match
        if self.send_initial_events is not None and match != "NotOlderThan":
            text = f"sendInitialEvents requires setting {name} to NotOlderThan"
            problems.append(field_errors.forbidden(name, text))
        if match:
            if self.send_initial_events is None:
                text = f"{name} is forbidden for watch unless sendInitialEvents is provided"
                problems.append(field_errors.forbidden(name, text))
            if match != "NotOlderThan":
                problems.append(field_errors.not_supported(name, match, ("NotOlderThan",)))
            if self.continue_token:
                problems.append(field_errors.forbidden(name, f"{name} is forbidden when continue is provided"))
        return problems


def _integer(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.bad_request(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax") from None


def parse_bool(text: str) -> bool:
    """As Kubernetes reads switches in a query: anything but `false` and `0` is true."""
    return text.lower() not in ("false", "0")


def parse_version(text: str, *, watch: bool = False) -> int:
    """The number in a `resourceVersion`; 0 where none is asked for."""
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdecimal()):
        detail = f"strconv.ParseUint: parsing {go_quote(text)}: invalid syntax"
        problem = field_errors.invalid("resourceVersion", text, detail)
        if watch:
            raise errors.plain_failure(str(problem))
        raise errors.bad_request(f"invalid resource version: {problem}")
    return int(text)


class Filter:
    """Which objects of a kind are asked for."""

    __slots__ = ("_fields", "_labels", "having", "matches_all", "namespace")

    def __init__(self, kind: KindDescription, namespace: str, labels: str, fields: str) -> None:
        self.namespace = namespace if kind.namespaced else ""
        self._labels = _label_selector(labels) if labels else None
        checks = tuple(_field_checks(kind, fields)) if fields else ()
        self._fields = tuple((check.read, check.value, equal) for check, equal in checks)
        self.having = next((check for check, equal in checks if equal and check.field in kind.indexed_fields), None)
        self.matches_all = self._labels is None and not self._fields

    def matches(self, obj: Json) -> bool:
        """Whether an object of the right namespace is selected."""
        if self.matches_all:
            return True
        if self._labels is not None and not self._labels.matches(obj["metadata"].get("labels") or {}):
            return False
        # Tens of thousands of events are looked through for those of one pod: `all` would take half as long again.
        for read, value, equal in self._fields:  # noqa: SIM110
            if (read(obj) == value) is not equal:
                return False
        return True


def _label_selector(text: str) -> selectors.Selector:
    try:
        return selectors.parse(text)
    except selectors.SelectorError as error:
        raise errors.bad_request(str(error)) from error


def _field_checks(kind: KindDescription, text: str) -> Iterator[tuple[Having, bool]]:
    """Of each requirement: the value of the field, and whether it must have it or must not."""
    try:
        selector = selectors.parse_fields(text)
    except selectors.SelectorError as error:
        raise errors.bad_request(str(error)) from error
    for requirement in selector.requirements:
        read = kind.reader(requirement.field)
        if read is not None:
            yield Having(requirement.field, read, requirement.value), requirement.equal
        elif kind.custom or kind.selectable_fields:
            raise errors.bad_request(f"field label not supported: {requirement.field}")
        else:
            raise errors.bad_request(
                f"{go_quote(requirement.field)} is not a known field selector: "
                'only "metadata.name", "metadata.namespace"'
            )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    items: list[Json]
    version: int
    continue_token: str = ""
    remaining: int | None = None


def list_page(storage: Storage, kind: KindDescription, selected: Filter, options: ListOptions) -> Page:
    """One page, in the stored version of the kind."""
    version, start = _position(storage, options)
    at = version or storage.version
    objects = storage.scan(kind.group_resource, selected.namespace, start, at, having=selected.having)
    matching = ((key, obj) for key, obj in objects if selected.matches(obj))
    try:
        if not options.limit:
            return Page(items=[obj for _, obj in matching], version=at)
        taken = list(itertools.islice(matching, options.limit))
        rest = next(matching, None)
        remaining = 1 + _length(matching) if rest is not None and selected.matches_all else None
    except CompactedError as error:
        if not options.continue_token:
            raise errors.expired("The resourceVersion for the provided list is too old.") from error
        refusal = errors.expired(_INCONSISTENT)
        refusal.status["metadata"] = {"continue": _encode_token(-1, start)}
        raise refusal from error
    token = "" if rest is None else _encode_token(at, path_of(taken[-1][0]) + "\0")
    return Page(items=[obj for _, obj in taken], version=at, continue_token=token, remaining=remaining)


def _length(items: Iterable[object]) -> int:
    return sum(1 for _ in items)


def _position(storage: Storage, options: ListOptions) -> tuple[int, str]:
    """The exact version to list at (0: the newest) and the path to begin with."""
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        return _decode_token(options.continue_token)
    asked = parse_version(options.resource_version)
    if asked > storage.version:
        raise errors.version_too_large(asked, storage.version)
    exact = options.resource_version_match == "Exact" or (not options.resource_version_match and options.limit > 0)
    return (asked if exact else 0), ""


def _encode_token(version: int, start: str) -> str:
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": start}
    return base64.urlsafe_b64encode(encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> tuple[int, str]:
    def refused(detail: str) -> errors.StatusError:
        return errors.bad_request(f"invalid continue token: continue key is not valid{detail}")

    strange = _NOT_BASE64.search(text)
    if strange or len(text) % 4 == 1:
        raise refused(f": illegal base64 data at input byte {strange.start() if strange else len(text) - 1}")
    try:
        token = decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), _Token)
    except DecodeError as error:
        raise refused(f": {error}") from error
    if token.version != "meta.k8s.io/v1":
        raise refused(f": server does not recognize this encoded version {token.version}")
    if token.resource_version == 0:
        raise refused(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not token.start:
        raise refused(": encoded start key empty (version meta.k8s.io/v1)")
    return max(token.resource_version, 0), token.start
