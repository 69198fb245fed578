"""Which volume fits a claim (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from kruise.api.native.node_selection import term_matches
from kruise.api.native.nodes import Node
from kruise.api.native.storage import PersistentVolume, PersistentVolumeClaim, refers_to_claim
from kruise.machinery.quantity import Quantity, parse_quantity
from kruise.machinery.selectors import from_label_selector


def requested(claim: PersistentVolumeClaim) -> Quantity:
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def capacity(volume: PersistentVolume) -> Quantity:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str:
    """Why a volume that was asked for by name cannot be had; empty where it can."""
    if capacity(volume) < requested(claim):
        return "requested PV is too small"
    if volume.spec.storage_class_name != (claim.spec.storage_class_name or ""):
        return "storageClassName does not match"
    if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
        return "incompatible volumeMode"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return ""


def reaches(volume: PersistentVolume, node: Node) -> bool:
    """Whether the volume can be used on the node."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(term_matches(term, node) for term in affinity.required.node_selector_terms)


def best_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], node: Node | None = None
) -> PersistentVolume | None:
    """The volume that is promised to the claim, else the smallest free one that fits; on the node, where one is given.

    A volume that is promised to the claim by name counts even if it is too small: whoever promised it knows why.
    """
    selector = from_label_selector(claim.spec.selector) if claim.spec.selector is not None else None
    fitting: list[PersistentVolume] = []
    for volume in volumes:
        if volume.metadata.deletion_timestamp is not None or (node is not None and not reaches(volume, node)):
            continue
        if volume.spec.claim_ref is not None:
            if refers_to_claim(volume, claim) and not mismatch(volume, claim):
                return volume
            continue
        if volume.status.phase != "Available" or mismatch(volume, claim):
            continue
        if selector is None or selector.matches(volume.metadata.labels):
            fitting.append(volume)
    return min(fitting, key=lambda volume: (capacity(volume), volume.metadata.name), default=None)
