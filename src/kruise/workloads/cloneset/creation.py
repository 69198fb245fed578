"""New pods of a CloneSet: their ids and bodies, and the writes that make them (CS-85).

What pods of one revision have in common is worked out once; per pod there is only a name and its volumes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.inplace import keys
from kruise.inplace.lifecycle import State
from kruise.machinery import names
from kruise.machinery import plan as plans
from kruise.machinery.plan import Chain, Held, Target
from kruise.machinery.revision_names import short_hash
from kruise.workloads.cloneset.claims import INSTANCE_ID_LABEL, claim_of_pod, reusable_ids, taken_ids
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared.blueprint import PodBlueprint
from kruise.workloads.shared.causes import TERMINATING
from kruise.workloads.shared.claims import ClaimTemplate, claim_name, claim_templates


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Creations:
    chains: tuple[Chain, ...] = ()
    held: tuple[Held, ...] = ()
    """Pods that cannot be made yet: their predecessor still has the name."""


def revision_labels(revision: str, *, short: bool) -> dict[str, str]:
    """The labels that tell a pod's revision (IPU-21). `short`: the gate CloneSetShortHash is on."""
    hashed = short_hash(revision)
    return {keys.REVISION_LABEL: hashed if short else revision, keys.TEMPLATE_HASH_LABEL: hashed}


def create_pods(situation: Situation, *, at_current: int, at_update: int, reason: str) -> Creations:
    """Pods of the current and of the update revision, each in a chain with the claims that it lacks."""
    count = at_current + at_update
    if count <= 0:
        return Creations()
    reusable = reusable_ids(situation)
    templates = claim_templates(situation.cloneset.spec.volume_claim_templates)
    present = {claim.metadata.name for claim in situation.snapshot.claims}
    prints = {
        revision: _blueprint(situation, revision, templates)
        for revision, wanted in (
            (situation.current.metadata.name, at_current),
            (situation.update.metadata.name, at_update),
        )
        if wanted > 0
    }
    chains: list[Chain] = []
    held: list[Held] = []
    for position, instance_id in enumerate(choose_ids(situation, count, list(reusable))):
        revision = situation.current if position < at_current else situation.update
        predecessor = reusable.get(instance_id)
        if predecessor is not None:
            held.append(_waits_for(predecessor))
            continue
        owner = situation.owner.name
        pod = prints[revision.metadata.name].pod(
            f"{owner}-{instance_id}",
            labels={INSTANCE_ID_LABEL: instance_id},
            claims={template.name: claim_name(template.name, owner, instance_id) for template in templates},
        )
        action = plans.create(PODS, pod, reason=reason, owner_uid=situation.owner.uid)
        chains.append((*_missing_claims(situation, templates, instance_id, present), action))
    return Creations(chains=tuple(chains), held=tuple(held))


def choose_ids(situation: Situation, count: int, reusable: Sequence[str]) -> list[str]:
    """Ids for new pods, sorted: those whose claims wait for a pod first, then new ones that nobody has."""
    taken_over = list(reusable[:count])
    prefix = f"{situation.owner.name}-"
    # A pod whose id label was changed still has its name.
    named = {pod.metadata.name.removeprefix(prefix) for pod in situation.snapshot.pods}
    new = names.choose_suffixes(
        count - len(taken_over),
        owner_uid=situation.owner.uid,
        seed=situation.snapshot.seed,
        taken=taken_ids(situation) | named,
    )
    return sorted([*taken_over, *new])


def _missing_claims(
    situation: Situation, templates: Sequence[ClaimTemplate], instance_id: str, present: Collection[str]
) -> Chain:
    owner = situation.owner
    return tuple(
        plans.create(
            PERSISTENT_VOLUME_CLAIMS,
            claim_of_pod(template, situation, instance_id),
            reason=f"pod {owner.name}-{instance_id} mounts it",
            owner_uid=owner.uid,
        )
        for template in templates
        if claim_name(template.name, owner.name, instance_id) not in present
    )


def _waits_for(predecessor: Pod) -> Held:
    name = predecessor.metadata.name
    cause = TERMINATING.cause(
        f"pod {name} takes over the claims of its predecessor, which is still terminating",
        remedy="it is created as soon as the terminating pod is gone",
    )
    return Held(target=Target(PODS, predecessor.metadata.namespace, name), causes=(cause,))


def _blueprint(situation: Situation, revision: str, claims: Sequence[ClaimTemplate]) -> PodBlueprint:
    return PodBlueprint.of(
        situation.templates[revision],
        situation.owner,
        labels={
            **revision_labels(revision, short=situation.gate("CloneSetShortHash")),
            keys.STATE_LABEL: State.PREPARING_NORMAL.value,
        },
        state_since=situation.now,
        in_place_gate=True,
        claims=(claim.name for claim in claims),
    )
