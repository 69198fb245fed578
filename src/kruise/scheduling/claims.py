"""What a pod's claims mean for its place (pure).

A claim that is bound ties the pod to the nodes that its volume reaches. One whose class waits for its first consumer is
bound once the scheduler has chosen a node; until then the pod keeps its place without being bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from kruise.api.meta import Key
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.api.native.storage import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    claim_names,
    is_bound,
    provisions,
    waits_for_consumer,
)
from kruise.scheduling.matching import best_volume, reaches

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
WRONG_ZONE = "node(s) had no available volume zone"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """Claims by namespace and name, volumes and classes by name."""

    claims: Mapping[Key, PersistentVolumeClaim] = dataclasses.field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, StorageClass] = dataclasses.field(default_factory=dict)
    are_all: bool = True
    """False: a claim that is not here may still come, and ties no pod until then."""

    def claims_of(self, pod: Pod) -> Needs | None:
        """What the claims of a pod mean for its place; None: it has none."""
        names = claim_names(pod)
        if not names:
            return None
        bound: list[PersistentVolumeClaim] = []
        waiting: list[PersistentVolumeClaim] = []
        immediate = False
        for name in names:
            claim = self.claims.get(Key(pod.metadata.namespace, name))
            if claim is None and not self.are_all:
                continue
            problem = _problem(name, claim)
            if claim is None or problem:
                return Needs(self, problem)
            if is_bound(claim):
                bound.append(claim)
            elif self._waits(claim):
                waiting.append(claim)
            else:
                immediate = True
        return Needs(self, UNBOUND_IMMEDIATE) if immediate else Needs(self, "", tuple(bound), tuple(waiting))

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self.classes.get(claim.spec.storage_class_name or "")
        return waits_for_consumer(storage_class) and not claim.spec.volume_name


@dataclasses.dataclass(frozen=True, slots=True)
class Needs:
    """The claims of one pod, as `kruise.scheduling.placing.Claims` asks for them."""

    storage: Storage
    problem: str = ""
    """Why the pod can go nowhere at all."""
    bound: tuple[PersistentVolumeClaim, ...] = ()
    waiting: tuple[PersistentVolumeClaim, ...] = ()

    @property
    def chosen_node(self) -> str:
        """Where the waiting claims are being bound already."""
        nodes = {claim.metadata.annotations.get(SELECTED_NODE, "") for claim in self.waiting}
        return nodes.pop() if len(nodes) == 1 else ""

    @property
    def waiting_names(self) -> tuple[str, ...]:
        return tuple(claim.metadata.name for claim in self.waiting)

    def refusal(self, node: Node) -> str:
        """Why the claims cannot be used on a node; empty where they can."""
        for claim in self.bound:
            if why := self._unusable(claim, node):
                return why
        storage = self.storage
        for claim in self.waiting:
            if provisions(storage.classes.get(claim.spec.storage_class_name or "")):
                continue  # if none of those that are there fits, a new one will
            if best_volume(claim, storage.volumes.values(), node) is None:
                return NOTHING_TO_BIND
        return ""

    def out_of_reach(self, nodes: Sequence[Node]) -> tuple[PersistentVolumeClaim, ...]:
        """Claims whose volumes none of these nodes can use."""
        return tuple(claim for claim in self.bound if all(self._unusable(claim, node) for node in nodes))

    def _unusable(self, claim: PersistentVolumeClaim, node: Node) -> str:
        volume = self.storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return NO_VOLUME
        if not reaches(volume, node):
            return WRONG_NODE
        return "" if _in_zone(volume, node) else WRONG_ZONE


_TOPOLOGY = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def _in_zone(volume: PersistentVolume, node: Node) -> bool:
    """A volume may have labels of its zones, several with two underscores between. A node without any is everywhere."""
    there = node.metadata.labels
    if not any(key in there for key in _TOPOLOGY):
        return True
    wanted = {key: volume.metadata.labels[key] for key in _TOPOLOGY if key in volume.metadata.labels}
    return all(there.get(key) in zones.split("__") for key, zones in wanted.items())


def _problem(name: str, claim: PersistentVolumeClaim | None) -> str:
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return ""
