"""What the deletion of a pod costs, by its annotation: pods that cost less go first."""

from __future__ import annotations

import re

from kruise.api.native.pod import Pod

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
