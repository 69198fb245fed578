"""`fieldValidation`: what a write says that the server would drop, refused or shown as warnings.

Of a patch only what it brings in is looked at: what is stored was looked at when it came.
"""

from __future__ import annotations

from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import go_quote
from kruise.local.apicore import errors, warnings
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.kinds import KindDescription
from kruise.local.openapi.fields import duplicate_fields, unknown_fields
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import DecodeError, decode

_MODES: Final = ("", "Ignore", "Strict", "Warn")
_OPTIONS: Final = {Verb.CREATE: "CreateOptions", Verb.UPDATE: "UpdateOptions", Verb.PATCH: "PatchOptions"}


def check_fields(
    kind: KindDescription,
    version: str,
    verb: Verb,
    content_type: str,
    body: bytes,
    mode: str,
) -> None:
    """Raises `StatusError` where the mode is strict (or unknown), else gives warnings."""
    if mode not in _MODES:
        problem = field_errors.not_supported("fieldValidation", mode, _MODES)
        raise errors.invalid_object("meta.k8s.io", _OPTIONS[verb], "", [problem])
    if mode == "Ignore":
        return
    brought = _brought(verb, content_type, body)
    if brought is None:
        return
    unknown = [f"unknown field {go_quote(path)}" for path in unknown_fields(kind, version, brought)]
    doubled = [f"duplicate field {go_quote(path)}" for path in duplicate_fields(body)]
    complaints = [*doubled, *unknown] if verb is Verb.PATCH else [*unknown, *doubled]
    if not complaints:
        return
    if mode != "Strict":
        for complaint in complaints:
            warnings.warn(complaint)
        return
    raise _refusal(kind, version, verb, brought, "strict decoding error: " + ", ".join(complaints))


def _refusal(kind: KindDescription, version: str, verb: Verb, brought: Json, text: str) -> StatusError:
    if verb is Verb.PATCH:
        return errors.invalid_object("", "", "", [field_errors.invalid("patch", _go_map(brought), text)])
    return errors.bad_request(f"{kind.kind} in version {go_quote(version)} cannot be handled as a {kind.kind}: {text}")


def _go_map(value: Any) -> str:
    """As Go prints values without a type."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{_go_map(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go_map(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _brought(verb: Verb, content_type: str, body: bytes) -> Json | None:
    """The fields that a request writes, as an object; None where nothing can be said (the core then says why)."""
    media_type = content_type.partition(";")[0].strip()
    if verb is Verb.PATCH and media_type == PatchType.APPLY:
        return None
    try:
        sent: Any = decode(body, object)
    except DecodeError:
        return None
    if verb is Verb.PATCH and media_type == PatchType.JSON:
        return _of_operations(sent)
    if not isinstance(sent, dict):
        return None
    return _without_directives(sent) if verb is Verb.PATCH else sent


def _without_directives(value: Any) -> Any:
    """A merge patch as an object: removals and `$...` directives are no fields."""
    if isinstance(value, dict):
        return {
            name: _without_directives(item)
            for name, item in value.items()
            if item is not None and not name.startswith("$")
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value]
    return value


def _of_operations(operations: Any) -> Json | None:
    """What the operations of a JSON patch put somewhere, as one object. Its lists hold only what is put there."""
    if not isinstance(operations, list):
        return None
    brought: Json = {}
    for operation in operations:
        if not isinstance(operation, dict) or operation.get("op") not in ("add", "replace"):
            continue
        path = operation.get("path")
        if not isinstance(path, str) or not path.startswith("/"):
            continue
        value: Any = operation.get("value")
        for segment in reversed(path[1:].split("/")):
            name = segment.replace("~1", "/").replace("~0", "~")
            value = [value] if name == "-" or name.isdecimal() else {name: value}
        if isinstance(value, dict):
            brought = _merged(brought, value)
    return brought


def _merged(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and isinstance(second, dict):
        return {**first, **{name: _merged(first.get(name), item) for name, item in second.items()}}
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    return second
