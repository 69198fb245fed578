"""Liveness probes that the kubelet was kept from: run here, and a container that fails is stopped (ELP). Pure.

The pod chain of the manager has moved them into an annotation. The kubelet starts a container again that was stopped.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.api.apps.probes import FAILED, UNKNOWN, Probe
from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import PODS, ContainerPort
from kruise.daemon.kills import Kill, killing_note
from kruise.daemon.probes.calls import Ask, Found
from kruise.daemon.probes.decide import MARGIN, Ended, Worker, after, is_due, next_due, period_of
from kruise.machinery.codec import DecodeError, Struct, convert, decode, evolve, field
from kruise.machinery.plan import Conclusion, EventNote, EventType, Job, Outcomes, Plan, Target, Wake

STOP = "stop "
"""Before the name of a container: the job that stops it."""


class Watch(Struct):
    """A container and its probe."""

    name: str
    probe: Probe


class Snapshot(Struct):
    metadata: ObjectMeta
    node: str
    ip: str
    runtime: str
    grace: int
    watches: tuple[Watch, ...]
    now: datetime
    starting: tuple[str, ...] = ()
    """Containers whose startup probe has not succeeded yet."""
    workers: dict[str, Worker] = field(default_factory=dict)
    ended: dict[str, Ended] = field(default_factory=dict)
    running: tuple[str, ...] = ()
    """Names of jobs that are under way."""


class Failure(Struct):
    container: str
    message: str


class Memo(Struct):
    workers: dict[str, Worker]
    failures: tuple[Failure, ...] = ()


def watches_of(text: str, ports: dict[str, tuple[ContainerPort, ...]]) -> tuple[Watch, ...]:
    """What the annotation tells; nothing where somebody has made it unreadable."""
    try:
        found = decode(text.encode(), list[Any])
    except DecodeError:
        return ()
    watches = []
    for one in found:
        if not isinstance(one, dict) or one.get("name") not in ports:
            continue
        try:
            probe = convert(one.get("livenessProbe"), Probe)
        except DecodeError:
            continue
        watches.append(Watch(name=one["name"], probe=_with_number(probe, ports[one["name"]])))
    return tuple(watches)


def _with_number(probe: Probe, ports: tuple[ContainerPort, ...]) -> Probe:
    numbers = {port.name: port.container_port for port in ports if port.name}
    if probe.http_get is not None and isinstance(probe.http_get.port, str):
        port: int | str = numbers.get(probe.http_get.port, probe.http_get.port)
        return evolve(probe, http_get=evolve(probe.http_get, port=port))
    if probe.tcp_socket is not None and isinstance(probe.tcp_socket.port, str):
        port = numbers.get(probe.tcp_socket.port, probe.tcp_socket.port)
        return evolve(probe, tcp_socket=evolve(probe.tcp_socket, port=port))
    return probe


def decide(snapshot: Snapshot) -> Plan:
    workers: dict[str, Worker] = {}
    jobs: list[Job] = []
    drops: list[str] = []
    failures: list[Failure] = []
    waiting: set[str] = set()
    for watch in snapshot.watches:
        name = watch.name
        worker = snapshot.workers.get(name) or Worker(probe=watch.probe, due=snapshot.now)
        if worker.probe != watch.probe:
            worker = evolve(worker, probe=watch.probe)
        ended = snapshot.ended.get(name)
        is_starting = name in snapshot.starting
        found = ended.found if ended is not None else None
        if ended is not None and found is not None and found.is_running and not is_starting:
            # One that does not run has not failed its probe: it ended by itself, or is about to start.
            worker = after(worker, ended)
        if ended is not None:
            drops.append(name)
        if f"{STOP}{name}" in snapshot.ended:
            drops.append(f"{STOP}{name}")
        is_busy = name in snapshot.running or f"{STOP}{name}" in snapshot.running
        has_failed = found is not None and found.is_running and found.state == FAILED and worker.state == FAILED
        if is_starting:
            waiting.add(name)
        elif found is not None and has_failed and not is_busy:
            failures.append(Failure(container=name, message=worker.message))
            jobs.append(_stop(snapshot, watch, found))
            # It counts anew for the container that comes after it.
            later = snapshot.now + period_of(watch.probe)
            worker = evolve(worker, state=UNKNOWN, message="", last="", run=0, due=later)
        elif not is_busy and is_due(worker, snapshot.now):
            host = _host(watch.probe) or snapshot.ip
            call = Ask(
                node=snapshot.node,
                uid=snapshot.metadata.uid,
                ip=host,
                container=name,
                probe=watch.probe,
                container_id=worker.container_id,
                started_at=worker.started_at,
            )
            jobs.append(Job(name=name, call=call, seconds=max(1, watch.probe.timeout_seconds) + MARGIN))
            worker = evolve(worker, due=next_due(worker, snapshot.now))
        workers[name] = worker
    busy = {
        *waiting,
        *(job.name.removeprefix(STOP) for job in jobs),
        *(name.removeprefix(STOP) for name in snapshot.running),
    }
    due = [worker.due for name, worker in workers.items() if name not in busy]
    wakes = (Wake(after=max(0.0, (min(due) - snapshot.now).total_seconds()), reason="a probe is due"),) if due else ()
    return Plan(jobs=tuple(jobs), drops=tuple(drops), wakes=wakes, memo=Memo(workers=workers, failures=tuple(failures)))


def _host(probe: Probe) -> str:
    """Whom the kubelet would ask instead of the pod."""
    action = probe.http_get or probe.tcp_socket
    return action.host if action is not None else ""


def _stop(snapshot: Snapshot, watch: Watch, found: Found) -> Job:
    """With its preStop hook, and the grace of the probe, of the container, or of the pod, whichever is told first."""
    graces = (watch.probe.termination_grace_period_seconds, found.ending.grace, snapshot.grace)
    call = Kill(
        node=snapshot.node,
        runtime=snapshot.runtime,
        container_id=found.container_id,
        container=watch.name,
        grace=next(grace for grace in graces if grace is not None),
        hook=found.ending.hook,
        ports=found.ending.ports,
        pod_ip=snapshot.ip,
    )
    return Job(name=f"{STOP}{watch.name}", call=call, to_the_end=True)


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return Conclusion(events=tuple(note for one in plan.memo_as(Memo).failures for note in _notes(snapshot, one)))


def _notes(snapshot: Snapshot, failure: Failure) -> tuple[EventNote, ...]:
    """As the kubelet tells it."""
    about = snapshot.metadata
    unhealthy = EventNote(
        type=EventType.WARNING,
        reason="Unhealthy",
        message=f"Liveness probe failed: {failure.message}",
        target=Target(PODS, about.namespace, about.name),
        uid=about.uid,
    )
    text = f"Container {failure.container} failed liveness probe, will be restarted"
    return unhealthy, killing_note(PODS, about.namespace, about.name, about.uid, failure.container, text)
