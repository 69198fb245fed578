"""A volume: its phase, and what becomes of it once its claim is gone (decisions)."""

from __future__ import annotations

from datetime import datetime

from kruise.local.storage_binding.objects import (
    LOCAL_PROVISIONER,
    PROVISIONED_BY,
    VOLUME_PROTECTION,
    VOLUMES,
    Claim,
    Volume,
)
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.plan import Action, Conclusion, Outcomes, Plan, Result, Target, single

AVAILABLE, BOUND, RELEASED = "Available", "Bound", "Released"


class Snapshot(Struct):
    now: datetime
    volume: Volume
    claim: Claim | None = None
    """The claim that the volume names, if it is there."""


def phase_of(snapshot: Snapshot) -> str:
    """What the status should say."""
    volume, claim = snapshot.volume, snapshot.claim
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        return AVAILABLE  # free, or promised to a claim that has not come yet
    if claim is None or claim.metadata.uid != reference.uid:
        return RELEASED
    if claim.spec.volume_name == volume.metadata.name:
        return BOUND
    # The claim has still to name it, unless it has found another one meanwhile.
    return volume.status.phase or AVAILABLE if not claim.spec.volume_name else RELEASED


def decide(snapshot: Snapshot) -> Plan:
    volume = snapshot.volume
    protected = VOLUME_PROTECTION in volume.metadata.finalizers
    actions: list[Action] = []
    phase = phase_of(snapshot)
    if volume.metadata.deletion_timestamp is not None:
        if protected and phase != BOUND:
            actions.append(_protect(volume, {"$deleteFromPrimitiveList/finalizers": [VOLUME_PROTECTION]}, "not in use"))
        return Plan(phases=(single("let go", *actions),) if actions else ())
    if not protected:
        actions.append(_protect(volume, {"finalizers": [VOLUME_PROTECTION]}, "a volume in use must not go"))
    if phase == RELEASED and _is_removed(volume):
        target = Target.of(VOLUMES, volume)
        actions.append(plans.delete(target, uid=volume.metadata.uid, reason="its claim is gone: reclaim policy Delete"))
    return Plan(phases=(single("keep", *actions),) if actions else ())


def _protect(volume: Volume, metadata: dict[str, list[str]], reason: str) -> Action:
    return plans.patch(
        Target.of(VOLUMES, volume),
        {"metadata": metadata},
        uid=volume.metadata.uid,
        reason=reason,
        patch_type=PatchType.STRATEGIC,
    )


def _is_removed(volume: Volume) -> bool:
    """Only what we have made do we remove: data elsewhere is not ours to delete."""
    ours = volume.metadata.annotations.get(PROVISIONED_BY) == LOCAL_PROVISIONER
    return ours and volume.spec.persistent_volume_reclaim_policy == "Delete"


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    volume, phase = snapshot.volume, phase_of(snapshot)
    if volume.metadata.deletion_timestamp is not None or phase == volume.status.phase:
        return Conclusion()
    if any(item.result is not Result.DONE for item in outcomes):
        return Conclusion()
    write = plans.patch(
        Target.of(VOLUMES, volume),
        {"status": {"phase": phase}},
        uid=volume.metadata.uid,
        reason="the phase of the volume",
        subresource="status",
    )
    return Conclusion(status=write)
