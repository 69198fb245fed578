"""Pods and revisions of nobody that a StatefulSet takes over (ST-49)."""

from __future__ import annotations

from kruise.machinery import ownership
from kruise.machinery.plan import Held, Phase, Plan, Target
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.shared.adoption import adoption_phase
from kruise.workloads.shared.causes import NEXT
from kruise.workloads.shared.rollout_revisions import revision_phase
from kruise.workloads.statefulset.memo import Memo
from kruise.workloads.statefulset.situation import Situation, has_ordinal_of
from kruise.workloads.statefulset.status import Figures


def adopt(situation: Situation) -> Phase:
    owner, statefulset = situation.owner, situation.statefulset
    claimed = ownership.claim(
        owner,
        situation.snapshot.others,
        from_label_selector(statefulset.spec.selector),
        belongs=lambda pod: has_ordinal_of(owner.name, pod),
    )
    generation = statefulset.metadata.generation
    return adoption_phase(owner, claimed.to_adopt, generation=generation, revisions=situation.history)


def adopting(situation: Situation, counted: Figures, adoption: Phase) -> Plan:
    """Whoever is missing, and whose turn it is, is known only when the adopted pods belong to the StatefulSet."""
    cause = NEXT.cause("pods or revisions that nobody controls are adopted first")
    target = Target.of(situation.owner.resource, situation.statefulset)
    revision = revision_phase(situation.choice)
    return Plan(
        phases=(adoption,) if revision is None else (revision, adoption),
        held=(Held(target=target, causes=(cause,)),),
        memo=Memo(owner=situation.owner.name, figures=counted, update_revision=counted.update_revision),
    )
