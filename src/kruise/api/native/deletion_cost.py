"""What the deletion of a pod costs, by its annotation: pods that cost less go first."""

from __future__ import annotations

import re

from kruise.api.native.pod import Pod
from kruise.machinery.codec import evolve

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_FORM = re.compile(r"0|[1-9][0-9]*|-[0-9]+", re.ASCII)
_LONGEST = 20


def parsed_cost(text: str) -> int | None:
    """As Kubernetes reads it: 32 bits, no plus sign, no leading zeros but behind a minus. None: it is no cost."""
    if len(text) > _LONGEST or _FORM.fullmatch(text) is None:
        return None
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else None


def deletion_cost(pod: Pod) -> int:
    """0 where the pod says nothing, or nothing that Kubernetes reads."""
    return parsed_cost(pod.metadata.annotations.get(DELETION_COST, "")) or 0


def differ_in_cost_alone(old: Pod, new: Pod) -> bool:
    """Whether nothing of what is read here changed but what its deletion costs."""
    before, after = old.metadata.annotations, new.metadata.annotations
    if before.get(DELETION_COST) == after.get(DELETION_COST):
        return False
    if _without_cost(before) != _without_cost(after):
        return False
    as_before = evolve(new.metadata, resource_version=old.metadata.resource_version, annotations=before)
    return as_before == old.metadata and new.spec == old.spec and new.status == old.status


def _without_cost(annotations: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in annotations.items() if key != DELETION_COST}
