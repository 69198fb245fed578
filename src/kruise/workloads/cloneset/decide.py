"""What a CloneSet needs, decided from a snapshot (CS-63 to CS-69).

The phases in order: the revision of the template, pods that are released, claims that are cleaned up, images pulled
ahead, scaling, updating (only if scaling changed nothing), beside them the refresh of pods that are on their way, and
the bookkeeping in the end.
"""

from __future__ import annotations

import dataclasses

from kruise.machinery.plan import Phase, Plan
from kruise.workloads.cloneset import scale, update
from kruise.workloads.cloneset.claims import clean_claims
from kruise.workloads.cloneset.failures import believed, failures_of, stopped
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.predownload import pull_images
from kruise.workloads.cloneset.scale import ScaleStep
from kruise.workloads.cloneset.situation import Snapshot, situation_of
from kruise.workloads.cloneset.status import figures
from kruise.workloads.shared import waiting
from kruise.workloads.shared.rollout_revisions import history_phase, revision_phase


def decide(snapshot: Snapshot) -> Plan:
    situation = situation_of(snapshot)
    if situation.owner.is_deleted:
        counted = figures(situation)
        return Plan(memo=Memo(figures=counted, update_revision=counted.update_revision))
    situation = believed(situation)
    failures = failures_of(situation)
    counted = figures(situation, current_revision=failures.current_revision)
    situation = stopped(situation, failures)
    scaling = scale.scale(situation)
    must_wait = scaling.phase is not None and _is_in_the_way(scaling, snapshot)
    if must_wait:
        scaling = dataclasses.replace(scaling, phase=None, events=())
    updating = update.update(situation, touched=scaling.touched, failures=failures, may_move=not must_wait)
    held = (*scaling.held, *updating.held)
    waits = waiting.of_pods(situation.facts, held, situation.now)
    phases = (
        revision_phase(situation.choice),
        scale.release(situation),
        clean_claims(situation),
        *pull_images(situation, counted.updated_ready),
        *_pods(scaling.phase, updating),
        update.spec_write(situation),
        history_phase(
            situation.history,
            in_use=(situation.current, situation.update),
            pods=[*(fact.pod for fact in situation.facts), *situation.inactive],
            limit=snapshot.cloneset.spec.revision_history_limit,
            named=snapshot.cloneset.status.current_revision,
        ),
    )
    memo = Memo.of_rollout(
        updating, failures, waits, figures=counted, events=scaling.events, update_revision=counted.update_revision
    )
    return Plan(
        phases=tuple(phase for phase in phases if phase is not None and phase.chains),
        held=held,
        wakes=(*updating.wakes, *failures.wakes, *waits.wakes),
        memo=memo,
    )


def _is_in_the_way(scaling: ScaleStep, snapshot: Snapshot) -> bool:
    """Whom scaling takes depends on where the pods are. While some are moving, it waits until they have arrived."""
    pending, namespace = snapshot.pending, snapshot.cloneset.metadata.namespace
    return pending.moving > 0 or any(pending.has(namespace, name) for name in scaling.touched)


def _pods(scaling: Phase | None, updating: update.UpdateStep) -> tuple[Phase, ...]:
    """Pods on their way are refreshed while others are made, deleted or moved: neither has to wait for the other."""
    if scaling is not None:
        return scaling, dataclasses.replace(updating.refresh, alongside=True), updating.budget, updating.update
    if updating.update.chains:
        return updating.budget, updating.update, dataclasses.replace(updating.refresh, alongside=True)
    return (updating.refresh,)
