"""Resizes that a node refuses or puts off (pure).

Since Kubernetes 1.33 a kubelet says so in the condition `PodResizePending`; before, it wrote the one word into
`status.resize`.
"""

from __future__ import annotations

from typing import NamedTuple

from kruise.api.native.pod import Pod

INFEASIBLE = "Infeasible"
"""The node can never grant it."""
DEFERRED = "Deferred"
"""The node could, and has no room now."""
_PENDING = "PodResizePending"


class RefusedResize(NamedTuple):
    reason: str
    message: str
    """The node's own words; some say nothing."""

    @property
    def is_final(self) -> bool:
        return self.reason == INFEASIBLE

    def __str__(self) -> str:
        what = "refuses the new resources" if self.is_final else "puts the new resources off"
        return f"the node {what} ({self.reason}{': ' if self.message else ''}{self.message})"


def refused_resize(pod: Pod) -> RefusedResize | None:
    """What the node says of the resources that the pod asks for now; None: it has not refused them."""
    for condition in pod.status.conditions:
        if condition.type == _PENDING and condition.status == "True":
            seen = condition.observed_generation
            if seen and seen < pod.metadata.generation:
                return None  # it speaks of what the pod asked for before
            return RefusedResize(condition.reason, condition.message)
    if pod.status.resize in (INFEASIBLE, DEFERRED):
        return RefusedResize(pod.status.resize, "")
    return None
