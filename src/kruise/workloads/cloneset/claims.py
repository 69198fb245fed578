"""Claims for the storage of a CloneSet's pods: their names and bodies, which ones a new pod takes over, which ones go.

A claim belongs to the pod with the same instance id. The rules that let a claim go are narrow on purpose, since what is
deleted here is somebody's data: a claim that an active pod mounts, or that has no instance id, is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.inplace import keys
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Chain, OnError, Phase, Target
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared.claims import ClaimTemplate, claim_body, claim_name, mounted_claims

INSTANCE_ID_LABEL = "apps.kruise.io/cloneset-instance-id"
"""What a pod and its claims have in common."""

GOES_WITH_ANNOTATION = "apps.kruise.io/goes-with-pod"
"""On a claim that may be reused: the uid of the pod that the CloneSet is deleting together with it. Whoever finds the
pod gone and the claim still there knows that the claim was meant to go as well."""


def claim_of_pod(template: ClaimTemplate, situation: Situation, instance_id: str) -> dict[str, Any]:
    """The claim of one pod (CS-120), of a live template: also a pod of an older revision gets claims of these."""
    owner = situation.owner
    return claim_body(
        template,
        name=claim_name(template.name, owner.name, instance_id),
        namespace=owner.namespace,
        labels={**situation.cloneset.spec.selector.match_labels, INSTANCE_ID_LABEL: instance_id},
        owners=(owner.reference(),),
    )


def claims_by_id(situation: Situation) -> dict[str, list[PersistentVolumeClaim]]:
    """Claims of the CloneSet that are there to stay, by the id of the pod they belong to; by name within.

    Those whose pod is being made are left alone until it is there.
    """
    found: dict[str, list[PersistentVolumeClaim]] = {}
    for claim in sorted(situation.snapshot.claims, key=lambda claim: claim.metadata.name):
        instance_id = claim.metadata.labels.get(INSTANCE_ID_LABEL, "")
        if situation.makes_pod(f"{situation.owner.name}-{instance_id}"):
            continue
        if instance_id and claim.metadata.deletion_timestamp is None:
            found.setdefault(instance_id, []).append(claim)
    return found


def taken_ids(situation: Situation) -> set[str]:
    """Ids that no new pod may be given: a pod or claim has them, be it on its way out."""
    pods = {id_of(pod) for pod in situation.snapshot.pods}
    return pods | {claim.metadata.labels.get(INSTANCE_ID_LABEL, "") for claim in situation.snapshot.claims}


def reusable_ids(situation: Situation) -> dict[str, Pod | None]:
    """Ids whose claims a new pod takes over, in order (CS-121).

    A pod that is still on its way out has the name that the new one needs: it is told along with the id, and the new
    pod is made when it has gone. A pod that failed keeps its name for good, so its id is left alone.
    """
    if not situation.cloneset.spec.scale_strategy.enable_pvc_reuse:
        return {}
    active = {pod.metadata.labels.get(INSTANCE_ID_LABEL, "") for pod in _active(situation)}
    terminating_claims = {
        claim.metadata.labels.get(INSTANCE_ID_LABEL, "")
        for claim in situation.snapshot.claims
        if claim.metadata.deletion_timestamp is not None
    }
    in_the_way = {id_of(pod): pod for pod in situation.inactive}
    claims = claims_by_id(situation)
    doomed = {instance_id for instance_id, its_claims in claims.items() if any(map(_mark_of, its_claims))}
    found: dict[str, Pod | None] = {}
    for instance_id in sorted(claims.keys() - active - terminating_claims - doomed):
        pod = in_the_way.get(instance_id)
        if pod is None or (pod.metadata.deletion_timestamp is not None and not _takes_claims_along(situation, pod)):
            found[instance_id] = pod
    return found


def clean_claims(situation: Situation) -> Phase:
    """Claims whose pod is no longer active (CS-122), and what a deletion that broke off left behind (CS-86)."""
    chains: list[Chain] = []
    if not situation.owner.is_deleted:
        reuse = situation.cloneset.spec.scale_strategy.enable_pvc_reuse
        chains = _leftovers(situation) if reuse else _unused(situation)
    return Phase(name="claims", chains=tuple(chains), on_error=OnError.CONTINUE)


def _unused(situation: Situation) -> list[Chain]:
    if not situation.snapshot.claims:
        return []
    active = {id_of(pod) for pod in _active(situation)}
    idle = [
        (instance_id, claim)
        for instance_id, claims in claims_by_id(situation).items()
        if instance_id not in active
        for claim in claims
    ]
    if not idle:
        return []
    mounted = mounted_claims(_active(situation))
    ending = {id_of(pod): pod for pod in situation.inactive}
    chains: list[Chain] = []
    for instance_id, claim in idle:
        if claim.metadata.name in mounted:
            continue
        pod = ending.get(instance_id)
        if pod is not None:
            chains.append((hand_over(claim, pod, situation.owner, reason=f"it goes with pod {pod.metadata.name}"),))
        else:
            # The version guards against somebody who takes the claim out of our hands at this moment, to keep it.
            action = plans.delete(
                Target.of(PERSISTENT_VOLUME_CLAIMS, claim),
                uid=claim.metadata.uid,
                resource_version=claim.metadata.resource_version,
                reason="no pod uses it, and claims are not reused",
            )
            chains.append((action,))
    return chains


def _leftovers(situation: Situation) -> list[Chain]:
    """The pod was deleted together with its claims, but the claims were not reached: otherwise the next pod would take
    over what was meant to go. A pod that is still there after all keeps its claims."""
    active = {pod.metadata.uid for pod in _active(situation)}
    doomed = {id_of(pod) for pod in situation.inactive if _takes_claims_along(situation, pod)}
    chains: list[Chain] = []
    for instance_id, claims in claims_by_id(situation).items():
        for claim in claims:
            mark = _mark_of(claim)
            if mark in active:
                chains.append((_annotated(claim, None, reason="its pod was not deleted after all"),))
            elif mark or instance_id in doomed:
                chains.append((delete_claim(claim, reason="it goes with its pod, which was deleted"),))
    return chains


def mark_for_deletion(claim: PersistentVolumeClaim, pod: Pod) -> Action:
    """Note on a claim that it goes with the pod, before the pod is deleted."""
    return _annotated(claim, pod.metadata.uid, reason=f"it goes with pod {pod.metadata.name}")


def _annotated(claim: PersistentVolumeClaim, mark: str | None, *, reason: str) -> Action:
    body = {"metadata": {"annotations": {GOES_WITH_ANNOTATION: mark}}}
    return plans.patch(Target.of(PERSISTENT_VOLUME_CLAIMS, claim), body, uid=claim.metadata.uid, reason=reason)


def _mark_of(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(GOES_WITH_ANNOTATION, "")


def _takes_claims_along(situation: Situation, pod: Pod) -> bool:
    """Whether a pod is terminating because the CloneSet was to delete it: then its claims go as well (CS-86)."""
    if pod.metadata.deletion_timestamp is None:
        return False
    labels = pod.metadata.labels
    return (
        keys.SPECIFIED_DELETE_LABEL in labels
        or labels.get(keys.STATE_LABEL) == "PreparingDelete"
        or pod.metadata.name in situation.cloneset.spec.scale_strategy.pods_to_delete
    )


def delete_claim(claim: PersistentVolumeClaim, *, reason: str) -> Action:
    return plans.delete(Target.of(PERSISTENT_VOLUME_CLAIMS, claim), uid=claim.metadata.uid, reason=reason)


def hand_over(claim: PersistentVolumeClaim, pod: Pod, owner: Owner, *, reason: str) -> Action:
    """Make the pod the owner of a claim in the CloneSet's stead: the claim lives as long as the pod."""
    reference = {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "name": pod.metadata.name,
        "uid": pod.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return plans.patch(
        Target.of(PERSISTENT_VOLUME_CLAIMS, claim),
        {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": owner.uid}, reference]}},
        uid=claim.metadata.uid,
        reason=reason,
        patch_type=PatchType.STRATEGIC,
        resource_version=claim.metadata.resource_version,
    )


def _active(situation: Situation) -> Iterable[Pod]:
    for facts in situation.facts:
        yield facts.pod
    yield from situation.released


def id_of(pod: Pod) -> str:
    return pod.metadata.labels.get(INSTANCE_ID_LABEL, "")
