"""Conversion between the two versions of a kind that loses nothing.

A kind says how each version looks in the other, as far as the other has fields for it. What `v1alpha1` has no fields
for is kept aside in an annotation while the object is read as `v1alpha1`, and put back when it is written: a program
that knows `v1alpha1` alone keeps annotations, so apply, edit, patch and scale through either version lose nothing.

Nobody has to list what is kept: it is whatever `v1beta1` says and a way through `v1alpha1` and back does not. Where
`v1alpha1` seemed to say something else, that is noted as well. If it says something new by the time of the write,
somebody has changed it, and that counts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kruise.machinery import codec

Json = dict[str, Any]

KEPT = "kruise.io/v1beta1-fields"
"""The annotation of objects in `v1alpha1` that holds what only `v1beta1` has fields for."""
OLDER, NEWER = "v1alpha1", "v1beta1"
_PART = "spec"
_SEEMED = "seemed"
_NOTHING: Json = {}


class KeptError(ValueError):
    """The annotation cannot be read; the text is what is wrong with it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TwoVersions:
    """How objects of a kind go from `v1alpha1` to `v1beta1` and back.

    An object that cannot be converted cannot be read, so `up` and `down` never fail on what they find, and leave the
    argument as it is.
    """

    group: str
    kind: str
    up: Callable[[Json], Json]
    down: Callable[[Json], Json]

    def __call__(self, obj: Json, version: str) -> Json:
        """The object in that version. The argument is left as it is; the result shares parts with it."""
        if version not in (OLDER, NEWER):
            raise ValueError(f"{self.kind} has no version {version}: it is served in {OLDER} and {NEWER}")
        _, _, present = str(obj.get("apiVersion", "")).rpartition("/")
        if present == version:
            return obj
        converted = self._written(obj) if version == NEWER else self._shown(obj)
        return {**converted, "apiVersion": f"{self.group}/{version}"}

    def _shown(self, obj: Json) -> Json:
        """As `v1alpha1`, with what it has no fields for set aside."""
        shown = self.down(_without_kept(obj))
        kept, seemed = _difference(obj.get(_PART), self.up(shown).get(_PART))
        if not kept or not isinstance(obj.get("metadata"), dict):
            return shown
        told = {_PART: kept, _SEEMED: {_PART: seemed}} if seemed else {_PART: kept}
        return with_annotations(shown, {KEPT: codec.canonical(told).decode()})

    def _written(self, obj: Json) -> Json:
        """As `v1beta1`, with what was set aside back in its place."""
        written = self.up(_without_kept(obj))
        try:
            told = read_kept(annotation_of(obj))
        except KeptError:
            return written  # admission names what is wrong with it
        spec = written.get(_PART)
        if not isinstance(spec, dict) or not told:
            return written
        seemed = mapping(mapping(told.get(_SEEMED)).get(_PART))
        return {**written, _PART: _restored(spec, mapping(told.get(_PART)), seemed)}


def annotation_of(obj: Mapping[str, Any]) -> Any:
    """What an object has in the annotation; None if it has none."""
    return mapping(mapping(obj.get("metadata")).get("annotations")).get(KEPT)


def read_kept(text: Any) -> Json:
    """What the annotation holds; empty where it is absent or empty. Raises KeptError."""
    if text is None or text == "":
        return {}
    try:
        told = codec.decode(str(text).encode(), dict)
    except codec.DecodeError as error:
        raise KeptError(f"must be JSON: {error}") from error
    others = [name for name in told if name not in (_PART, _SEEMED)]
    if others:
        raise KeptError(f"holds fields of {_PART} alone, not {', '.join(sorted(others))}")
    if not isinstance(told.get(_PART, {}), dict):
        raise KeptError(f"must hold an object {_PART}")
    return told


def mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else _NOTHING


def put(parent: Mapping[str, Any], **parts: Any) -> Json:
    """The object with these parts; None takes a part away."""
    others = {name: value for name, value in parent.items() if name not in parts}
    return {**others, **{name: value for name, value in parts.items() if value is not None}}


def with_annotations(obj: Json, told: Mapping[str, str]) -> Json:
    """The object with these annotations beside its own."""
    if not told:
        return obj
    metadata = mapping(obj.get("metadata"))
    return {**obj, "metadata": {**metadata, "annotations": {**mapping(metadata.get("annotations")), **told}}}


def _without_kept(obj: Json) -> Json:
    if annotation_of(obj) is None:
        return obj
    metadata = dict(obj["metadata"])
    annotations = {key: value for key, value in metadata["annotations"].items() if key != KEPT}
    if annotations:
        metadata["annotations"] = annotations
    else:
        del metadata["annotations"]
    return {**obj, "metadata": metadata}


def _difference(wanted: Any, told: Any) -> tuple[Json, Json]:
    """What is wanted beyond what is told, and what is told instead. What is told beyond what is wanted is the default
    of something absent, and no difference."""
    kept: Json = {}
    seemed: Json = {}
    if not isinstance(wanted, dict) or not isinstance(told, dict):
        return kept, seemed
    for name, value in wanted.items():
        if name not in told:
            if value is not None:
                kept[name] = value
        elif value is told[name]:
            continue
        elif isinstance(value, dict) and isinstance(told[name], dict):
            inner, instead = _difference(value, told[name])
            kept.update({name: inner} if inner else {})
            seemed.update({name: instead} if instead else {})
        elif value != told[name] and value is not None:
            kept[name], seemed[name] = value, told[name]
    return kept, seemed


def _restored(present: Json, kept: Json, seemed: Json) -> Json:
    """What is kept, where nobody has said something else meanwhile."""
    result = dict(present)
    for name, value in kept.items():
        if name not in present:
            if name not in seemed:
                result[name] = value
        elif isinstance(value, dict) and isinstance(present[name], dict):
            result[name] = _restored(present[name], value, mapping(seemed.get(name)))
        elif name in seemed and present[name] == seemed[name]:
            result[name] = value
    return result
