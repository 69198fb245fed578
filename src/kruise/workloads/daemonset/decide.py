"""What a DaemonSet needs, decided from a snapshot (DS section 9).

The phases in order: the revision of the template, pods that are adopted or released, images pulled ahead, pods that are
created and deleted, beside them the refresh of pods on their way, updates in place, and the bookkeeping in the end.
"""

from __future__ import annotations

import dataclasses

from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.machinery.plan import EventNote, Held, Phase, Plan, Target, Wake
from kruise.machinery.revision_names import is_revision
from kruise.machinery.selectors import from_label_selector
from kruise.machinery.wording import plural
from kruise.workloads.daemonset.causes import SELECTS_ALL
from kruise.workloads.daemonset.history import merge_twins
from kruise.workloads.daemonset.keeping import Keeping, keep
from kruise.workloads.daemonset.memo import Memo
from kruise.workloads.daemonset.predownload import pull_images
from kruise.workloads.daemonset.situation import Situation, Snapshot, situation_of
from kruise.workloads.daemonset.status import Figures, figures
from kruise.workloads.daemonset.update import work_on_pods
from kruise.workloads.shared import waiting
from kruise.workloads.shared.adoption import adoption_phase, release_phase
from kruise.workloads.shared.causes import NEXT
from kruise.workloads.shared.events import warning
from kruise.workloads.shared.failures import NO_BUDGET, Asked, Failures, failures_of
from kruise.workloads.shared.rollout_revisions import history_phase, revision_phase

SELECTING_ALL = "This daemon set is selecting all pods. A non-empty selector is required."


def decide(snapshot: Snapshot) -> Plan:
    if snapshot.daemon_set.metadata.deletion_timestamp is not None:
        return Plan()  # its pods go with it, and its revisions may be gone already (DS-34)
    if from_label_selector(snapshot.daemon_set.spec.selector).is_empty:
        return _selecting_all(snapshot)
    situation = situation_of(snapshot)
    counted = figures(situation)
    first = (
        revision_phase(situation.choice),
        release_phase(situation.owner, situation.released),
        adoption_phase(
            situation.owner,
            situation.adopted,
            generation=situation.daemon_set.metadata.generation,
            revisions=situation.history,
        ),
        *merge_twins(situation),
    )
    if situation.adopted:
        return _adopting(situation, counted, first)
    failures = _failures(situation)
    keeping = keep(situation.nodes, situation.limits, snapshot.delays, snapshot.now)
    work = work_on_pods(situation, keeping, failures)
    waits = waiting.of_pods(situation.facts, work.held, situation.now)
    phases = (*first, *pull_images(situation, counted), *work.phases, _history(situation))
    memo = Memo(
        figures=counted,
        events=tuple(_failed_pods(keeping)),
        moves=work.mover.moves,
        target_revision=situation.update.metadata.name,
        update_revision=situation.update.metadata.name,
        update_error=work.mover.error,
        failure_budget=failures.judgement if failures is not NO_BUDGET else None,
        waiting=waits,
        delays=keeping.delays,
        is_complete=not work.is_keeping,
    )
    return Plan(
        phases=tuple(phase for phase in phases if phase is not None and phase.chains),
        held=work.held,
        wakes=(*work.mover.wakes, *failures.wakes, *waits.wakes, *_wakes(keeping)),
        memo=memo,
    )


def _selecting_all(snapshot: Snapshot) -> Plan:
    """Only one from before there was admission can be so: its selector never changes, so it does nothing (DS-34)."""
    cause = SELECTS_ALL.cause(SELECTING_ALL, remedy="delete it, and create it anew with a selector of its own pods")
    return Plan(held=(Held(target=Target.of(DAEMON_SETS, snapshot.daemon_set), causes=(cause,)),))


def _adopting(situation: Situation, counted: Figures, phases: tuple[Phase | None, ...]) -> Plan:
    """Nothing else is decided until the adopted pods are there as its own: their nodes must not get a second pod."""
    cause = NEXT.cause(f"first come {plural(len(situation.adopted), 'pod')} that nobody controls: they are adopted")
    target = Target.of(situation.owner.resource, situation.daemon_set)
    return Plan(
        phases=tuple(phase for phase in phases if phase is not None and phase.chains),
        held=(Held(target=target, causes=(cause,)),),
        memo=Memo(figures=counted, update_revision=situation.update.metadata.name, is_complete=False),
    )


def _failures(situation: Situation) -> Failures:
    """New pods always have the present template (DS-42), so no pod can go back: a used up budget stops the rollout."""
    daemon_set = situation.daemon_set
    update = situation.update.metadata.name
    memory = daemon_set.status.failure_budget
    is_over = (
        is_revision(daemon_set.status.update_revision, update)
        and all(fact.is_new for fact in situation.facts)
        and (memory is None or memory.revision != update)
    )
    asked = Asked(
        annotations=daemon_set.metadata.annotations,
        memory=memory,
        conditions=daemon_set.status.conditions,
        replicas=situation.desired,
        current_revision=update if is_over else "",
        can_go_back=False,
        names_current=False,
    )
    return failures_of(situation, asked)


def _failed_pods(keeping: Keeping) -> list[EventNote]:
    return [warning("FailedDaemonPod", text) for text in keeping.failed]


def _wakes(keeping: Keeping) -> tuple[Wake, ...]:
    if not keeping.delayed:
        return ()
    return (Wake(after=min(keeping.delayed.values()), reason="a failed pod may be replaced then"),)


def _history(situation: Situation) -> Phase:
    """DS-26."""
    pods = [*(fact.pod for fact in situation.facts), *situation.inactive]
    phase = history_phase(
        situation.history,
        in_use=(situation.update,),
        pods=pods,
        limit=situation.daemon_set.spec.revision_history_limit,
    )
    return dataclasses.replace(phase, unless_done=("create", "delete"))
