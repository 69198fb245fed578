"""A CloneSet as admission reads it: both versions under one set of names. A wrong type is reported with its path.

v1alpha1 has the settings of a rollout beside the type of the strategy, v1beta1 below `rollingUpdate`; apart from that
they are judged alike.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from kruise.api.apps import cloneset, cloneset_v1alpha1
from kruise.api.apps.cloneset import CloneSetRollout
from kruise.api.core.field_errors import OMITTED, FieldError, Path, wrong_type
from kruise.machinery import codec
from kruise.machinery.codec import Raw, Struct

V1ALPHA1 = "v1alpha1"
SPEC = Path("spec")
STRATEGY = SPEC.child("updateStrategy")


class _Flat(Struct):
    spec: cloneset_v1alpha1.CloneSetSpec = cloneset_v1alpha1.CloneSetSpec()


class _Nested(Struct):
    spec: cloneset.CloneSetSpec = cloneset.CloneSetSpec()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The parts of a spec that are judged by themselves."""

    is_v1alpha1: bool
    replicas: int
    type: str
    """Of the update strategy, as it is spelled in this version."""
    policy: str
    """How pods are updated: the pod update policy, in v1alpha1 the type itself."""
    rollout: CloneSetRollout | None
    rollout_path: Path
    scale: cloneset.CloneSetScaleStrategy | cloneset_v1alpha1.CloneSetScaleStrategy
    min_ready_seconds: int
    progress_deadline_seconds: int | None


class MisfitError(ValueError):
    """A field has a type that it cannot hold."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


def read(document: bytes | Raw, version: str) -> Reading:
    """Read an object of this version. Raises MisfitError for a value of the wrong type, templates left aside."""
    try:
        if version == V1ALPHA1:
            return _flat(codec.decode(document, _Flat).spec)
        return _nested(codec.decode(document, _Nested).spec)
    except codec.DecodeError as error:
        raise MisfitError(_misfit(str(error))) from error


def annotations_in(body: Mapping[str, Any]) -> Mapping[str, str]:
    """The annotations of an object as it was sent; those that are no texts are the business of its metadata."""
    metadata = body.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(found, Mapping):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _flat(spec: cloneset_v1alpha1.CloneSetSpec) -> Reading:
    strategy = spec.update_strategy
    return Reading(
        is_v1alpha1=True,
        replicas=1 if spec.replicas is None else spec.replicas,
        type=strategy.type,
        policy=strategy.type,
        rollout=strategy,
        rollout_path=STRATEGY,
        scale=spec.scale_strategy,
        min_ready_seconds=spec.min_ready_seconds,
        progress_deadline_seconds=spec.progress_deadline_seconds,
    )


def _nested(spec: cloneset.CloneSetSpec) -> Reading:
    rolling = spec.update_strategy.rolling_update
    return Reading(
        is_v1alpha1=False,
        replicas=1 if spec.replicas is None else spec.replicas,
        type=spec.update_strategy.type,
        policy=rolling.pod_update_policy if rolling is not None else "",
        rollout=rolling,
        rollout_path=STRATEGY.child("rollingUpdate"),
        scale=spec.scale_strategy,
        min_ready_seconds=spec.min_ready_seconds,
        progress_deadline_seconds=spec.progress_deadline_seconds,
    )


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


def _misfit(text: str) -> FieldError:
    """The decoder's complaint in the words of the API."""
    found = _PLACE.fullmatch(text)
    path, text = (found["path"], found["text"]) if found is not None else ("", text)
    complaint = _COMPLAINT.fullmatch(text)
    if complaint is not None:
        wanted = [_WORDS.get(word, word) for word in complaint["wanted"].split(" | ") if word != "null"]
        text = f"must be {' or '.join(wanted)}, not {_WORDS.get(complaint['found'], complaint['found'])}"
    return wrong_type(path, OMITTED, text)
