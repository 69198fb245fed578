"""When a probe is due, when its answers count, and what is reported (PRB-1 to PRB-11). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta

from kruise.api.apps.probes import (
    NODE_POD_PROBES,
    SUCCEEDED,
    UNKNOWN,
    ContainerProbe,
    ContainerProbeState,
    NodePodProbe,
    PodProbe,
    PodProbeStatus,
    Probe,
)
from kruise.api.native.pod import PODS
from kruise.daemon.probes.calls import Ask, Found
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, evolve, field, to_builtins
from kruise.machinery.plan import (
    Conclusion,
    EventNote,
    Job,
    Outcomes,
    Plan,
    Result,
    Target,
    Wake,
    single,
)
from kruise.machinery.times import format_time

REPEAT = timedelta(seconds=600)
"""A result that does not change is reported again after so long (PRB-9)."""
REPORT = "status"
MARGIN = 5.0
"""Seconds beyond its time-out after which a probe is given up: the runtime hangs."""
BEAT_OF_A_PROBE, LONGEST_BEAT = 0.001, 0.1
"""Seconds for which what happens to the probes of a node is gathered: a look costs by how many there are, and one look
at ten of them does what ten looks would."""


class Worker(Struct):
    """What is remembered of a probe between two looks."""

    probe: Probe
    due: datetime
    container_id: str = ""
    started_at: float = 0.0
    """When that container was started: it is not asked for again."""
    state: str = UNKNOWN
    message: str = ""
    is_known: bool = False
    """A container was seen, so there is something to report."""
    last: str = ""
    """What the last probe found."""
    run: int = 0
    """How often in a row."""
    answered: datetime | None = None
    """When the last probe began that told anything."""


class Ended(Struct):
    """A probe that was made."""

    began: datetime
    found: Found | None = None
    """None: it failed for a reason that says nothing about the container."""


class Snapshot(Struct):
    node: str
    probes: NodePodProbe
    now: datetime
    started: datetime
    """When the daemon began."""
    workers: dict[str, Worker] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    """Probes that were made since the last look, by worker."""
    running: tuple[str, ...] = ()
    """Workers whose probe is under way."""
    seed: int = 0


class Change(Struct):
    """A result that is reported for the first time, or has changed."""

    namespace: str
    pod: str
    uid: str
    state: str
    message: str = ""


class Memo(Struct):
    workers: dict[str, Worker]
    changes: tuple[Change, ...] = ()


def worker_name(entry: PodProbe, one: ContainerProbe) -> str:
    """PRB-1: another address is another worker."""
    return f"{entry.uid}/{entry.ip}/{one.container_name}/{one.name}"


def decide(snapshot: Snapshot) -> Plan:
    now = snapshot.now
    running = frozenset(snapshot.running)
    before = known_states(snapshot.probes)
    workers: dict[str, Worker] = {}
    jobs: list[Job] = []
    drops: list[str] = []
    for entry in snapshot.probes.spec.pod_probes:
        for one in entry.probes:
            name = worker_name(entry, one)
            worker = _worker(snapshot, name, one, before.get((entry.uid, one.name)))
            is_reset = name in snapshot.workers and _handler(snapshot.workers[name].probe) != _handler(one.probe)
            ended = snapshot.ended.get(name)
            if ended is not None and not is_reset:
                worker = after(worker, ended)
            if name in running and not is_reset:
                workers[name] = worker
                continue
            if name in running or ended is not None:
                drops.append(name)
            if is_due(worker, now):
                jobs.append(_job(snapshot, name, entry, one, worker))
                worker = evolve(worker, due=next_due(worker, now))
            workers[name] = worker
    drops += [name for name in (*snapshot.running, *snapshot.ended) if name not in workers]
    statuses, changes = reported(snapshot, workers, before)
    write = statuses != snapshot.probes.status.pod_probe_statuses
    return Plan(
        phases=(single(REPORT, _write(snapshot.probes, statuses)),) if write else (),
        wakes=_wakes(workers, jobs, snapshot),
        jobs=tuple(jobs),
        drops=tuple(dict.fromkeys(drops)),
        memo=Memo(workers=workers, changes=changes if write else ()),
    )


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    failed = next((outcome for outcome in outcomes if outcome.result is Result.FAILED), None)
    if failed is not None:
        return Conclusion(retry=failed.message)
    if not any(outcome.result is Result.DONE for outcome in outcomes.within(REPORT)):
        return Conclusion()
    return Conclusion(events=tuple(map(_event, plan.memo_as(Memo).changes)))


def _event(change: Change) -> EventNote:
    """Section 5: Normal, whatever the result."""
    reason = "KruiseProbeSucceeded" if change.state == SUCCEEDED else "KruiseProbeFailed"
    target = Target(PODS, change.namespace, change.pod)
    return EventNote(reason=reason, message=change.message, target=target, uid=change.uid)


# Workers


def _worker(snapshot: Snapshot, name: str, one: ContainerProbe, before: ContainerProbeState | None) -> Worker:
    known = snapshot.workers.get(name)
    if known is None:
        return _new_worker(snapshot, name, one, before)
    if known.probe == one.probe:
        return known
    if _handler(known.probe) != _handler(one.probe):
        # What was found does not answer what is asked now.
        return Worker(
            probe=one.probe,
            due=snapshot.now,
            container_id=known.container_id,
            started_at=known.started_at,
            is_known=known.is_known,
        )
    return evolve(known, probe=one.probe)


def _new_worker(snapshot: Snapshot, name: str, one: ContainerProbe, before: ContainerProbeState | None) -> Worker:
    """What was reported before this daemon began stands until something else is found; it is not known of which
    container, but the first probe tells when that was started (DMN-98)."""
    period = period_of(one.probe)
    wait = timedelta()
    if snapshot.now - snapshot.started < period:
        wait = period * _fraction(snapshot.seed, name)
    worker = Worker(probe=one.probe, due=snapshot.now + wait)
    if before is None or before.state == UNKNOWN:
        return worker
    return evolve(worker, state=before.state, message=before.message)


def is_due(worker: Worker, now: datetime) -> bool:
    """Also when that is more than a period away: the clock was put back, and nobody waits for it to catch up."""
    return worker.due <= now or worker.due - now > period_of(worker.probe)


def next_due(worker: Worker, now: datetime) -> datetime:
    """A period after it was due, not after it was looked at: however late looks are, the pace of probes is kept. Who is
    a whole period late begins anew."""
    period = period_of(worker.probe)
    is_in_time = timedelta() <= now - worker.due < period
    return (worker.due if is_in_time else now) + period


def beat_of(probes: int) -> float:
    return min(LONGEST_BEAT, BEAT_OF_A_PROBE * probes)


def _handler(probe: Probe) -> tuple[object, ...]:
    return probe.exec, probe.http_get, probe.tcp_socket


def period_of(probe: Probe) -> timedelta:
    return timedelta(seconds=max(1, probe.period_seconds))


def _fraction(seed: int, name: str) -> float:
    """The same for the same daemon, so that a decision can be made again."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2.0**64


