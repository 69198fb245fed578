"""Protocol buffers on the wire, as far as CRI needs them: numbers, texts, messages, maps of texts. Pure.

Eight calls with a dozen fields each do not need generated code and a library that takes more memory than the rest of
the daemon. A message is read into its fields by number; what is not known is skipped, as the format asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_MASK = (1 << 64) - 1

Fields = dict[int, list[Any]]
"""By number: whole numbers, or bytes."""


class WireError(ValueError):
    """The bytes are no message."""


def _varint(value: int) -> bytes:
    value &= _MASK
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int | bool) -> bytes:
    """Left out where it is 0, as all defaults are."""
    return _varint(field << 3 | VARINT) + _varint(int(value)) if value else b""


def data(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    return data(field, value.encode()) if value else b""


def texts(field: int, values: Iterable[str]) -> bytes:
    return b"".join(data(field, value.encode()) for value in values)


def message(field: int, *parts: bytes) -> bytes:
    return data(field, b"".join(parts))


def mapping(field: int, values: Mapping[str, str]) -> bytes:
    return b"".join(message(field, text(1, key), text(2, value)) for key, value in values.items())


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise WireError("a number does not end")
        byte = raw[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return result & _MASK, at
        shift += 7


def _pairs(raw: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(raw):
        key, at = _read_varint(raw, at)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _read_varint(raw, at)
            yield field, value
            continue
        if kind == BYTES:
            size, at = _read_varint(raw, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise WireError(f"field {field} has the unknown type {kind}")
        if at + size > len(raw):
            raise WireError(f"field {field} is cut off")
        yield field, raw[at : at + size]
        at += size


def fields(raw: bytes) -> Fields:
    """The fields of a message."""
    found: Fields = {}
    for field, value in _pairs(raw):
        found.setdefault(field, []).append(value)
    return found


def get_text(found: Fields, field: int) -> str:
    values = found.get(field)
    return values[-1].decode(errors="replace") if values else ""


def get_texts(found: Fields, field: int) -> tuple[str, ...]:
    return tuple(value.decode(errors="replace") for value in found.get(field, ()))


def get_bytes(found: Fields, field: int) -> bytes:
    values = found.get(field)
    return values[-1] if values else b""


def get_number(found: Fields, field: int) -> int:
    """Negative numbers come as very large ones."""
    values = found.get(field)
    value = int(values[-1]) if values else 0
    return value - (1 << 64) if value >> 63 else value


def get_message(found: Fields, field: int) -> Fields:
    values = found.get(field)
    return fields(values[-1]) if values else {}


def get_messages(found: Fields, field: int) -> list[Fields]:
    return [fields(value) for value in found.get(field, ())]


def get_mapping(found: Fields, field: int) -> dict[str, str]:
    return {get_text(entry, 1): get_text(entry, 2) for entry in get_messages(found, field)}
