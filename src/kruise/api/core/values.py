"""Plain JSON values read as a typed Go client reads them, and written as it writes them.

Reading drops unknown fields (a stray `$patch` among them), takes null for absent and refuses wrong types. Writing keeps
what Go keeps: structs and pointers even when they are empty, everything else only when it is not zero or the field has
no `omitempty`. Quantities and times come out in their canonical form, fields in struct order, map keys sorted. Two
templates that mean the same to a typed client therefore become equal values, whoever sent them (IPU-11).

Defaulting happens in the same pass, because a default depends on the struct it is in and on nothing else; what looks
further (requests from limits, host ports) is in `defaults`.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kruise.api.core import quantities, schema
from kruise.api.core.field_errors import TemplateTypeError, wrong_type
from kruise.api.core.go_json import go_escaped, go_json
from kruise.machinery import codec, times

Value = dict[str, Any]
FillIn = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def _nothing_to_fill_in(struct: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How values are written."""

    null_times: bool = True
    """Write `creationTimestamp: null` as Go clients did before Kubernetes 1.34. Revision hashes depend on it."""
    fill_in: FillIn = _nothing_to_fill_in
    """Adds defaults to a struct before it is read."""
    round_quantities: bool = False
    """Round resource quantities up to thousandths, which is part of defaulting."""
    null_empty_lists: bool = False
    """Write null for an empty list that has to be written, as objects come back from the API server."""


CLIENT_FORM = Form()
SERVER_FORM = Form(null_times=False, null_empty_lists=True)


def normalise(value: Any, struct: str, *, path: str = "", form: Form = CLIENT_FORM) -> Value:
    """The canonical form of a struct of the table. Raises TemplateTypeError for a value of the wrong type."""
    try:
        return _struct({} if value is None else value, struct, form)
    except TemplateTypeError as error:
        raise (_further_out(error, path) if path else error) from None


def normalise_template(template: Any, *, path: str = "") -> Value:
    return normalise(template, schema.POD_TEMPLATE_SPEC, path=path)


def canonical_template_json(template: Any) -> bytes:
    """The canonical template as sorted, compact JSON with Go's escapes (IPU-10)."""
    return go_json(normalise_template(template))


def struct_order_json(value: Any, struct: str, *, form: Form = CLIENT_FORM) -> bytes:
    """JSON of a typed value with fields in struct order, as Go marshals the struct itself (IPU-65)."""
    return go_escaped(codec.encode(normalise(value, struct, form=form)))


def equal(left: Any, right: Any, struct: str) -> bool:
    """Whether two values mean the same: quantities by amount, empty lists and maps like absent ones."""
    left, right = normalise(left, struct), normalise(right, struct)
    return left == right or _equal(left, right, struct)


def equal_templates(left: Any, right: Any) -> bool:
    return equal(left, right, schema.POD_TEMPLATE_SPEC)


def ordered(value: Mapping[str, Any], struct: str) -> Value:
    """The same fields in struct order, for structs to which a field was added."""
    return {field.name: value[field.name] for field in schema.struct_type(struct).fields if field.name in value}


# Reading and writing. Converters know no paths: a value of the wrong type is rare, and its place is added to the error
# on its way out, which makes reading several times faster.

Converter = Callable[[Any, Form], Any]


class _Step(NamedTuple):
    """A field of a struct, with everything that reading it needs at hand."""

    name: str
    type: str
    convert: Converter
    pointer: bool
    is_written_unset: bool
    omit_zero: bool


@functools.cache
def _steps(struct: str) -> tuple[_Step, ...]:
    return tuple(
        _Step(
            field.name,
            field.type,
            _converter(field.type),
            field.pointer,
            field.is_written_unset,
            field.omit_zero,
        )
        for field in schema.struct_type(struct).fields
    )


@functools.lru_cache(maxsize=4096)
def _steps_for(struct: str, names: tuple[Any, ...]) -> tuple[_Step, ...]:
    """The fields to look at in a value that has these names, in struct order. Most values have the names of others."""
    kind, steps = schema.struct_type(struct), _steps(struct)
    found = kind.written_unset.union([kind.positions[name] for name in names if name in kind.positions])
    return tuple(steps[position] for position in sorted(found))


def _struct(value: Any, struct: str, form: Form) -> Value:
    if not isinstance(value, dict) and not isinstance(value, Mapping):
        raise _wrong(value, "an object")
    value = form.fill_in(struct, value)
    result: Value = {}
    for name, wire_type, convert, pointer, is_written_unset, omit_zero in _steps_for(struct, (*value,)):
        given = value.get(name)
        if given is None:
            if is_written_unset and (form.null_times or not omit_zero):
                result[name] = None if pointer else _zero(wire_type, form)
            continue
        try:
            written = convert(given, form)
        except TemplateTypeError as error:
            raise _further_out(error, name) from None
        if written or pointer or is_written_unset:
            result[name] = None if written == [] and form.null_empty_lists else written
    return result


