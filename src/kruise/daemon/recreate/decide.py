"""Which container of a pod is stopped next, and how far each one is (CRR-40 to CRR-58). Pure.

One container at a time: a kill is a job of the plan, and nothing else is begun for the pod until it has ended. What was
done before a daemon died is read off the containers and the states, so no container is stopped twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.containerrecreaterequest import (
    COMPLETED,
    FAIL,
    FAILED,
    PENDING,
    RECREATING,
    REQUESTS,
    SUCCEEDED,
    ContainerRecreateRequest,
    RecreatedContainer,
    RecreateState,
)
from kruise.daemon.kills import USUAL_GRACE, failed_hook_note, killing_note
from kruise.daemon.pods import PODS
from kruise.daemon.recreate.situation import Snapshot, Stop, StopContainer, containers_of, pod_uid
from kruise.daemon.runtime import ContainerState, ContainerStatus, newest
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct, evolve, to_builtins
from kruise.machinery.plan import Action, Conclusion, EventNote, Job, Outcomes, Phase, Plan, Target, Wake
from kruise.machinery.times import format_time, later

NOT_FOUND = "not found container on Node"
STOPPING = "stopping "
"""Begins the message of a container that is stopped by force: if the daemon dies meanwhile, the next one knows which
container was meant."""
STATES = "states"
_FINAL = (SUCCEEDED, FAILED)
_TOLD = (plans.Result.DONE, plans.Result.GONE, plans.Result.MOVED)
"""Ends of a write that names nothing but the uid: nobody is left who could be told more."""
_NANO = 1_000_000_000
_MOMENT = timedelta(milliseconds=10)

States = tuple[RecreateState, ...]


class Memo(Struct):
    """What is told when the plan is carried out."""

    stopped: tuple[Stop, ...] = ()
    """Kills whose end is written down."""


def decide(seen: Snapshot) -> Plan:
    ended = [stop for stop in seen.stops if stop.ended]
    if ended:
        return _written_down(seen, ended)
    others = _waiting(seen)
    picked = seen.picked
    if picked is None or seen.stops:
        return Plan(phases=others)
    return _picked(seen, picked, others)


def conclude(seen: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    if plan.memo is not None:
        return _after_writing_down(seen, plan.memo_as(Memo).stopped, outcomes)
    if any(outcome.result is not plans.Result.DONE for outcome in outcomes):
        return Conclusion()
    notes: list[EventNote] = []
    for job in plan.jobs:
        if isinstance(job.call, StopContainer):
            text = f"Stopping container {job.call.container} by ContainerRecreateRequest {job.call.request}"
            notes.append(killing_note(PODS, *_pod(seen, job.call), job.call.container, text))
    return Conclusion(events=tuple(notes))


def _after_writing_down(seen: Snapshot, stopped: Sequence[Stop], outcomes: Outcomes) -> Conclusion:
    """A request that was deleted meanwhile, or whose name another one has now, is not told: its kill is over all the
    same, and must not keep the next request of the pod waiting."""
    told = [stop for stop, (outcome,) in zip(stopped, outcomes.phase(STATES), strict=True) if outcome.result in _TOLD]
    notes = (
        failed_hook_note(PODS, *_pod(seen, stop.call), stop.call.container, stop.hook_error)
        for stop in told
        if stop.hook_error
    )
    # When the answer to such a write was lost, the next one changes nothing, and so no event tells of it.
    wakes = (Wake(after=0.0, reason="what was stopped is written down"),) if told else ()
    return Conclusion(events=tuple(notes), drops=tuple(stop.name for stop in told), wakes=wakes)


def _pod(seen: Snapshot, call: StopContainer) -> tuple[str, str, str]:
    return seen.namespace, seen.pod_name, call.pod_uid


# Several requests


def _waiting(seen: Snapshot) -> tuple[Phase, ...]:
    """All but the first wait for their turn (CRR-41)."""
    chains = tuple(
        (_status(request, {"phase": PENDING}, "another request for the pod is ahead"),)
        for request in seen.requests[1:]
        if not request.status.phase
    )
    return (Phase(name="wait", chains=chains),) if chains else ()


def _written_down(seen: Snapshot, ended: Sequence[Stop]) -> Plan:
    """A kill has ended: its outcome goes into the states, also of a request that was completed meanwhile (CRR-58)."""
    chains: list[tuple[Action, ...]] = []
    for stop in ended:
        request = next((item for item in seen.requests if item.metadata.uid == stop.call.request_uid), None)
        states = request.status.container_recreate_states if request is not None else stop.call.states
        states = tuple(_stopped(state, stop) if state.name == stop.call.container else state for state in states)
        chains.append((_states(seen.namespace, stop.call.request, stop.call.request_uid, states, "it was stopped"),))
    phase = Phase(name=STATES, chains=tuple(chains), on_error=plans.OnError.CONTINUE)
    return Plan(phases=(phase,), memo=Memo(stopped=tuple(ended)))


def _stopped(state: RecreateState, stop: Stop) -> RecreateState:
    if stop.error:
        return evolve(state, phase=FAILED, message=f"kill container error: {stop.error}", is_killed=False)
    return evolve(state, phase=RECREATING, message="", is_killed=True)


# The one whose turn it is


def _picked(seen: Snapshot, request: ContainerRecreateRequest, others: tuple[Phase, ...]) -> Plan:
    if request.status.phase != RECREATING:
        begin = _status(request, {"phase": RECREATING}, "its turn has come")
        return Plan(phases=(*others, plans.single("begin", begin)))
    grace = _grace_left(seen, request)
    if grace is None:
        return Plan(phases=others)  # the manager's word will come
    if grace > 0:
        return Plan(phases=others, wakes=(Wake(after=grace, reason="unreadyGracePeriodSeconds"),))
    if seen.seen.problem:
        message = f"failed to find runtime service: {seen.seen.problem}"
        return Plan(phases=(*others, _completed(seen, request, message)))
    states = tuple(_state(seen, request, container) for container in containers_of(request))
    if states != request.status.container_recreate_states:
        return Plan(phases=(*others, _new_states(request, states)))
    return _act(seen, request, states, others)


def _grace_left(seen: Snapshot, request: ContainerRecreateRequest) -> float | None:
    """Seconds until containers may be stopped; None: the pod is not held back from traffic yet (CRR-43)."""
    seconds = request.strategy.unready_grace_period_seconds
    if seconds is None:
        return 0.0
    condition = request.grace_condition
    if condition is None or condition.last_transition_time is None:
        return None
    if not seconds:
        return 0.0
    told = (later(condition.last_transition_time, seconds) - seen.now).total_seconds()
    if seen.unready_for is None:
        return told
    # The clocks of manager and node may differ: what was seen here is counted by the own one.
    own = seconds - seen.unready_for
    return own if seen.saw_it_leave else min(told, own)


def _state(seen: Snapshot, request: ContainerRecreateRequest, container: RecreatedContainer) -> RecreateState:
    """CRR-46."""
    known = next((item for item in request.status.container_recreate_states if item.name == container.name), None)
    before = known if known is not None else RecreateState(name=container.name, phase=PENDING)
    if before.phase in _FINAL:
        return before
    found = newest(seen.seen.containers, container.name)
    kept = RecreateState(name=container.name, phase=PENDING, is_killed=before.is_killed)
    if found is None:
        return evolve(kept, message=NOT_FOUND)
    if found.state is ContainerState.EXITED:
        if _is_over(seen.restart_policy, found):
            text = f"the container has ended with exit code {found.exit_code}"
            return evolve(
                kept, phase=FAILED, message=f"{text}, and restartPolicy {seen.restart_policy} does not start it again"
            )
        # If a daemon before this one began to stop it by force, that is done.
        return evolve(kept, phase=RECREATING, is_killed=before.is_killed or before.message == f"{STOPPING}{found.id}")
    if request.strategy.force_recreate and not before.is_killed:
        if before.message.startswith(STOPPING) and before.message != f"{STOPPING}{found.id}":
            # A daemon before this one stopped the container that is named there.
            return evolve(kept, phase=RECREATING, is_killed=True)
        return evolve(kept, message=f"{STOPPING}{found.id}")
    if _is_replaced(seen, container, found):
        done = _is_recreated(seen, request, found) <= 0
        return evolve(kept, phase=SUCCEEDED if done else RECREATING)
    return kept


def _is_over(policy: str, found: ContainerStatus) -> bool:
    return policy == "Never" or (policy == "OnFailure" and found.exit_code == 0)


def _is_replaced(seen: Snapshot, container: RecreatedContainer, found: ContainerStatus) -> bool:
    context = container.status_context
    if context is None:
        return False
    return context.container_id != f"{seen.seen.runtime}://{found.id}" or found.restart_count > context.restart_count


def _is_recreated(seen: Snapshot, request: ContainerRecreateRequest, found: ContainerStatus) -> float:
    """Seconds until a new container counts as recreated; not above 0: it does. Endless: somebody else must tell
    something first (CRR-47)."""
    identity = f"{seen.seen.runtime}://{found.id}"
    entries = request.status.container_status_snapshot or ()
    if not any(entry.container_id == identity and entry.ready for entry in entries):
        return float("inf")
    started = datetime.fromtimestamp(found.started_at / _NANO, UTC)
    least = timedelta(seconds=request.strategy.min_started_seconds)
    return (started + least - seen.now).total_seconds() if least else 0.0


def _act(seen: Snapshot, request: ContainerRecreateRequest, states: States, others: tuple[Phase, ...]) -> Plan:
    """The list is as the request has it: do the next thing (CRR-49, CRR-50)."""
    strategy = request.strategy
    policy = strategy.failure_policy or FAIL
    changed = list(states)
    job: Job | None = None
    for index, state in enumerate(states):
        if state.phase == FAILED and policy == FAIL:
            return Plan(phases=(*others, _completed(seen, request, "")))
        if state.phase in _FINAL:
            continue
        if state.phase == RECREATING:
            changed[index] = evolve(state, is_killed=True)
            if strategy.ordered_recreate:
                break
            continue
        container = containers_of(request)[index]
        found = newest(seen.seen.containers, container.name)
        if found is not None:
            job = _kill(seen, request, container, found, states)
        break
    if tuple(changed) != states:
        return Plan(phases=(*others, _new_states(request, tuple(changed))))
    if job is not None:
        return Plan(phases=others, jobs=(job,))
    if all(state.phase in _FINAL for state in states):
        return Plan(phases=(*others, _completed(seen, request, "")))
    return Plan(phases=others, wakes=tuple(_wakes(seen, request, states)))


def _kill(
    seen: Snapshot,
    request: ContainerRecreateRequest,
    container: RecreatedContainer,
    found: ContainerStatus,
    states: States,
) -> Job:
    grace = request.strategy.termination_grace_period_seconds
    call = StopContainer(
        node=seen.node,
        runtime=seen.seen.runtime,
        container_id=found.id,
        container=container.name,
        grace=grace if grace is not None else USUAL_GRACE,
        hook=container.pre_stop,
        ports=container.ports,
        pod_ip=seen.pod_ip,
        pod_uid=pod_uid(request),
        request=request.metadata.name,
        request_uid=request.metadata.uid,
        states=states,
    )
    return Job(name=f"{request.metadata.uid}/{container.name}/{found.id}", call=call, to_the_end=True)


def _wakes(seen: Snapshot, request: ContainerRecreateRequest, states: States) -> Iterator[Wake]:
    """News come by events; only time itself tells nobody."""
    for state in states:
        found = newest(seen.seen.containers, state.name)
        if state.phase == RECREATING and found is not None and found.state is not ContainerState.EXITED:
            left = _is_recreated(seen, request, found)
            if left != float("inf"):
                yield Wake(after=max(left, 0.0) + _MOMENT.total_seconds(), reason=f"minStartedSeconds of {state.name}")


# Writes


def _completed(seen: Snapshot, request: ContainerRecreateRequest, message: str) -> Phase:
    status = {"phase": COMPLETED, "completionTime": format_time(seen.now), **({"message": message} if message else {})}
    return plans.single("complete", _status(request, status, message or "all containers have come to an end"))


def _new_states(request: ContainerRecreateRequest, states: States) -> Phase:
    metadata = request.metadata
    return plans.single(STATES, _states(metadata.namespace, metadata.name, metadata.uid, states, "containers moved"))


def _status(request: ContainerRecreateRequest, parts: dict[str, str], reason: str) -> Action:
    """These parts of the status. Whoever has completed the request meanwhile has the last word: then the version is
    another."""
    operations: list[dict[str, Any]] = [{"op": "add", "path": "/status", "value": parts}]
    if request.status.phase:
        operations = [{"op": "add", "path": f"/status/{name}", "value": value} for name, value in parts.items()]
    return plans.patch(
        Target.of(REQUESTS, request),
        operations,
        uid=request.metadata.uid,
        reason=reason,
        patch_type=PatchType.JSON,
        subresource="status",
        resource_version=request.metadata.resource_version,
    )


def _states(namespace: str, name: str, uid: str, states: States, reason: str) -> Action:
    """Only the states, so that nothing else is undone (CRR-72)."""
    value = [{"name": state.name, "phase": state.phase, **to_builtins(state)} for state in states]
    return plans.patch(
        Target(REQUESTS, namespace, name),
        [{"op": "add", "path": "/status/containerRecreateStates", "value": value}],
        uid=uid,
        reason=reason,
        patch_type=PatchType.JSON,
        subresource="status",
    )
