"""What a StatefulSet needs, decided from a snapshot (ST-59).

The phases in order: pods and revisions that are adopted, the revision of the template, pods that are released, images
pulled ahead, claims, pods that are made and deleted, updates, beside them the refresh of pods that are on their way,
and the bookkeeping in the end.
"""

from __future__ import annotations

from kruise.machinery.plan import Plan
from kruise.workloads.shared import waiting
from kruise.workloads.shared.adoption import release_phase
from kruise.workloads.shared.rollout_revisions import history_phase, revision_phase
from kruise.workloads.statefulset import scale, update
from kruise.workloads.statefulset.adoption import adopt, adopting
from kruise.workloads.statefulset.failures import believed, failures_of, stopped
from kruise.workloads.statefulset.memo import Memo
from kruise.workloads.statefulset.predownload import pull_images
from kruise.workloads.statefulset.situation import Snapshot, situation_of
from kruise.workloads.statefulset.status import figures
from kruise.workloads.statefulset.unmet import unmet


def decide(snapshot: Snapshot) -> Plan:
    situation = situation_of(snapshot)
    if situation.owner.is_deleted:
        counted = figures(situation)
        return Plan(memo=Memo(owner=situation.owner.name, figures=counted, update_revision=counted.update_revision))
    situation = believed(situation)
    failures = failures_of(situation)
    counted = figures(situation, current_revision=failures.current_revision)
    adoption = adopt(situation)
    if adoption.chains:
        return adopting(situation, counted, adoption)
    situation = stopped(situation, failures)
    scaling = scale.scale(situation)
    updating = update.update(situation, scaling, failures)
    held = (*scaling.held, *updating.held, *unmet(situation))
    waits = waiting.of_pods(situation.facts, held, situation.now)
    phases = (
        revision_phase(situation.choice),
        release_phase(situation.owner, situation.released),
        *pull_images(situation, counted.updated_ready),
        *scaling.phases,
        *updating.phases,
        history_phase(
            situation.history,
            in_use=(situation.current, situation.update),
            pods=[*(fact.pod for fact in situation.facts), *situation.inactive],
            limit=situation.statefulset.spec.revision_history_limit,
            named=situation.statefulset.status.current_revision,
        ),
    )
    remembered = {"owner": situation.owner.name, "figures": counted, "events": updating.events}
    memo = Memo.of_rollout(updating, failures, waits, update_revision=counted.update_revision, **remembered)
    return Plan(
        phases=tuple(phase for phase in phases if phase is not None and phase.chains),
        held=held,
        wakes=(*scaling.wakes, *updating.wakes, *failures.wakes, *waits.wakes),
        memo=memo,
    )
