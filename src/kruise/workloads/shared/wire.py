"""Objects as admission reads them. A wrong type is reported with its path, in the words of the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from kruise.api.core.field_errors import OMITTED, FieldError, Path, wrong_type
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.machinery import codec
from kruise.machinery.codec import Raw, Struct

T = TypeVar("T")

META = Path("metadata")
SPEC = Path("spec")
STRATEGY = SPEC.child("updateStrategy")
ROLLING = STRATEGY.child("rollingUpdate")
SELECTOR = SPEC.child("selector")
TEMPLATE = SPEC.child("template")
CLAIM_TEMPLATES = SPEC.child("volumeClaimTemplates")


class MisfitError(ValueError):
    """A field has a type that it cannot hold."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


class _Object(Struct):
    spec: Raw = EMPTY_OBJECT


def read_spec(document: bytes | Raw, kind: type[T]) -> T:
    """Read the spec of an object. Raises MisfitError for a value of the wrong type; templates are left aside."""
    spec = codec.decode(document, _Object).spec
    try:
        return codec.decode(EMPTY_OBJECT if bytes(spec) == b"null" else spec, kind)
    except codec.DecodeError as error:
        raise MisfitError(_misfit(str(error), SPEC)) from error


def annotations_in(body: Mapping[str, Any]) -> Mapping[str, str]:
    """The annotations of an object as it was sent; those that are no texts are the business of its metadata."""
    metadata = body.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(found, Mapping):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


_COMPLAINT = re.compile(r"Expected `(?P<wanted>[^`]+)`, got `(?P<found>[^`]+)`")
_PLACE = re.compile(r"(?P<text>.*?) - at `\$\.?(?P<path>[^`]*)`", re.DOTALL)
_WORDS = {
    "int": "an integer",
    "float": "a number with a fraction",
    "str": "a string",
    "bool": "a boolean",
    "object": "an object",
    "array": "a list",
    "null": "null",
}


def _misfit(text: str, holder: Path) -> FieldError:
    """The decoder's complaint about a part of the holder, in the words of the API."""
    found = _PLACE.fullmatch(text)
    path, text = (found["path"], found["text"]) if found is not None else ("", text)
    complaint = _COMPLAINT.fullmatch(text)
    if complaint is not None:
        wanted = [_WORDS.get(word, word) for word in complaint["wanted"].split(" | ") if word != "null"]
        text = f"must be {' or '.join(wanted)}, not {_WORDS.get(complaint['found'], complaint['found'])}"
    return wrong_type(holder.child(path) if path else holder, OMITTED, text)
