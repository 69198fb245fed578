"""kube-scheduler's words for a pod that fits nowhere (pure)."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping

CORDONED = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS = "Too many pods"
NO_AFFINITY = "node(s) didn't match pod affinity rules"
UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_SPREAD_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
OWN_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
THEIR_ANTI_AFFINITY = "node(s) didn't satisfy existing pods anti-affinity rules"
NO_NODES = "no nodes available to schedule pods"
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NO_HELP = "Preemption is not helpful for scheduling"
_NOT_ASKED = "not found"
"""What kube-scheduler 1.34 says for a pod that no node was asked about: its plugin for devices misses its notes."""
_NO_CLAIMS = "no new claims to deallocate"
"""The same plugin's word for a pod without devices, since 1.34."""
_NEVER = "preemption: not eligible due to preemptionPolicy=Never."


def insufficient(resource: str) -> str:
    return f"Insufficient {resource}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Unschedulable:
    """Why no node will do."""

    nodes: int
    reasons: Mapping[str, int] = dataclasses.field(default_factory=dict)
    """How many nodes each reason rules out; a node may have several."""
    resolvable: int = 0
    """Nodes on which the removal of other pods could help."""
    problem: str = ""
    """Something that has nothing to do with any node."""
    never_preempts: bool = False

    @property
    def message(self) -> str:
        if self.nodes == 0:
            return NO_NODES
        return f"{self.summary} {_NOT_ASKED if self.problem else f'{_NO_CLAIMS}, {self._preemption()}'}"

    @property
    def summary(self) -> str:
        """What rules the nodes out, without what a preemption would help."""
        if self.nodes == 0:
            return NO_NODES
        return f"{_available(self.nodes)} {self.problem or _histogram(self.reasons)}."

    def _preemption(self) -> str:
        """Nothing is preempted here, and kube-scheduler's words for that depend on what stands in the way."""
        if self.never_preempts:
            return _NEVER
        counts = {_NO_VICTIMS: self.resolvable, _NO_HELP: self.nodes - self.resolvable}
        return f"preemption: {_available(self.nodes)} {_histogram(counts)}."


def _available(nodes: int) -> str:
    return f"0/{nodes} nodes are available:"


def _histogram(reasons: Mapping[str, int]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count))


class Tally:
    """Collects the reasons node by node."""

    __slots__ = ("reasons", "resolvable")

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.resolvable = 0

    def add(self, *reasons: str, resolvable: bool = False) -> None:
        self.reasons.update(reasons)
        self.resolvable += resolvable