def _job(snapshot: Snapshot, name: str, entry: PodProbe, one: ContainerProbe, worker: Worker) -> Job:
    call = Ask(
        node=snapshot.node,
        uid=entry.uid,
        ip=entry.ip,
        container=one.container_name,
        probe=one.probe,
        container_id=worker.container_id,
        started_at=worker.started_at,
    )
    return Job(name=name, call=call, seconds=max(1, one.probe.timeout_seconds) + MARGIN)


def after(worker: Worker, ended: Ended) -> Worker:
    """The worker once a probe was made (PRB-3)."""
    found = ended.found
    if found is None or not found.container_id:
        return worker
    if found.container_id != worker.container_id:
        worker = _with_container(worker, found)
    if found.started_at != worker.started_at:
        worker = evolve(worker, started_at=found.started_at)
    if not found.state:
        if not found.message or worker.state != UNKNOWN:
            return worker
        return evolve(worker, message=found.message, answered=ended.began)
    run = worker.run + 1 if worker.last == found.state else 1
    worker = evolve(worker, last=found.state, run=run, answered=ended.began)
    if found.is_running and run < _threshold(worker.probe, found.state):
        return worker
    return evolve(worker, state=found.state, message=found.message)


def _with_container(worker: Worker, found: Found) -> Worker:
    """Results are about one container: another one begins anew. The first one that a daemon sees may be the one that
    was reported of before it began."""
    is_first = not worker.container_id and worker.state != UNKNOWN
    worker = evolve(worker, container_id=found.container_id, is_known=True, last="", run=0)
    return worker if is_first else evolve(worker, state=UNKNOWN, message="")


