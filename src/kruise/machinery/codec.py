"""JSON in and out: the only module that knows msgspec.

Objects are *slim*: a struct names the fields we read, everything else in the JSON is skipped while decoding. That is
five times less memory than dicts, and it is safe because no struct is ever written back whole: changes go out as
patches. Structs are frozen, so what a store hands out cannot be changed by a reader.

All structs are untracked by the garbage collector (`gc=False`): decoded JSON is a tree and can hold no cycle, and a
full collection over thousands of tracked pods would stall the event loop. Sequences are tuples for the same reason.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar, cast, dataclass_transform, get_args

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

__all__ = [
    "UNSET",
    "DecodeError",
    "Deferred",
    "Raw",
    "Struct",
    "UnsetType",
    "canonical",
    "convert",
    "decode",
    "decoder",
    "encode",
    "evolve",
    "exact_fields",
    "exchange",
    "field",
    "is_struct",
    "struct_fields",
    "to_builtins",
]

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel", gc=False):
    """Base of every decoded object: immutable, camelCase on the wire, unknown fields skipped, defaults not written."""


class DecodeError(ValueError):
    """The bytes are no JSON, or not of the shape that was asked for; the text names the place in the document."""


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(data: bytes | str | Raw, kind: type[T]) -> T:
    """Decode JSON into `kind`.

    Go writes `null` for empty lists and maps that lack `omitempty`. Slim structs do not repeat that in their types:
    a document with such nulls takes a second, slower way in which they count as absent.
    """
    try:
        result: T = _decoder(cast(Any, kind)).decode(data)
        return result
    except msgspec.ValidationError as error:
        try:
            return _without_nulls(msgspec.json.decode(data), kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            # Not only of another shape: beyond the place where the first pass gave up it may be no JSON at all.
            raise DecodeError(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(str(error) or "JSON is nested too deeply") from error


def decoder(kind: type[T]) -> Callable[[bytes | str | Raw], T]:
    """`decode` with the type bound, for hot paths."""
    fast = _decoder(cast(Any, kind)).decode

    def run(data: bytes | str | Raw) -> T:
        try:
            return cast(T, fast(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return decode(data, kind)

    return run


@functools.cache
def _type_info(kind: Any) -> msgspec.inspect.Type:
    # Kept: each time it is worked out, it leaves hundreds of objects in cycles behind.
    return msgspec.inspect.type_info(kind)


def _without_nulls(document: Any, kind: type[T]) -> T:
    """Read plain values into `kind` as if no null stood in them, except in raw parts: there a null is content."""
    pruned = _pruned(document, _type_info(cast(Any, kind)))
    result: T = _decoder(cast(Any, kind)).decode(_encoder.encode(pruned))
    return result


def _pruned(value: Any, kind: msgspec.inspect.Type | None) -> Any:
    if isinstance(kind, msgspec.inspect.RawType):
        return value
    if isinstance(kind, msgspec.inspect.UnionType):
        inner = [part for part in kind.types if not isinstance(part, msgspec.inspect.NoneType)]
        kind = inner[0] if len(inner) == 1 else None
    if isinstance(value, dict):
        fields: dict[str, msgspec.inspect.Type] = {}
        if isinstance(kind, msgspec.inspect.StructType):
            fields = {field.encode_name: field.type for field in kind.fields}
        rest = kind.value_type if isinstance(kind, msgspec.inspect.DictType) else None
        return {key: _pruned(item, fields.get(key, rest)) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        sequences = (msgspec.inspect.VarTupleType, msgspec.inspect.CollectionType)
        item_kind = kind.item_type if isinstance(kind, sequences) else None
        return [_pruned(item, item_kind) for item in value if item is not None]
    return value


def convert(value: Any, kind: type[T]) -> T:
    """Turn plain dicts and lists into `kind`, with the same rules as `decode`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        first = error
    try:
        return _without_nulls(value, kind)
    except (msgspec.MsgspecError, TypeError, RecursionError):
        raise DecodeError(str(first)) from first


class Deferred(abc.ABC):
    """A part of a document that is made only when the document is written."""

    __slots__ = ()

    @abc.abstractmethod
    def written(self) -> Any:
        """The JSON value to write."""

    def __deepcopy__(self, memo: Any) -> Deferred:
        return self


def _written(value: Any) -> Any:
    if isinstance(value, Deferred):
        return value.written()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _plainly(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, Raw) else _written(value)


_encoder = msgspec.json.Encoder(enc_hook=_written)
_canonical_encoder = msgspec.json.Encoder(order="sorted", enc_hook=_written)


def encode(value: Any) -> bytes:
    """Compact JSON; mappings keep their order."""
    return _encoder.encode(value)


def canonical(value: Any) -> bytes:
    """Compact JSON with sorted keys: equal values give equal bytes."""
    return _canonical_encoder.encode(value)


def to_builtins(value: Any) -> Any:
    """Plain dicts, lists and strings; times become RFC 3339 text."""
    return msgspec.to_builtins(value, builtin_types=(), str_keys=True, enc_hook=_plainly)


def is_struct(value: object) -> bool:
    return isinstance(value, msgspec.Struct)


def struct_fields(kind: type) -> tuple[tuple[str, str, bool], ...]:
    """Of each field of a struct: its name, its name on the wire, whether it may be absent. Nothing for other types."""
    if not issubclass(kind, msgspec.Struct):
        return ()
    return tuple((item.name, item.encode_name, not item.required) for item in msgspec.structs.fields(kind))


def exact_fields(kind: type) -> frozenset[str]:
    """The fields of a struct whose values are the same on the wire if they are equal. Where anything is allowed, they
    need not be: 1, 1.0 and true are equal, and none of them is the other."""
    return frozenset(item.name for item in msgspec.structs.fields(kind) if _is_exact(item.type, frozenset()))


def _is_exact(kind: Any, within: frozenset[Any]) -> bool:
    if kind is Any or kind is object:
        return False
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind in within or all(_is_exact(item.type, within | {kind}) for item in msgspec.structs.fields(kind))
    return all(_is_exact(part, within) for part in get_args(kind) if not isinstance(part, str))


def evolve(value: T, /, **changes: Any) -> T:
    """A copy of a struct with some fields changed."""
    return cast(T, msgspec.structs.replace(cast(Any, value), **changes))


exchange: Callable[[Any, str, Any], None] = msgspec.structs.force_setattr
"""`exchange(struct, field, equal)` puts an equal value into a field, so that both can be one. The only way to touch a
frozen struct: never with a value that a reader could tell from the one that was there."""


# Kept here so that type checkers see what JSON can hold without every module spelling it out.
Json = Mapping[str, Any]
Timestamp = datetime
