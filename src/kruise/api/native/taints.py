"""Taints of nodes, and what tolerates them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kruise.api.native.nodes import Taint
from kruise.api.native.pod import Toleration

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration], effects: Sequence[str]) -> Taint | None:
    """The first taint with one of the effects that nothing tolerates."""
    for taint in taints:
        if taint.effect in effects and not any(tolerates(item, taint) for item in tolerations):
            return taint
    return None