def _threshold(probe: Probe, state: str) -> int:
    return max(1, probe.success_threshold if state == SUCCEEDED else probe.failure_threshold)


def _wakes(workers: Mapping[str, Worker], jobs: list[Job], snapshot: Snapshot) -> tuple[Wake, ...]:
    """Who has a probe under way is looked at when it ends."""
    busy = {*(job.name for job in jobs), *snapshot.running}
    due = [worker.due for name, worker in workers.items() if name not in busy]
    if not due:
        return ()
    left = max(0.0, (min(due) - snapshot.now).total_seconds())
    return (Wake(after=left + beat_of(len(workers)), reason="the next probes are due"),)


# What is reported


def reported(
    snapshot: Snapshot, workers: Mapping[str, Worker], known: Mapping[tuple[str, str], ContainerProbeState]
) -> tuple[tuple[PodProbeStatus, ...], tuple[Change, ...]]:
    """The results of all probes of the spec: a new one where something is known, else what was reported before."""
    found: list[PodProbeStatus] = []
    changes: list[Change] = []
    for entry in snapshot.probes.spec.pod_probes:
        states = []
        for one in entry.probes:
            before = known.get((entry.uid, one.name))
            worker = workers.get(worker_name(entry, one))
            state = _state(one.name, before, worker, snapshot.now)
            if state is None:
                continue
            states.append(state)
            if before is None or (before.state, before.message) != (state.state, state.message):
                change = Change(
                    namespace=entry.namespace,
                    pod=entry.name,
                    uid=entry.uid,
                    state=state.state,
                    message=state.message,
                )
                changes.append(change)
        if states:
            found.append(
                PodProbeStatus(name=entry.name, namespace=entry.namespace, uid=entry.uid, probe_states=tuple(states))
            )
    return tuple(found), tuple(changes)


def _state(
    name: str, before: ContainerProbeState | None, worker: Worker | None, now: datetime
) -> ContainerProbeState | None:
    """PRB-9, PRB-10."""
    if worker is None or not worker.is_known:
        return before
    time = now.replace(microsecond=0)
    if before is not None and (before.state, before.message) == (worker.state, worker.message):
        return evolve(before, last_probe_time=time) if _is_due_again(before, worker) else before
    is_same_state = before is not None and before.state == worker.state
    since = before.last_transition_time if before is not None and is_same_state else time
    return ContainerProbeState(
        name=name, state=worker.state, message=worker.message, last_probe_time=time, last_transition_time=since
    )


def _is_due_again(before: ContainerProbeState, worker: Worker) -> bool:
    """A result is not made younger by probes that could not be made."""
    if worker.answered is None:
        return False
    return before.last_probe_time is None or worker.answered - before.last_probe_time >= REPEAT


def known_states(probes: NodePodProbe) -> dict[tuple[str, str], ContainerProbeState]:
    """What was reported before, by the pod's uid and the probe: read once, since every probe asks for its own."""
    return {
        (found.uid, state.name): state for found in probes.status.pod_probe_statuses for state in found.probe_states
    }


def _write(probes: NodePodProbe, statuses: tuple[PodProbeStatus, ...]) -> plans.Action:
    document = {"podProbeStatuses": [_form(one) for one in statuses]} if statuses else {}
    return plans.status_patch(
        Target.of(NODE_POD_PROBES, probes), document, uid=probes.metadata.uid, reason="results of probes"
    )


def _form(status: PodProbeStatus) -> dict[str, object]:
    states = []
    for state in status.probe_states:
        times = {"lastProbeTime": state.last_probe_time, "lastTransitionTime": state.last_transition_time}
        states.append(
            {
                **to_builtins(evolve(state, last_probe_time=None, last_transition_time=None)),
                **{name: format_time(time) for name, time in times.items() if time is not None},
            }
        )
    return {"name": status.name, "namespace": status.namespace, "uid": status.uid, "probeStates": states}
