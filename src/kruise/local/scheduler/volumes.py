"""What a pod's claims mean for its place (pure).

A claim that is bound ties the pod to the nodes that its volume reaches. One whose class waits for its first consumer is
bound once the scheduler has chosen a node; until then the pod keeps its place without being bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from kruise.api.meta import Key
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.local.storage_binding.matching import best_volume, reaches
from kruise.local.storage_binding.objects import (
    NO_PROVISIONER,
    SELECTED_NODE,
    Claim,
    StorageClass,
    Volume,
    is_bound,
    waits_for_consumer,
)

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"
WRONG_NODE = "node(s) didn't match PersistentVolume's node affinity"
WRONG_ZONE = "node(s) had no available volume zone"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """Claims by namespace and name, volumes and classes by name."""

    claims: Mapping[Key, Claim] = dataclasses.field(default_factory=dict)
    volumes: Mapping[str, Volume] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, StorageClass] = dataclasses.field(default_factory=dict)

    def claims_of(self, pod: Pod) -> Needs | None:
        """What the claims of a pod mean for its place; None: it has none."""
        names = claim_names(pod)
        if not names:
            return None
        bound: list[Claim] = []
        waiting: list[Claim] = []
        immediate = False
        for name in names:
            claim = self.claims.get(Key(pod.metadata.namespace, name))
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

    def _waits(self, claim: Claim) -> bool:
        storage_class = self.classes.get(claim.spec.storage_class_name or "")
        return waits_for_consumer(storage_class) and not claim.spec.volume_name


@dataclasses.dataclass(frozen=True, slots=True)
class Needs:
    """The claims of one pod, as `kruise.scheduling.placing.Claims` asks for them."""

    storage: Storage
    problem: str = ""
    """Why the pod can go nowhere at all."""
    bound: tuple[Claim, ...] = ()
    waiting: tuple[Claim, ...] = ()

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
        storage = self.storage
        for claim in self.bound:
            volume = storage.volumes.get(claim.spec.volume_name)
            if volume is None:
                return NO_VOLUME
            if not reaches(volume, node):
                return WRONG_NODE
            if not _in_zone(volume, node):
                return WRONG_ZONE
        for claim in self.waiting:
            if best_volume(claim, storage.volumes.values(), node) is not None:
                continue
            storage_class = storage.classes.get(claim.spec.storage_class_name or "")
            if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
                return NOTHING_TO_BIND
        return ""


_TOPOLOGY = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)


def _in_zone(volume: Volume, node: Node) -> bool:
    """A volume may have labels of its zones, several with two underscores between. A node without any is everywhere."""
    there = node.metadata.labels
    if not any(key in there for key in _TOPOLOGY):
        return True
    wanted = {key: volume.metadata.labels[key] for key in _TOPOLOGY if key in volume.metadata.labels}
    return all(there.get(key) in zones.split("__") for key, zones in wanted.items())


def claim_names(pod: Pod) -> list[str]:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [source.claim_name for source in sources if source is not None]


def _problem(name: str, claim: Claim | None) -> str:
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return ""
