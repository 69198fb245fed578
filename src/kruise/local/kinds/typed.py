"""Objects of native kinds, read as the API server reads them into its Go types.

Unknown fields are dropped, defaults filled in, and what Go always writes is written. A value of a wrong type is
refused before anything else looks at the object, with the words of Go's decoder.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import defaults, schema, values
from kruise.api.core.field_errors import FieldError, TemplateTypeError, go_quote
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.kinds.default_values import COMPUTED, VALUES

TEMPLATE = "core.PodTemplateSpec"
_NO_SPEC: Mapping[str, Any] = {}


def _fill_in(struct: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = VALUES.get(struct)
    if wanted is not None:
        fields = schema.struct_type(struct).by_name
        missing = {
            name: default
            for name, default in wanted.items()
            if value.get(name) is None or (not fields[name].pointer and value[name] in ("", 0))
        }
        if missing:
            value = {**value, **missing}
    computed = COMPUTED.get(struct)
    return value if computed is None else computed(value)


FORM = dataclasses.replace(values.SERVER_FORM, fill_in=_fill_in, round_quantities=True)


class Reader:
    """Reads the objects of one kind."""

    def __init__(self, api_version: str, kind: str, template: Sequence[str] = ()) -> None:
        """`template` is the way to the pod template, which has defaults of its own."""
        found = schema.kind_type(api_version, kind)
        if found is None:
            raise ValueError(f"{api_version} {kind} is not among the known types")
        self.struct = found
        self._kind = kind
        self._version = api_version.rpartition("/")[2]
        self._template = tuple(template)

    def read(self, obj: Json) -> Json:
        """The object with its defaults; raises `StatusError` where a value has a wrong type."""
        about = dict(obj["metadata"])
        owners = about.pop("managedFields", None)
        try:
            result = self._read({**obj, "metadata": about})
        except TemplateTypeError as error:
            raise self._unreadable(error.error) from error
        if owners is not None:
            result["metadata"]["managedFields"] = owners
        return result

    def _read(self, obj: Json) -> Json:
        if not self._template:
            return values.normalise(obj, self.struct, form=FORM)
        outside, template = _without(obj, self._template)
        result = values.normalise(outside, self.struct, form=FORM)
        holder = result
        for name in self._template[:-1]:
            holder = holder[name]
        try:
            holder[self._template[-1]] = defaults.stored_template(template)
        except TemplateTypeError as error:
            path = ".".join((*self._template, error.error.path))
            raise TemplateTypeError(dataclasses.replace(error.error, path=path)) from error
        return result

    def empty(self, field: str) -> Any:
        """What Go writes for a field that is a struct and was left alone."""
        return values.normalise({}, schema.struct_type(self.struct).by_name[field].type, form=FORM)

    def _unreadable(self, error: FieldError) -> errors.StatusError:
        return errors.bad_request(
            f"{self._kind} in version {go_quote(self._version)} cannot be handled as a {self._kind}: "
            + _decoder_words(self.struct, error)
        )


def read_pod(obj: Json) -> Json:
    """Pods are read by the pod model, which knows all of their defaults."""
    about = dict(obj["metadata"])
    owners = about.pop("managedFields", None)
    try:
        result = defaults.default_pod({**obj, "metadata": about})
    except TemplateTypeError as error:
        words = _decoder_words(schema.POD, error.error)
        raise errors.bad_request(f'Pod in version "v1" cannot be handled as a Pod: {words}') from error
    if owners is not None:
        result["metadata"]["managedFields"] = owners
    return result


def _without(obj: Mapping[str, Any], path: tuple[str, ...]) -> tuple[Mapping[str, Any], Any]:
    """The object without the value at a path, and that value."""
    name, rest = path[0], path[1:]
    inner = obj.get(name)
    if inner is None or (rest and not isinstance(inner, Mapping)):
        return obj, _NO_SPEC
    if not rest:
        return {key: value for key, value in obj.items() if key != name}, inner
    outside, found = _without(inner, rest)
    return {**obj, name: outside}, found


_GO_KINDS: Mapping[type, str] = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
_GO_TYPES: Mapping[str, str] = {"float": "float64", "bytes": "[]uint8", "time": "string", "microtime": "string"}
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=\r\n]")
_PART = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def _decoder_words(struct: str, error: FieldError) -> str:
    """How Go's decoder says that a value does not fit, as far as that is worth repeating."""
    holder, wire_type, names = struct, struct, []
    for part in _PART.finditer(error.path):
        name = part.group(1)
        if name is None:
            wire_type = wire_type[2:]
            continue
        if not schema.is_struct(wire_type):
            break
        holder = wire_type
        names.append(name)
        wire_type = schema.struct_type(holder).by_name[name].type
    if wire_type == "quantity" and isinstance(error.value, str):
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    if wire_type == "bytes" and isinstance(error.value, str):
        bad = _NOT_BASE64.search(error.value)
        return f"illegal base64 data at input byte {bad.start() if bad else len(error.value) // 4 * 4}"
    found = _GO_KINDS.get(type(error.value), "object")
    if found == "number" and wire_type.startswith("int"):
        found = f"number {error.value}"
    field = f"{holder.rpartition('.')[2]}.{'.'.join(names)}"
    return f"json: cannot unmarshal {found} into Go struct field {field} of type {_go_type(wire_type)}"


def _go_type(wire_type: str) -> str:
    if wire_type.startswith(schema.LIST):
        return f"[]{_go_type(wire_type[2:])}"
    if wire_type.startswith(schema.MAP):
        return f"map[string]{_go_type(wire_type[2:])}"
    if schema.is_struct(wire_type):
        return f"v1.{wire_type.rpartition('.')[2]}"
    return _GO_TYPES.get(wire_type, wire_type)
