"""The scale subresource of custom kinds: which fields hold the size is said by the definition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import ViewSubresource
from kruise.local.crds.numbers import go_value

_MAX = 2**31 - 1
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_GO_TYPES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class _AccessError(ValueError):
    pass


def _nested(obj: Json, path: str, kind: type) -> Any:
    """The value at a path of plain fields; None where there is none."""
    value: Any = obj
    names = path.removeprefix(".").split(".")
    for position, name in enumerate(names):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _wrong(names[: position + 1], value, "map[string]interface{}")
        if name not in value:
            return None
        value = value[name]
    if type(value) is not kind:
        raise _wrong(names, value, _GO_TYPES[kind])
    return value


def _wrong(names: Sequence[str], value: Any, wanted: str) -> _AccessError:
    found = _GO_TYPES.get(type(value), "<nil>")
    return _AccessError(
        f".{'.'.join(names)} accessor error: {go_value(value)} is of the type {found}, expected {wanted}"
    )


class Scale:
    """How a version's objects are scaled."""

    def __init__(self, definition: Json) -> None:
        self._size = definition["specReplicasPath"]
        self._status = definition["statusReplicasPath"]
        self._selector = definition.get("labelSelectorPath") or ""

    def view(self) -> ViewSubresource:
        return ViewSubresource(read=self._read, write=self._write)

    def _read(self, obj: Json) -> Json:
        try:
            size = _nested(obj, self._size, int)
            status: Json = {"replicas": _nested(obj, self._status, int) or 0}
            selector = _nested(obj, self._selector, str) if self._selector else ""
        except _AccessError as error:
            raise errors.plain_failure(str(error)) from error
        if size is None:
            text = (
                f"Internal error occurred: the spec replicas field {field_errors.go_quote(self._size)} does not exist"
            )
            details = {"causes": [{"message": text.removeprefix("Internal error occurred: ")}]}
            raise errors.failure(500, "InternalError", text, details)
        if selector:
            status["selector"] = selector
        about = obj["metadata"]
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {name: about[name] for name in _KEPT if name in about},
            "spec": {"replicas": size} if size else {},
            "status": status,
        }

    def _write(self, obj: Json, scale: Json) -> Json:
        about = {**obj["metadata"]}
        for name in ("uid", "resourceVersion"):
            given = (scale.get("metadata") or {}).get(name)
            if given:
                about[name] = given
        size = (scale.get("spec") or {}).get("replicas") or 0
        if isinstance(size, bool) or not isinstance(size, int):
            raise errors.bad_request(
                'Scale in version "v1" cannot be handled as a Scale: spec.replicas must be a number'
            )
        names = self._size.removeprefix(".").split(".")
        return _with(({**obj, "metadata": about}), names, size)

    def problems(self, obj: Json, *, spec: bool = True) -> list[FieldError]:
        """What is wrong with the sizes in an object; after a write of the status only those in there."""
        found: list[FieldError] = []
        paths = ((self._size, int),) if spec else ()
        for path, kind in (*paths, (self._status, int)):
            found.extend(self._size_problems(obj, path, kind))
        if self._selector:
            try:
                _nested(obj, self._selector, str)
            except _AccessError as error:
                found.append(field_errors.invalid(self._selector, "", str(error)))
        return found

    def _size_problems(self, obj: Json, path: str, kind: type) -> list[FieldError]:
        try:
            size = _nested(obj, path, kind) or 0
        except _AccessError as error:
            return [field_errors.invalid(path, 0, str(error))]
        if size < 0:
            return [field_errors.invalid(path, size, "should be a non-negative integer")]
        if size > _MAX:
            return [field_errors.invalid(path, size, f"should be less than or equal to {_MAX}")]
        return []


def _with(obj: Json, names: Sequence[str], value: Any) -> Json:
    """The object with a value at a path."""
    first, *rest = names
    inner = obj.get(first)
    return {**obj, first: _with(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}
