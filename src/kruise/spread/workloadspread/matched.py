"""The annotation of a pod that says which subset of which WorkloadSpread it is in (WS-25)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.remembered import once_per_object

MATCHED = "apps.kruise.io/matched-workloadspread"
_MEMBERS = ("name", "subset", "uid")


class Matched(NamedTuple):
    name: str
    """Of the WorkloadSpread."""
    subset: str
    uid: str = ""
    """Stands for the pod in `creatingPods`, where its name was not known at its admission."""

    @property
    def text(self) -> str:
        found = {"name": self.name, "subset": self.subset, **({"uid": self.uid} if self.uid else {})}
        return codec.encode(found).decode()


def placement(annotations: Mapping[str, str], flags: str) -> str:
    """For whoever asks why a pod finds no node."""
    mark = matched(annotations)
    if mark is None or not mark.subset:
        return ""
    return f"subset {mark.subset} of workloadspread {mark.name} says where it may run: kruise why ws/{mark.name}{flags}"


def matched(annotations: Mapping[str, str]) -> Matched | None:
    """What the annotation says; None: it is not there, or nobody can read it. Names of members come in any case."""
    text = annotations.get(MATCHED)
    if not text:
        return None
    try:
        found: dict[str, Any] = codec.decode(text.encode(), dict[str, Any])
    except codec.DecodeError:
        return None
    folded = {key.lower(): value for key, value in found.items()}
    values = [folded.get(member) for member in _MEMBERS]
    name, subset, uid = (value if isinstance(value, str) else "" for value in values)
    return Matched(name, subset, uid) if name else None


def mark_of(pod: Pod) -> Matched | None:
    """What the annotation of a pod says. Passes over thousands of pods ask again and again; pods without it keep no
    answer."""
    return _remembered(pod) if MATCHED in pod.metadata.annotations else None


@once_per_object
def _remembered(pod: Pod) -> Matched | None:
    return matched(pod.metadata.annotations)
