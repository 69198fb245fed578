"""The claims of a StatefulSet's pods: which are missing, and who should own those that are there (pure).

The policy says which owners a claim gets (`kruise.api.native.claim_retention`). Here are kube-controller-manager's
precautions: a claim that bears the name of an owner that is gone, or that somebody else manages, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kruise.api.meta import Object, OwnerReference
from kruise.api.native.claim_retention import DELETE, claim_owners
from kruise.api.native.ordinals import claim_name
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource, refers_to
from kruise.local.storage_binding.objects import CLAIMS, Claim
from kruise.local.workloads.objects import STATEFUL_SETS, ClaimTemplate, StatefulSet
from kruise.machinery import plan as plans
from kruise.machinery.codec import decode, to_builtins
from kruise.machinery.ownership import Owner, is_owned_by
from kruise.machinery.plan import Action, Target


class PodOfSet(NamedTuple):
    """A pod as its claims see it; one that is yet to be made has no uid."""

    name: str
    ordinal: int
    uid: str
    is_condemned: bool = False


Claims = Mapping[str, Claim]
"""By name, within the namespace of the set."""


def names(stateful_set: StatefulSet, ordinal: int) -> dict[str, ClaimTemplate]:
    """The names of a pod's claims, with their templates."""
    workload = stateful_set.metadata.name
    templates = stateful_set.spec.volume_claim_templates
    return {claim_name(item.metadata.name, workload, ordinal): item for item in templates}


def missing(stateful_set: StatefulSet, pod: PodOfSet, claims: Claims) -> list[Action]:
    """Makes what the pod needs and nobody has made. A claim that is there is taken as it is."""
    return [
        plans.create(CLAIMS, _body(stateful_set, name, template, pod), reason=f"pod {pod.name} needs it")
        for name, template in names(stateful_set, pod.ordinal).items()
        if name not in claims
    ]


def being_deleted(stateful_set: StatefulSet, pod: PodOfSet, claims: Claims) -> str:
    """Why the pod cannot have its claims now; empty: it can."""
    gone = [name for name in names(stateful_set, pod.ordinal) if _is_deleted(claims.get(name))]
    told = [f"pvc {name} is being deleted" for name in gone]
    return f"[{', '.join(told)}]" if len(told) > 1 else "".join(told)


def _is_deleted(claim: Claim | None) -> bool:
    return claim is not None and claim.metadata.deletion_timestamp is not None


def _body(stateful_set: StatefulSet, name: str, template: ClaimTemplate, pod: PodOfSet) -> dict[str, Any]:
    given, selector = template.metadata, stateful_set.spec.selector
    labels = {**given.labels, **(selector.match_labels if selector is not None else {})}
    metadata: dict[str, Any] = {"name": name, "namespace": stateful_set.metadata.namespace, "labels": labels}
    if given.annotations:
        metadata["annotations"] = dict(given.annotations)
    owners = claim_owners(stateful_set.spec.persistent_volume_claim_retention_policy, is_condemned=pod.is_condemned)
    if owners.workload:
        metadata["ownerReferences"] = [Owner.of(STATEFUL_SETS, stateful_set).reference()]
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": metadata,
        "spec": decode(template.spec, dict[str, Any]),
    }


# Owners


def is_stale(stateful_set: StatefulSet, pod: PodOfSet, claims: Claims) -> bool:
    """A claim still belongs to an earlier pod of this name, and will go with it: the new pod must not use it."""
    if stateful_set.spec.persistent_volume_claim_retention_policy.when_scaled != DELETE:
        return False
    return any(_has_stale(claim, PODS, pod.name, pod.uid) for claim in _of_pod(stateful_set, pod, claims))


def corrections(stateful_set: StatefulSet, pod: PodOfSet, claims: Claims) -> list[Action]:
    """Gives the claims of a pod the owners that the policy says."""
    return [
        plans.patch(
            Target.of(CLAIMS, claim),
            {"metadata": {"ownerReferences": _wanted(claim, stateful_set, pod)}},
            uid=claim.metadata.uid,
            resource_version=claim.metadata.resource_version,
            reason="its owners are not those of the retention policy",
        )
        for claim in _of_pod(stateful_set, pod, claims)
        if not _is_up_to_date(claim, stateful_set, pod)
    ]


def managed_by_others(stateful_set: StatefulSet, pod: PodOfSet, claims: Claims) -> list[str]:
    """The claims for which the policy is ignored."""
    found = _of_pod(stateful_set, pod, claims)
    return [claim.metadata.name for claim in found if _has_other_manager(claim, stateful_set, pod)]


def _of_pod(stateful_set: StatefulSet, pod: PodOfSet, claims: Claims) -> Iterable[Claim]:
    return (claims[name] for name in names(stateful_set, pod.ordinal) if name in claims)


def _names(reference: OwnerReference, resource: Resource[Any], name: str) -> bool:
    return reference.name == name and refers_to(reference, resource)


def _has_stale(claim: Object, resource: Resource[Any], name: str, uid: str) -> bool:
    """It names the owner, but means another one of the same name."""
    first = next((item for item in claim.metadata.owner_references if _names(item, resource, name)), None)
    return first is not None and first.uid != uid


def _has_other_manager(claim: Claim, stateful_set: StatefulSet, pod: PodOfSet) -> bool:
    if stateful_set.spec.persistent_volume_claim_retention_policy.retains_all:
        return False
    for item in claim.metadata.owner_references:
        if _names(item, STATEFUL_SETS, stateful_set.metadata.name):
            if item.uid != stateful_set.metadata.uid:
                return True
        elif _names(item, PODS, pod.name):
            if item.uid != pod.uid:
                return True
        elif item.controller:
            return True
    return False


def _is_up_to_date(claim: Claim, stateful_set: StatefulSet, pod: PodOfSet) -> bool:
    uid = stateful_set.metadata.uid
    if _has_stale(claim, STATEFUL_SETS, stateful_set.metadata.name, uid) or _has_stale(claim, PODS, pod.name, pod.uid):
        return True  # it belongs to those who were here before, and is theirs to lose
    has_set, has_pod = is_owned_by(claim, uid), is_owned_by(claim, pod.uid)
    if _has_other_manager(claim, stateful_set, pod):
        return not has_set and not has_pod
    ours = (uid, pod.uid)
    if any(item.uid in ours and not item.controller for item in claim.metadata.owner_references):
        return False
    policy = stateful_set.spec.persistent_volume_claim_retention_policy
    return (has_set, has_pod) == claim_owners(policy, is_condemned=pod.is_condemned)


def _wanted(claim: Claim, stateful_set: StatefulSet, pod: PodOfSet) -> list[dict[str, Any]]:
    name = stateful_set.metadata.name
    others = [
        to_builtins(item)
        for item in claim.metadata.owner_references
        if not _names(item, STATEFUL_SETS, name) and not _names(item, PODS, pod.name)
    ]
    if _has_other_manager(claim, stateful_set, pod):
        return others
    owners = claim_owners(stateful_set.spec.persistent_volume_claim_retention_policy, is_condemned=pod.is_condemned)
    owner = Owner.of(STATEFUL_SETS, stateful_set)
    if owners.workload:
        others.append(owner.reference())
    if owners.pod:
        others.append(Owner(PODS, owner.namespace, pod.name, pod.uid).reference())
    return others
