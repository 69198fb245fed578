"""Checks that many fields share. Every check yields what is wrong; nothing means that all is well.

Values are in the canonical form of `kruise.api.core.values`: types are right, absent means unset.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kruise.api.core import formats, schema
from kruise.api.core.field_errors import FieldError, Path, forbidden, invalid, not_supported, required, too_long

Struct = Mapping[str, Any]
Errors = Iterator[FieldError]
Check = Callable[[str], list[str]]

NEGATIVE = "must be greater than or equal to 0"
NOT_POSITIVE = "must be greater than zero"
FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
ANNOTATIONS_LIMIT = 256 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What differs between the places where a pod spec is checked, and between clusters."""

    is_pod: bool = False
    """A pod, not a template of one: host ports must be set, image volumes need a reference."""
    allow_privileged: bool = True
    """The API server's --allow-privileged."""


def complaints(path: str, value: Any, found: Iterable[str]) -> Errors:
    for complaint in found:
        yield invalid(path, value, complaint)


def required_and(path: str, value: str, check: Check) -> Errors:
    if not value:
        yield required(path)
    else:
        yield from complaints(path, value, check(value))


def choice(path: str, value: str, supported: Collection[str], *, optional: bool = False) -> Errors:
    """One of some words. Unless it is optional, the empty word is reported as missing."""
    if value in supported:
        return
    if not value and not optional:
        yield required(path)
    else:
        yield not_supported(path, value, supported)


def non_negative(path: str, value: int) -> Errors:
    if value < 0:
        yield invalid(path, value, NEGATIVE)


def positive(path: str, value: int) -> Errors:
    if value <= 0:
        yield invalid(path, value, NOT_POSITIVE)


def file_mode(path: str, value: int | None) -> Errors:
    if value is not None and not 0 <= value <= 0o777:
        yield invalid(path, value, FILE_MODE)


def label_name(path: str, value: str) -> Errors:
    yield from complaints(path, value, formats.qualified_name(value))


def label_set(path: str, given: Mapping[str, str] | None) -> Errors:
    for key, value in (given or {}).items():
        yield from label_name(path, key)
        yield from complaints(path, value, formats.label_value(value))


def annotation_set(path: str, given: Mapping[str, str] | None) -> Errors:
    given = given or {}
    for key in given:
        yield from complaints(path, key, formats.qualified_name(key.lower()))
    if sum(formats.byte_length(key) + formats.byte_length(value) for key, value in given.items()) > ANNOTATIONS_LIMIT:
        yield too_long(path, ANNOTATIONS_LIMIT)


def label_selector(path: Path, selector: Struct | None) -> Errors:
    if selector is None:
        return
    yield from label_set(path.child("matchLabels"), selector.get("matchLabels"))
    for position, expression in enumerate(selector.get("matchExpressions") or ()):
        yield from _selector_requirement(path.child("matchExpressions").at(position), expression)


def _selector_requirement(path: Path, expression: Struct) -> Errors:
    operator, given = expression["operator"], expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not given:
            yield required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if given:
            yield forbidden(path.child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(path.child("operator"), operator, "not a valid selector operator")
    yield from label_name(path.child("key"), expression["key"])
    for position, value in enumerate(given):
        yield from complaints(path.child("values").at(position), value, formats.label_value(value))


def containers_of(spec: Struct, path: Path) -> Iterator[tuple[Path, Struct]]:
    """Every container with its path: init containers first, then regular and ephemeral ones."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for position, container in enumerate(spec.get(kind) or ()):
            yield path.child(kind).at(position), container


def names(given: Sequence[Struct]) -> set[str]:
    return {one["name"] for one in given}


_GO_NAMES = {
    "seLinuxOptions": "SELinuxOptions",
    "gmsaCredentialSpecName": "GMSACredentialSpecName",
    "gmsaCredentialSpec": "GMSACredentialSpec",
}


def as_go_shows(value: Any, wire_type: str) -> Any:
    """A value as the API server quotes it: in its own Go type, which has no JSON names and leaves nothing out."""
    if wire_type.startswith(schema.LIST):
        return [as_go_shows(item, wire_type[2:]) for item in value] if value else None
    if not schema.is_struct(wire_type) or value is None:
        return value
    shown: dict[str, Any] = {}
    for field in schema.struct_type(wire_type).fields:
        name = _GO_NAMES.get(field.name, field.name[:1].upper() + field.name[1:])
        given = value.get(field.name)
        if given is None and field.type == "string" and not field.pointer:
            given = ""
        shown[name] = as_go_shows(given, field.type)
    return shown