def _further_out(error: TemplateTypeError, place: str) -> TemplateTypeError:
    """The error as the holder of the value sees it."""
    inner = error.error.path
    path = place if not inner else f"{place}{inner}" if inner.startswith("[") else f"{place}.{inner}"
    return TemplateTypeError(dataclasses.replace(error.error, path=path))


def _zero(wire_type: str, form: Form) -> Any:
    if schema.is_struct(wire_type):
        return _struct({}, wire_type, form)
    return _ZEROS.get(wire_type)


_ZEROS: Mapping[str, Any] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "int": 0,
    "float": 0,
    "quantity": "0",
    "intorstring": 0,
    "duration": "0s",
}


@functools.cache
def _converter(wire_type: str) -> Converter:
    if wire_type.startswith(schema.LIST):
        return _list(wire_type[2:])
    if wire_type.startswith(schema.MAP):
        return _map(wire_type[2:])
    if schema.is_struct(wire_type):
        return lambda value, form: _struct(value, wire_type, form)
    return _LEAVES[wire_type]


def _list(element: str) -> Converter:
    def convert(value: Any, form: Form) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise _wrong(value, "a list")
        each = _converter(element)
        result: list[Any] = []
        for item in value:
            try:
                result.append(_zero(element, form) if item is None else each(item, form))
            except TemplateTypeError as error:
                raise _further_out(error, f"[{len(result)}]") from None
        return result

    return convert


def _map(element: str) -> Converter:
    def convert(value: Any, form: Form) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _wrong(value, "an object")
        each = _converter(element)
        result: dict[str, Any] = {}
        for key in sorted(value):
            item = value[key]
            try:
                result[key] = _zero(element, form) if item is None else each(item, form)
            except TemplateTypeError as error:
                raise _further_out(error, f"[{key}]") from None
        if form.round_quantities and element == "quantity":
            return {key: quantities.rounded_up_to_milli(amount) for key, amount in result.items()}
        return result

    return convert


def _misfit(value: Any, detail: str) -> TemplateTypeError:
    return TemplateTypeError(wrong_type("", value, detail))


def _wrong(value: Any, wanted: str) -> TemplateTypeError:
    return _misfit(value, f"must be {wanted}, not {_kind(value)}")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "a number"
    return "an object" if isinstance(value, Mapping) else "a list"


def _string(value: Any, form: Form) -> str:
    if not isinstance(value, str):
        raise _wrong(value, "a string")
    return value


def _bool(value: Any, form: Form) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, "a boolean")
    return value


def _integer(bits: int) -> Converter:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def read(value: Any, form: Form) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong(value, "an integer" if isinstance(value, float) else "a number")
        if not low <= value <= high:
            raise _misfit(value, f"must fit into {bits} bits")
        return value

    return read


_read_32_bits = _integer(32)


def _float(value: Any, form: Form) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, "a number")
    return value


def _quantity(value: Any, form: Form) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(value, "a quantity")
    try:
        return _canonical_text(value) if type(value) is str else quantities.canonical(value)
    except ValueError as error:
        raise _misfit(value, str(error)) from error


@functools.lru_cache(maxsize=4096)
def _canonical_text(value: str) -> str:
    # The same few amounts stand in every pod.
    return quantities.canonical(value)


def _int_or_string(value: Any, form: Form) -> int | str:
    return value if isinstance(value, str) else _read_32_bits(value, form)


def _time(value: Any, form: Form) -> str:
    try:
        return times.format_time(times.parse_time(_string(value, form)))
    except ValueError as error:
        raise _misfit(value, str(error)) from error


def _micro_time(value: Any, form: Form) -> str:
    try:
        return times.format_micro_time(times.parse_time(_string(value, form)))
    except ValueError as error:
        raise _misfit(value, str(error)) from error


def _bytes(value: Any, form: Form) -> str:
    try:
        base64.b64decode(_string(value, form), validate=True)
    except binascii.Error as error:
        raise _misfit(value, "must be base64") from error
    return str(value)


def _raw(value: Any, form: Form) -> Any:
    return value


_LEAVES: Mapping[str, Converter] = {
    "string": _string,
    "bool": _bool,
    "int32": _read_32_bits,
    "int64": _integer(64),
    "int": _integer(64),
    "float": _float,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "time": _time,
    "microtime": _micro_time,
    "duration": _string,
    "bytes": _bytes,
    "raw": _raw,
}


# Comparing canonical values


def _equal(left: Any, right: Any, wire_type: str) -> bool:
    if wire_type == "quantity" and left is not None and right is not None:
        return quantities.compare(left, right) == 0
    if wire_type.startswith(schema.LIST):
        left, right = left or (), right or ()
        return len(left) == len(right) and all(
            _equal(one, other, wire_type[2:]) for one, other in zip(left, right, strict=True)
        )
    if wire_type.startswith(schema.MAP):
        left, right = left or {}, right or {}
        return left.keys() == right.keys() and all(_equal(left[key], right[key], wire_type[2:]) for key in left)
    if schema.is_struct(wire_type) and left is not None and right is not None:
        fields = schema.struct_type(wire_type).by_name
        return all(_equal(left.get(name), right.get(name), fields[name].type) for name in left.keys() | right.keys())
    return bool(left == right)
