"""Claims that follow their templates: which ones do, and how the others grow (ST-91 to ST-98, gate
StatefulSetAutoResizePVCGate)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kruise.api.apps.statefulset import ON_POD_ROLLING_UPDATE, VolumeClaimStatus
from kruise.api.native.ordinals import claim_name
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.machinery import plan as plans
from kruise.machinery.plan import Action, Cause, Chain, Target
from kruise.machinery.quantity import Quantity, QuantityError, parse_quantity
from kruise.workloads.shared.claims import ClaimTemplate
from kruise.workloads.statefulset.causes import CLAIM_DIFFERS, CLAIM_GROWING
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE
from kruise.workloads.statefulset.situation import Situation, Slot

VOLUMES = "volumes"
OWNED_BY_ANNOTATION = "apps.kruise.io/owned-by-asts"
_RESIZE_PENDING = "FileSystemResizePending"
_STORAGE = "storage"
_NOTHING = Quantity(0)


def claims_grow(situation: Situation) -> bool:
    strategy = situation.statefulset.spec.volume_claim_update_strategy
    return situation.gate(GROWTH_GATE) and strategy.type == ON_POD_ROLLING_UPDATE


def is_compatible(claim: PersistentVolumeClaim, template: ClaimTemplate) -> bool:
    """ST-92."""
    return _is_alike(claim, template) and _requested(claim.spec.resources.requests) >= _wanted(template)


def is_ready(claim: PersistentVolumeClaim) -> bool:
    """The volume has the size that was asked for (ST-93)."""
    return _requested(claim.status.capacity) >= _requested(claim.spec.resources.requests)


def is_completed(claim: PersistentVolumeClaim, template: ClaimTemplate) -> bool:
    """The rest is up to whoever mounts it (ST-93)."""
    waits_for_mount = any(item.type == _RESIZE_PENDING and item.status == "True" for item in claim.status.conditions)
    return is_compatible(claim, template) and (is_ready(claim) or waits_for_mount)


def _is_alike(claim: PersistentVolumeClaim, template: ClaimTemplate) -> bool:
    """Whether only the size may differ."""
    wanted = template.spec.get("storageClassName")
    same_class = not wanted or not claim.spec.storage_class_name or wanted == claim.spec.storage_class_name
    return same_class and list(claim.spec.access_modes) == list(template.spec.get("accessModes") or ())


def _wanted(template: ClaimTemplate) -> Quantity:
    resources = template.spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, Mapping) else None
    return _requested(requests if isinstance(requests, Mapping) else {})


def _requested(amounts: Mapping[str, Any]) -> Quantity:
    asked = amounts.get(_STORAGE, "0")
    return _amount(asked) if isinstance(asked, str | int | float) else _NOTHING


@functools.lru_cache(maxsize=64)
def _amount(text: str | int | float) -> Quantity:
    """Claims of one template have the same few sizes."""
    try:
        return parse_quantity(text)
    except QuantityError:
        return _NOTHING


def pairs(situation: Situation, slot: Slot) -> Iterator[tuple[ClaimTemplate, PersistentVolumeClaim]]:
    """The pod's claims that are there to stay, with their templates."""
    for template in situation.claim_templates:
        claim = situation.claims.get(claim_name(template.name, situation.owner.name, slot.ordinal))
        if claim is not None and claim.metadata.deletion_timestamp is None:
            yield template, claim


def is_growing(situation: Situation, slot: Slot) -> bool:
    """A claim of the pod has not the size that was asked for: the pod counts as unavailable (ST-70)."""
    return any(not is_ready(claim) for _, claim in pairs(situation, slot))


@dataclasses.dataclass(frozen=True, slots=True)
class Growth:
    """What has to happen to the claims of a pod before the pod itself is updated."""

    chain: Chain = ()
    cause: Cause | None = None
    """What holds the pod back; None: its claims are as they should be."""
    is_refused: bool = False
    """They can never be."""


READY = Growth()


def growth_of(situation: Situation, slot: Slot) -> Growth:
    """ST-94."""
    actions: list[Action] = []
    waits: list[str] = []
    for template, claim in pairs(situation, slot):
        if is_compatible(claim, template):
            if not is_completed(claim, template):
                waits.append(claim.metadata.name)
        elif problem := _problem(situation, claim, template):
            remedy = "delete the claim and the pod by hand when its data may go, or take the change back"
            if _is_alike(claim, template):
                remedy = f"let the StorageClass allow expansion, or {remedy}"
            cause = CLAIM_DIFFERS.cause(problem, details={"claim": claim.metadata.name}, remedy=remedy)
            return Growth(cause=cause, is_refused=True)
        else:
            actions.append(_grow(situation, claim, template))
    if not actions and not waits:
        return READY
    names = [*(action.target.name for action in actions), *waits]
    cause = CLAIM_GROWING.cause(
        f"claim {', '.join(names)} grows first", details={"claims": names}, remedy="see the claim's events"
    )
    return Growth(tuple(actions), cause)


def _problem(situation: Situation, claim: PersistentVolumeClaim, template: ClaimTemplate) -> str:
    """Why the claim cannot become what its template says; empty: it can."""
    name, wanted = claim.metadata.name, claim.spec.storage_class_name
    if not _is_alike(claim, template):
        return f"claim {name} differs from its template in more than its size"
    if not wanted:
        return ""
    found = next((item for item in situation.snapshot.storage_classes if item.metadata.name == wanted), None)
    if found is None:
        return f"claim {name} cannot grow: there is no StorageClass {wanted}"
    if not found.allow_volume_expansion:
        return f"claim {name} cannot grow: StorageClass {wanted} does not set allowVolumeExpansion"
    return ""


def _grow(situation: Situation, claim: PersistentVolumeClaim, template: ClaimTemplate) -> Action:
    body = {
        "metadata": {"annotations": {OWNED_BY_ANNOTATION: situation.owner.name}},
        "spec": {"resources": template.spec.get("resources")},
    }
    return plans.patch(
        Target.of(PERSISTENT_VOLUME_CLAIMS, claim),
        body,
        uid=claim.metadata.uid,
        reason="its template asks for more",
        resource_version=claim.metadata.resource_version,
    )


def volume_claims(situation: Situation) -> tuple[VolumeClaimStatus, ...]:
    """ST-95, whatever the gate says."""
    return tuple(_counted(situation, template) for template in situation.claim_templates)


def _counted(situation: Situation, template: ClaimTemplate) -> VolumeClaimStatus:
    compatible = [claim for claim in _claims_of_pods(situation, template) if is_compatible(claim, template)]
    return VolumeClaimStatus(
        volume_claim_name=template.name,
        compatible_replicas=len(compatible),
        compatible_ready_replicas=sum(map(is_ready, compatible)),
    )


def _claims_of_pods(situation: Situation, template: ClaimTemplate) -> Iterable[PersistentVolumeClaim]:
    for slot in situation.slots:
        claim = situation.claims.get(claim_name(template.name, situation.owner.name, slot.ordinal))
        if slot.pod is not None and claim is not None and claim.metadata.deletion_timestamp is None:
            yield claim
