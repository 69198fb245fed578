"""Protocol buffers on the wire, as far as CRI needs them: numbers, texts, messages, maps of texts. Pure.

Eight calls with a dozen fields each do not need generated code and a library that takes more memory than the rest of
the daemon. A message is read into its fields by number; what is not known is skipped, as the format asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kruise.machinery.protobuf import BYTES, MASK, VARINT, pairs, signed

Fields = dict[int, list[Any]]
"""By number: whole numbers, or bytes."""


def _varint(value: int) -> bytes:
    value &= MASK
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


def fields(raw: bytes) -> Fields:
    """The fields of a message."""
    found: Fields = {}
    for field, value in pairs(raw):
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
    values = found.get(field)
    return signed(values[-1]) if values else 0


def get_message(found: Fields, field: int) -> Fields:
    values = found.get(field)
    return fields(values[-1]) if values else {}


def get_messages(found: Fields, field: int) -> list[Fields]:
    return [fields(value) for value in found.get(field, ())]


def get_mapping(found: Fields, field: int) -> dict[str, str]:
    return {get_text(entry, 1): get_text(entry, 2) for entry in get_messages(found, field)}
