"""JSON as Go's encoder writes it. Pure."""

from __future__ import annotations

from typing import Any

from kruise.machinery import codec

_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def go_json(value: Any) -> bytes:
    """Sorted and compact."""
    return go_escaped(codec.canonical(value))


def go_escaped(text: bytes) -> bytes:
    # None of these can be in JSON outside of a string, so no parsing is needed.
    for raw, escaped in _ESCAPES:
        text = text.replace(raw, escaped)
    return text
