"""Protocol buffers as they come over the wire: a message read into its fields. Pure; knows no message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MASK: Final = (1 << 64) - 1


class WireError(ValueError):
    """The bytes are no message."""


def pairs(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields in their order: the number of each, and a whole number or bytes. Raises `WireError`."""
    at, end = 0, len(raw)
    while at < end:
        key, at = varint(raw, at)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = varint(raw, at)
            yield field, value
            continue
        if kind == BYTES:
            size, at = varint(raw, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise WireError(f"field {field} has the unknown wire type {kind}")
        if at + size > end:
            raise WireError(f"field {field} is cut off: unexpected end of data")
        yield field, raw[at : at + size]
        at += size


def signed(value: int) -> int:
    """Negative numbers come as very large ones."""
    value &= MASK
    return value - (1 << 64) if value >> 63 else value


def varint(raw: bytes, at: int) -> tuple[int, int]:
    """The whole number that stands at a place, and the place behind it."""
    result = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise WireError("a number does not end: unexpected end of data")
        byte = raw[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & MASK, at
        shift += 7
