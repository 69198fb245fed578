"""New pods of a StatefulSet: their revision, identity and claims, and the writes that make them (ST-35 to ST-38, ST-55
to ST-57, ST-81)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.ordinals import POD_INDEX_LABEL, POD_NAME_LABEL, claim_name
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.inplace import keys, lifecycle
from kruise.inplace.lifecycle import State
from kruise.machinery import plan as plans
from kruise.machinery.plan import Action, Cause, Chain
from kruise.machinery.revision_names import is_revision
from kruise.workloads.shared.blueprint import PodBlueprint
from kruise.workloads.shared.claims import ClaimTemplate, claim_body, mounted_claims
from kruise.workloads.statefulset.causes import CLAIM_LEAVING
from kruise.workloads.statefulset.retention import claims_of, is_stale, owners_of_new_claim
from kruise.workloads.statefulset.situation import Situation, Slot

INDEX_GATE = "PodIndexLabel"
PREPARING_AS_NEW_GATE = "PreparingUpdateAsUpdate"


def identity_labels(situation: Situation, slot: Slot) -> dict[str, str]:
    """ST-37."""
    index = {POD_INDEX_LABEL: str(slot.ordinal)} if situation.gate(INDEX_GATE) else {}
    return {POD_NAME_LABEL: slot.name, **index}


def revision_labels(revision: ControllerRevision) -> Mapping[str, str]:
    return {keys.REVISION_LABEL: revision.metadata.name}


def planned_revisions(situation: Situation, missing: Sequence[Slot]) -> dict[str, ControllerRevision]:
    """The revision that each of the missing pods gets, by its name."""
    limits = situation.limits
    if limits.is_stopped:
        return {slot.name: situation.current for slot in missing}
    if limits.is_on_delete:
        return {slot.name: situation.update for slot in missing}
    if not limits.is_unordered:
        kept = set(situation.ordinals[: limits.partition])
        return {slot.name: situation.current if slot.ordinal in kept else situation.update for slot in missing}
    old = sum(slot.pod is not None and not is_updated(situation, slot) for slot in situation.slots)
    planned: dict[str, ControllerRevision] = {}
    for slot in missing:
        is_kept = old < limits.partition
        planned[slot.name] = situation.current if is_kept else situation.update
        old += is_kept
    return planned


def is_updated(situation: Situation, slot: Slot) -> bool:
    """Whether the pod counts as being at the update revision (ST-45)."""
    pod = slot.pod
    if pod is None:
        return False
    labels = pod.metadata.labels
    is_preparing = labels.get(keys.STATE_LABEL) == State.PREPARING_UPDATE and situation.gate(PREPARING_AS_NEW_GATE)
    return is_preparing or carries(pod, situation.update)


def carries(pod: Pod, revision: ControllerRevision) -> bool:
    return is_revision(pod.metadata.labels.get(keys.REVISION_LABEL, ""), revision.metadata.name)


@dataclasses.dataclass
class Creator:
    """Makes pods of a pass. What pods of one revision have in common is worked out once."""

    situation: Situation
    _prints: dict[str, PodBlueprint] = dataclasses.field(default_factory=dict)

    def chain(self, slot: Slot, revision: ControllerRevision, reason: str) -> Chain:
        situation, owner = self.situation, self.situation.owner
        service = situation.statefulset.spec.service_name
        pod = self._print(revision).pod(
            slot.name,
            labels=identity_labels(situation, slot),
            claims={
                template.name: claim_name(template.name, owner.name, slot.ordinal)
                for template in situation.claim_templates
            },
            spec={"hostname": slot.name, **({"subdomain": service} if service else {})},
        )
        create = plans.create(PODS, pod, reason=reason, owner_uid=owner.uid)
        return (*missing_claims(situation, slot), create)

    def _print(self, revision: ControllerRevision) -> PodBlueprint:
        name = revision.metadata.name
        if name not in self._prints:
            situation = self.situation
            template = situation.templates[name]
            self._prints[name] = PodBlueprint.of(
                template,
                situation.owner,
                labels={**revision_labels(revision), keys.STATE_LABEL: self._first_state(template)},
                state_since=situation.now,
                in_place_gate=False,
                claims=(claim.name for claim in situation.claim_templates),
            )
        return self._prints[name]

    def _first_state(self, template: Mapping[str, Any]) -> str:
        """ST-100."""
        hooks = self.situation.statefulset.spec.lifecycle
        if hooks is None or hooks.pre_normal is None:
            return State.NORMAL.value
        given = template.get("metadata") or {}
        metadata = ObjectMeta(labels=given.get("labels") or {}, finalizers=tuple(given.get("finalizers") or ()))
        is_normal = lifecycle.is_fully_hooked(Pod(metadata=metadata), hooks.pre_normal)
        return (State.NORMAL if is_normal else State.PREPARING_NORMAL).value


def missing_claims(situation: Situation, slot: Slot) -> Chain:
    """What the pod needs and nobody has made. A claim that is there is taken as it is (ST-81)."""
    return tuple(_claims(situation, slot, situation.claim_templates))


def lost_claims(situation: Situation, slot: Slot, pod: Pod) -> Chain:
    """Claims that a pod mounts and that are gone before it could start (ST-84). A pod from before the template was
    added does not mount its claim, and needs none (ST-130)."""
    mounted, owner = mounted_claims((pod,)), situation.owner.name
    templates = [item for item in situation.claim_templates if claim_name(item.name, owner, slot.ordinal) in mounted]
    return tuple(_claims(situation, slot, templates))


def _claims(situation: Situation, slot: Slot, templates: Sequence[ClaimTemplate]) -> Iterator[Action]:
    owner = situation.owner
    for template in templates:
        name = claim_name(template.name, owner.name, slot.ordinal)
        if name not in situation.claims:
            body = claim_body(
                template,
                name=name,
                namespace=owner.namespace,
                labels=situation.statefulset.spec.selector.match_labels,
                owners=owners_of_new_claim(situation),
            )
            yield plans.create(PERSISTENT_VOLUME_CLAIMS, body, reason=f"pod {slot.name} mounts it")


def leaving_claim(situation: Situation, slot: Slot) -> Cause | None:
    """A claim that the pod cannot have now, because it is on its way out (ST-81, ST-88)."""
    for claim in claims_of(situation, slot):
        name = claim.metadata.name
        if claim.metadata.deletion_timestamp is not None:
            return CLAIM_LEAVING.cause(
                f"pod {slot.name} is missing, and its claim {name} is being deleted",
                details={"claim": name},
                remedy="it goes on when the claim is gone; see who still uses it",
            )
        if is_stale(situation, slot, claim):
            return CLAIM_LEAVING.cause(
                f"pod {slot.name} is missing, and its claim {name} goes with an earlier pod of this name",
                details={"claim": name},
                remedy="it goes on when the garbage collector has removed the claim",
            )
    return None
