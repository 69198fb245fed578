"""Who owns the claims of a StatefulSet's pods, by its retention policy (ST-82 to ST-89).

The garbage collector does what the policy says: a claim goes with its last owner. Nothing here deletes a claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kruise.api.meta import OwnerReference
from kruise.api.native.claim_retention import RetentionPolicy, claim_owners
from kruise.api.native.ordinals import claim_name
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.api.resource import Resource, refers_to
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.plan import Action, Chain, Target
from kruise.workloads.statefulset.situation import Situation, Slot

GATE = "StatefulSetAutoDeletePVC"


def policy_of(situation: Situation) -> RetentionPolicy:
    """What is neither Retain nor Delete counts as Retain."""
    said = situation.statefulset.spec.persistent_volume_claim_retention_policy
    if said is None or not situation.gate(GATE):
        return RetentionPolicy()
    return RetentionPolicy(when_deleted=said.when_deleted, when_scaled=said.when_scaled)


def claims_of(situation: Situation, slot: Slot) -> Iterator[PersistentVolumeClaim]:
    """The pod's claims that are there, in the order of their templates."""
    for template in situation.claim_templates:
        claim = situation.claims.get(claim_name(template.name, situation.owner.name, slot.ordinal))
        if claim is not None:
            yield claim


def owners_of_new_claim(situation: Situation) -> list[dict[str, Any]]:
    owner = situation.owner
    if not claim_owners(policy_of(situation), is_condemned=False).workload:
        return []
    return [_reference(owner.resource, owner.name, owner.uid)]


def is_stale(situation: Situation, slot: Slot, claim: PersistentVolumeClaim) -> bool:
    """The claim belongs to an earlier pod of this name and goes with it: a new pod must not use it (ST-88)."""
    pod = slot.pod
    uid = pod.metadata.uid if pod is not None else ""
    is_deleted_with_it = claim_owners(policy_of(situation), is_condemned=True).pod
    return is_deleted_with_it and any(
        _is_pod(item, slot.name) and item.uid != uid for item in claim.metadata.owner_references
    )


def corrections(situation: Situation, slot: Slot, *, is_condemned: bool) -> Chain:
    """Gives the claims of a pod the owners that the policy says; empty where they have them."""
    if not situation.claim_templates or not situation.gate(GATE):
        return ()
    found = (_correction(situation, slot, claim, is_condemned) for claim in claims_of(situation, slot))
    return tuple(action for action in found if action is not None)


def _correction(situation: Situation, slot: Slot, claim: PersistentVolumeClaim, is_condemned: bool) -> Action | None:
    if claim.metadata.deletion_timestamp is not None:
        return None
    owner, pod, policy = situation.owner, slot.pod, policy_of(situation)
    wanted = claim_owners(policy, is_condemned=is_condemned)
    uids = {owner.uid} if wanted.workload else set()
    references = []
    if pod is not None and wanted.pod:
        uids.add(pod.metadata.uid)
    has = {item.uid for item in claim.metadata.owner_references}
    unwanted = [item.uid for item in claim.metadata.owner_references if _is_ours(item, situation, slot, policy)]
    for uid in sorted(uids - has):
        is_set = uid == owner.uid
        references.append(_reference(owner.resource if is_set else PODS, owner.name if is_set else slot.name, uid))
    removed = [{"$patch": "delete", "uid": uid} for uid in unwanted if uid not in uids]
    if not removed and not references:
        return None
    return plans.patch(
        Target.of(PERSISTENT_VOLUME_CLAIMS, claim),
        {"metadata": {"ownerReferences": [*removed, *references]}},
        uid=claim.metadata.uid,
        reason="its owners are not those of the retention policy",
        patch_type=PatchType.STRATEGIC,
        resource_version=claim.metadata.resource_version,
    )


def _is_ours(item: OwnerReference, situation: Situation, slot: Slot, policy: RetentionPolicy) -> bool:
    """Whether the reference is the retention policy's business. With Delete, one to an earlier pod of the name stays:
    the claim goes with that pod. Where claims are kept, nothing may take them along."""
    pod = slot.pod
    if item.uid == situation.owner.uid or (pod is not None and item.uid == pod.metadata.uid):
        return True
    return _is_pod(item, slot.name) and not claim_owners(policy, is_condemned=True).pod


def _is_pod(item: OwnerReference, name: str) -> bool:
    return item.name == name and refers_to(item, PODS)


def _reference(resource: Resource[Any], name: str, uid: str) -> dict[str, Any]:
    """An owner that does not manage the claim."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": uid}
