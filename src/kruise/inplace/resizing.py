"""Resizes that a node refuses, puts off or fails at: when it does, and how a pod tells (pure).

Since Kubernetes 1.33 a kubelet says in the condition `PodResizePending` what it does not grant, and in
`PodResizeInProgress` what it has granted and cannot carry out; before, it wrote one word into `status.resize`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.scheduling.requests import CPU, MEMORY

INFEASIBLE = "Infeasible"
"""The node can never grant it."""
DEFERRED = "Deferred"
"""The node could, and has no room now."""
ERROR = "Error"
"""The node has granted it, and fails to carry it out: a container uses more memory than it is to have, say."""
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
        what = _WORDS.get(self.reason, "puts the new resources off")
        return f"the node {what} ({self.reason}{': ' if self.message else ''}{self.message})"


_WORDS = {INFEASIBLE: "refuses the new resources", ERROR: "fails to give the new resources"}


def refused_resize(pod: Pod) -> RefusedResize | None:
    """What the node says of the resources that the pod asks for now; None: nothing keeps it from giving them."""
    if (pending := _said(pod, RESIZE_PENDING)) is not None:
        return RefusedResize(pending.reason, pending.message)
    if (under_way := _said(pod, RESIZE_IN_PROGRESS)) is not None and under_way.reason == ERROR:
        return RefusedResize(under_way.reason, under_way.message)
    if pod.status.resize in (INFEASIBLE, DEFERRED):
        return RefusedResize(pod.status.resize, "")
    return None


def is_resizing(pod: Pod) -> bool:
    """The node has granted new resources, and the containers do not have them yet."""
    return _said(pod, RESIZE_IN_PROGRESS) is not None or pod.status.resize == "InProgress"


def resizing_since(pod: Pod) -> datetime | None:
    """Since when it is under way or put off; None: it is not, or the node does not tell."""
    told = [one for kind in (RESIZE_PENDING, RESIZE_IN_PROGRESS) if (one := _said(pod, kind)) is not None]
    return max((one.last_transition_time for one in told if one.last_transition_time is not None), default=None)


def _said(pod: Pod, kind: str) -> Condition | None:
    """The condition, if it speaks of what the pod asks for now and not of what it asked for before."""
    for condition in pod.status.conditions:
        if condition.type == kind and condition.status == "True":
            seen = condition.observed_generation
            return None if seen and seen < pod.metadata.generation else condition
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
