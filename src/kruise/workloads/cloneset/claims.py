"""Claims for the storage of a CloneSet's pods: their names and bodies, which ones a new pod takes over, which ones go.

A claim belongs to the pod with the same instance id. The rules that let a claim go are narrow on purpose, since what is
deleted here is somebody's data: a claim that an active pod mounts, or that has no instance id, is never touched.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kruise.api.apps.cloneset import CloneSet
from kruise.api.core import schema, values
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.inplace import keys
from kruise.inplace.hashes import deep_hash
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Raw
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Chain, OnError, Phase, Target

if TYPE_CHECKING:
    # The situation is made with the hash below.
    from kruise.workloads.cloneset.situation import Situation

INSTANCE_ID_LABEL = "apps.kruise.io/cloneset-instance-id"
"""What a pod and its claims have in common."""

GOES_WITH_ANNOTATION = "apps.kruise.io/goes-with-pod"
"""On a claim that may be reused: the uid of the pod that the CloneSet is deleting together with it. Whoever finds the
pod gone and the claim still there knows that the claim was meant to go as well."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """An entry of `volumeClaimTemplates`, as far as claims are made of it."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]


def claim_templates(cloneset: CloneSet) -> tuple[ClaimTemplate, ...]:
    """The live templates: a pod of an older revision gets claims of these as well (CS-120)."""
    return tuple(_template(codec.decode(raw, object)) for raw in cloneset.spec.volume_claim_templates)


def _template(document: Any) -> ClaimTemplate:
    metadata = _mapping(document, "metadata")
    return ClaimTemplate(
        name=str(metadata.get("name", "")),
        labels=_mapping(metadata, "labels"),
        annotations=_mapping(metadata, "annotations"),
        spec=_mapping(document, "spec"),
    )


def _mapping(document: Any, name: str) -> Mapping[str, Any]:
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def claim_name(template: str, cloneset: str, instance_id: str) -> str:
    return f"{template}-{cloneset}-{instance_id}"


def claim_body(template: ClaimTemplate, cloneset: CloneSet, owner: Owner, instance_id: str) -> dict[str, Any]:
    """The claim of one pod (CS-120)."""
    metadata: dict[str, Any] = {
        "name": claim_name(template.name, owner.name, instance_id),
        "namespace": owner.namespace,
        "labels": {**template.labels, **cloneset.spec.selector.match_labels, INSTANCE_ID_LABEL: instance_id},
        "ownerReferences": [owner.reference()],
    }
    if template.annotations:
        metadata["annotations"] = dict(template.annotations)
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": metadata,
        "spec": template.spec,
    }


def claim_templates_hash(templates: Sequence[Raw]) -> str:
    """What a revision notes of the claim templates: names and specs only, in the order of the names (CS-126)."""
    if not templates:
        return ""
    texts = []
    for raw in templates:
        document = codec.decode(raw, object)
        name = str(_mapping(document, "metadata").get("name", ""))
        claim = {"metadata": {"name": name}, "spec": _mapping(document, "spec")}
        texts.append((name, values.struct_order_json(claim, schema.CLAIM)))
    return str(deep_hash(b"[" + b",".join(text for _, text in sorted(texts)) + b"]"))


def claims_by_id(situation: Situation) -> dict[str, list[PersistentVolumeClaim]]:
    """Claims of the CloneSet that are there to stay, by the id of the pod they belong to; by name within.

    Those whose pod is being made are left alone until it is there.
    """
    found: dict[str, list[PersistentVolumeClaim]] = {}
    for claim in sorted(situation.snapshot.claims, key=lambda claim: claim.metadata.name):
        instance_id = claim.metadata.labels.get(INSTANCE_ID_LABEL, "")
        if situation.makes_pod(instance_id):
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
    mounted = _mounted_claims(_active(situation))
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


def _mounted_claims(pods: Iterable[Pod]) -> set[str]:
    return {
        volume.persistent_volume_claim.claim_name
        for pod in pods
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }


def id_of(pod: Pod) -> str:
    return pod.metadata.labels.get(INSTANCE_ID_LABEL, "")
