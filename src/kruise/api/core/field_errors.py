"""What is wrong with a field, in the words of the Kubernetes API.

A `FieldError` is one cause of an `Invalid` answer: its `type` is the cause's reason, `path` its field, and
`message` its text. Paths are written like the API server writes them: `spec.containers[0].ports[1].name`,
`spec.containers[0].resources.limits[cpu]`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from kruise.machinery import codec

REQUIRED = "FieldValueRequired"
INVALID = "FieldValueInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
DUPLICATE = "FieldValueDuplicate"
FORBIDDEN = "FieldValueForbidden"
NOT_FOUND = "FieldValueNotFound"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
TYPE_INVALID = "FieldValueTypeInvalid"

_WORDS = {
    REQUIRED: "Required value",
    INVALID: "Invalid value",
    NOT_SUPPORTED: "Unsupported value",
    DUPLICATE: "Duplicate value",
    FORBIDDEN: "Forbidden",
    NOT_FOUND: "Not found",
    TOO_LONG: "Too long",
    TOO_MANY: "Too many",
    TYPE_INVALID: "Invalid value",
}
_WITHOUT_VALUE = frozenset({REQUIRED, FORBIDDEN, TOO_LONG})
OMITTED = object()
"""The value of an error that is about more than one value, and shows none."""


class Path(str):
    """Where a field is. A plain string that knows how to go deeper."""

    __slots__ = ()

    def child(self, *names: str) -> Path:
        return Path(".".join((self, *names) if self else names))

    def at(self, position: int) -> Path:
        return Path(f"{self}[{position}]")

    def key(self, name: str) -> Path:
        return Path(f"{self}[{name}]")


@dataclasses.dataclass(frozen=True, slots=True)
class FieldError:
    type: str
    path: str
    value: Any
    detail: str

    @property
    def message(self) -> str:
        """The text without the path, as the causes of an API answer carry it."""
        text = _WORDS[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return codec.encode(value).decode()


_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\v": "\\v",
}


def go_quote(text: str) -> str:
    """The text in quotes, as Go's %q writes it."""
    return '"' + "".join(_quoted(char) for char in text) + '"'


def _quoted(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(REQUIRED, path, "", detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(INVALID, path, value, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    quoted = ", ".join(go_quote(one) for one in supported)
    return FieldError(NOT_SUPPORTED, path, value, f"supported values: {quoted}" if quoted else "")


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(DUPLICATE, path, value, "")


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(FORBIDDEN, path, "", detail)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(NOT_FOUND, path, value, detail)


def too_long(path: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    return FieldError(TOO_LONG, path, "<value omitted>", f"may not be more than {limit} {unit}")


def too_many(path: str, count: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError(TOO_MANY, path, count, f"must have at most {limit} {unit}")


def wrong_type(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(TYPE_INVALID, path, value, detail)


class TemplateTypeError(ValueError):
    """A value has a type that the field cannot hold; the API server refuses such an object before validation."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def describe(errors: Sequence[FieldError]) -> str:
    """All errors in one text, as the message of an `Invalid` answer lists them: bare if one, in brackets if more."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
