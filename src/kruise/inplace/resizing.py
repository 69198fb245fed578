"""Resizes that a node refuses or puts off: when it does, and how a pod tells (pure).

Since Kubernetes 1.33 a kubelet says so in the condition `PodResizePending`; before, it wrote the one word into
`status.resize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kruise.api.native.pod import Pod
from kruise.scheduling.requests import CPU, MEMORY

INFEASIBLE = "Infeasible"
"""The node can never grant it."""
DEFERRED = "Deferred"
"""The node could, and has no room now."""
RESIZE_PENDING = "PodResizePending"
RESIZE_IN_PROGRESS = "PodResizeInProgress"


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
        if condition.type == RESIZE_PENDING and condition.status == "True":
            seen = condition.observed_generation
            if seen and seen < pod.metadata.generation:
                return None  # it speaks of what the pod asked for before
            return RefusedResize(condition.reason, condition.message)
    if pod.status.resize in (INFEASIBLE, DEFERRED):
        return RefusedResize(pod.status.resize, "")
    return None


def refusal_of_node(
    asked: Mapping[str, int], *, used: Mapping[str, int], allocatable: Mapping[str, int]
) -> RefusedResize | None:
    """What a kubelet says to a pod that asks for so much in all, beside what it has granted to the others; None: it
    grants it. CPU counts in thousandths."""
    for name in (MEMORY, CPU):
        wanted, most = asked.get(name, 0), allocatable.get(name, 0)
        if wanted > most:
            text = f"Node didn't have enough capacity: {name}, requested: {wanted}, capacity: {most}"
            return RefusedResize(INFEASIBLE, text)
    for name in (CPU, MEMORY):
        wanted, taken, most = asked.get(name, 0), used.get(name, 0), allocatable.get(name, 0)
        if wanted + taken > most:
            text = f"Node didn't have enough resource: {name}, requested: {wanted}, used: {taken}, capacity: {most}"
            return RefusedResize(DEFERRED, text)
    return None
