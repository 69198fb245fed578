"""Checks that the validation of several native kinds shares. Each yields what is wrong."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final

from kruise.api.core import formats, schema
from kruise.api.core.field_errors import FieldError, Path, invalid, not_supported
from kruise.api.core.validation import common, validate_pod_template
from kruise.api.core.validation.common import Errors, Struct, non_negative
from kruise.machinery.selectors import SelectorError, from_label_selector

IMMUTABLE: Final = "field is immutable"
SPEC: Final = Path("spec")
STATUS: Final = Path("status")
METADATA: Final = Path("metadata")

_PERCENT: Final = re.compile("[0-9]+%")
_PERCENT_WORDS: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)

Check = Callable[[Struct, Struct | None], Errors]


def check(function: Check) -> Callable[[Any, Any], Sequence[FieldError]]:
    """A generator of errors as a description wants it."""

    def validate(new: Any, old: Any) -> Sequence[FieldError]:
        return tuple(function(new, old))

    return validate


def check_changes(function: Check) -> Callable[[Any, Any], Sequence[FieldError]]:
    """The same for kinds that are looked at by their spec alone: one that did not change is not looked at again."""
    validate = check(function)

    def validate_changes(new: Any, old: Any) -> Sequence[FieldError]:
        return () if old is not None and new["spec"] == old["spec"] else validate(new, old)

    return validate_changes


def immutable(path: str, new: Any, old: Any) -> Errors:
    if new != old:
        yield invalid(path, new, IMMUTABLE)


def immutable_fields(path: Path, new: Struct, old: Struct, names: Iterable[str]) -> Errors:
    for name in names:
        yield from immutable(path.child(name), new.get(name), old.get(name))


def non_negative_fields(path: Path, holder: Struct, names: Iterable[str]) -> Errors:
    for name in names:
        yield from non_negative(path.child(name), holder.get(name) or 0)


def one_of(path: str, value: Any, supported: Collection[str]) -> Errors:
    if value is not None and value not in supported:
        yield not_supported(path, value, supported)


def int_or_percent(path: str, value: int | str) -> Errors:
    if isinstance(value, int):
        yield from non_negative(path, value)
    elif not _PERCENT.fullmatch(value):
        yield invalid(path, value, _PERCENT_WORDS)


def at_most_all(path: str, value: int | str) -> Errors:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def amount(value: int | str) -> int:
    """An int, or the number before the percent sign."""
    if isinstance(value, int):
        return value
    return int(value[:-1]) if _PERCENT.fullmatch(value) else 0


def matches(selector: Struct | None, labels: Struct | None) -> bool | None:
    """Whether a selector matches; None where it is not well formed. No selector matches nothing."""
    if selector is None:
        return False
    try:
        return from_label_selector(dict(selector)).matches(dict(labels or {}))
    except SelectorError:
        return None


def is_empty_selector(selector: Struct | None) -> bool:
    return selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions")


def template(path: Path, given: Any, restart_policies: tuple[str, ...] = ("Always",), **more: Any) -> Errors:
    yield from validate_pod_template(given, path, restart_policies=restart_policies, **more)


def dns_label(path: str, value: str) -> Errors:
    yield from common.complaints(path, value, formats.dns_label(value))


def endpoint_address(path: str, value: str) -> Errors:
    """What an address of an endpoint may not be; texts that are no addresses are someone else's business."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return
    if address.is_unspecified:
        yield invalid(path, value, f"may not be unspecified ({value})")
    if address.is_loopback:
        yield invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")


def shown(value: Any, wire_type: str) -> Any:
    """A value whose Go type has no JSON names, as errors quote it."""
    return common.as_go_shows(value, wire_type) if schema.is_struct(wire_type) else value
