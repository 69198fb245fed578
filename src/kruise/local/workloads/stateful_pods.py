"""The writes that concern one pod of a StatefulSet: making it, giving it back its identity, and its claims (pure)."""

from __future__ import annotations

from typing import Any

from kruise.api.native.ordinals import POD_INDEX_LABEL, POD_NAME_LABEL
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.keys import REVISION_LABEL
from kruise.local.workloads import stateful_claims, templates
from kruise.local.workloads.objects import STATEFUL_SETS, StatefulSet
from kruise.local.workloads.stateful_claims import Claims
from kruise.local.workloads.stateful_members import Member
from kruise.machinery import plan as plans
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Chain, Target


def creation(
    stateful_set: StatefulSet, member: Member, template: dict[str, Any], revision: str, claims: Claims
) -> Chain:
    """Claims first, so that the pod finds them."""
    owner = Owner.of(STATEFUL_SETS, stateful_set)
    body = templates.new_pod(
        template,
        name=member.name,
        namespace=owner.namespace,
        generate_name=f"{owner.name}-",
        owner=owner.reference(),
        more_labels={**_identity(member), REVISION_LABEL: revision},
    )
    spec = {**body["spec"], "hostname": member.name}
    if stateful_set.spec.service_name:
        spec["subdomain"] = stateful_set.spec.service_name
    volumes = _volumes(stateful_set, member, spec.get("volumes") or ())
    if volumes:
        spec["volumes"] = volumes
    create = plans.create(PODS, {**body, "spec": spec}, reason="its ordinal has no pod", owner_uid=owner.uid)
    return (*with_claims(stateful_set, member, claims), create)


def with_claims(stateful_set: StatefulSet, member: Member, claims: Claims) -> Chain:
    """Makes the claims that are missing and corrects the owners of the others."""
    pod = member.of_set
    made = stateful_claims.missing(stateful_set, pod, claims)
    return (*made, *stateful_claims.corrections(stateful_set, pod, claims))


def restoration(stateful_set: StatefulSet, member: Member, claims: Claims) -> Chain:
    """Gives the pod its identity, volumes and claims back; nothing where it has them."""
    pod = member.pod
    assert pod is not None
    patch: dict[str, Any] = {}
    if pod.metadata.labels.get(POD_NAME_LABEL) != member.name:
        patch["metadata"] = {"labels": _identity(member)}
    has_storage = _has_storage(stateful_set, member, pod)
    writes: list[Action] = []
    if not has_storage:
        # The API server will refuse this, and its refusal is what people have to know about.
        patch["spec"] = {"volumes": _volumes(stateful_set, member, ())}
        writes += stateful_claims.missing(stateful_set, member.of_set, claims)
    writes += stateful_claims.corrections(stateful_set, member.of_set, claims)
    if patch:
        reason = "it lacks the identity or the storage of its ordinal"
        writes.append(plans.patch(Target.of(PODS, pod), patch, uid=pod.metadata.uid, reason=reason))
    return tuple(writes)


def _identity(member: Member) -> dict[str, str]:
    return {POD_NAME_LABEL: member.name, POD_INDEX_LABEL: str(member.ordinal)}


def _volumes(stateful_set: StatefulSet, member: Member, others: Any) -> list[dict[str, Any]]:
    """Those of the claims, in place of volumes of the same name."""
    own = {item.metadata.name: name for name, item in stateful_claims.names(stateful_set, member.ordinal).items()}
    volumes: list[dict[str, Any]] = [
        {"name": volume, "persistentVolumeClaim": {"claimName": name}} for volume, name in own.items()
    ]
    return volumes + [volume for volume in others if volume.get("name") not in own]


def _has_storage(stateful_set: StatefulSet, member: Member, pod: Pod) -> bool:
    mounted = {
        item.name: item.persistent_volume_claim.claim_name
        for item in pod.spec.volumes
        if item.persistent_volume_claim is not None
    }
    wanted = stateful_claims.names(stateful_set, member.ordinal)
    return all(mounted.get(template.metadata.name) == name for name, template in wanted.items())
