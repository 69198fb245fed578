"""The executor's decisions, state by state (CRR-40 to CRR-50), over snapshots made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from kruise.api.apps.containerrecreaterequest import (
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
    ContainerRecreateRequestStatus,
    RecreatedContainer,
    RecreateState,
    RequestCondition,
    StatusContext,
    Strategy,
    SyncedStatus,
)
from kruise.api.meta import Key, ObjectMeta
from kruise.daemon.parts import Place, Settings
from kruise.daemon.recreate.decide import conclude, decide
from kruise.daemon.recreate.part import look, spec
from kruise.daemon.recreate.situation import Seen, Snapshot, Stop, StopContainer, in_turn, runtime_of
from kruise.daemon.runtime import CONTAINER_NAME, RESTART_COUNT, ContainerState, ContainerStatus
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Conclusion, Outcome, Plan, Result
from tests.support.outcomes import carried_out

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def request(
    *names: str, name: str = "r", phase: str = "Recreating", status: dict[str, Any] | None = None, **strategy: Any
) -> ContainerRecreateRequest:
    containers = tuple(
        RecreatedContainer(name=one, status_context=StatusContext(container_id=f"containerd://{one}-0"))
        for one in names or ("app",)
    )
    return ContainerRecreateRequest(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-{name}",
            resource_version="7",
            creation_timestamp=NOW,
            labels={"crr.apps.kruise.io/pod-uid": "pod-uid", "crr.apps.kruise.io/node-name": "n"},
        ),
        spec=ContainerRecreateRequestSpec(pod_name="p", containers=containers, strategy=Strategy(**strategy)),
        status=ContainerRecreateRequestStatus(phase=phase, **(status or {})),
    )


def state(name: str, phase: str = "Pending", message: str = "", is_killed: bool = False) -> RecreateState:
    return RecreateState(name=name, phase=phase, message=message, is_killed=is_killed)


def container(
    name: str, attempt: int = 0, kind: ContainerState = ContainerState.RUNNING, exit_code: int = 0, age: float = 60
) -> ContainerStatus:
    return ContainerStatus(
        id=f"{name}-{attempt}",
        state=kind,
        exit_code=exit_code,
        started_at=int((NOW - timedelta(seconds=age)).timestamp() * 1e9),
        labels={CONTAINER_NAME: name},
        annotations={RESTART_COUNT: str(attempt)},
    )


def snapshot(
    *requests: ContainerRecreateRequest, containers: tuple[ContainerStatus, ...] = (), **more: Any
) -> Snapshot:
    return Snapshot(
        namespace="ns",
        pod_name="p",
        node="n",
        requests=requests,
        seen=more.pop("seen", Seen(runtime="containerd", containers=containers)),
        now=NOW,
        **more,
    )


def written(plan: Plan) -> list[tuple[str, str, Any]]:
    """Object, path and value of every operation."""
    return [
        (action.target.name, operation["path"].removeprefix("/status"), operation["value"])
        for action in plan.actions()
        for operation in action.body
    ]


def test_turns() -> None:
    """CRR-40, CRR-41: over or leaving ones do not count; Recreating, Pending, new; then by time."""
    done = request(name="done", status={"completion_time": NOW})
    waiting, first, new = request(name="b", phase="Pending"), request(name="c"), request(name="a", phase="")
    assert in_turn([new, done, waiting, first]) == (first, waiting, new)
    plan = decide(snapshot(first, waiting, new, containers=(container("app"),)))
    assert ("a", "", {"phase": "Pending"}) in written(plan)
    assert not any(name == "b" for name, _, _ in written(plan))


def test_begin() -> None:
    """CRR-42, CRR-72: only while nobody else has written: the version guards it."""
    plan = decide(snapshot(request(phase="")))
    assert written(plan) == [("r", "", {"phase": "Recreating"})]
    assert [action.resource_version for action in plan.actions()] == ["7"]
    assert written(decide(snapshot(request(phase="Pending")))) == [("r", "/phase", "Recreating")]


def test_unready_grace() -> None:
    """CRR-43."""
    app = (container("app"),)
    assert decide(snapshot(request(unready_grace_period_seconds=5), containers=app)) == Plan()
    since = RequestCondition(type="PreRecreateGrace", status="True", last_transition_time=NOW - timedelta(seconds=2))
    held = request(unready_grace_period_seconds=5, status={"conditions": (since,)})
    [wake] = decide(snapshot(held, containers=app)).wakes
    assert wake.after == 3
    over = request(unready_grace_period_seconds=2, status={"conditions": (since,)})
    assert written(decide(snapshot(over, containers=app)))


@pytest.mark.parametrize("ahead", [-3600, 0, 3600])
def test_the_grace_is_kept_whatever_the_clock_of_the_manager_shows(ahead: float) -> None:
    """CRR-43: who has seen the pod leave traffic counts by the clock of the node."""
    app = (container("app"),)
    told = RequestCondition(type="PreRecreateGrace", status="True", last_transition_time=NOW + timedelta(seconds=ahead))
    held = request(unready_grace_period_seconds=5, status={"conditions": (told,)})
    [wake] = decide(snapshot(held, containers=app, unready_for=2.0, saw_it_leave=True)).wakes
    assert wake.after == 3
    assert written(decide(snapshot(held, containers=app, unready_for=5.0, saw_it_leave=True)))


def test_a_daemon_that_comes_later_waits_no_longer_than_the_grace() -> None:
    """CRR-43: by the manager's word, and not for an hour where its clock is an hour ahead."""
    app = (container("app"),)
    for ahead, left in ((3600, 4.0), (-2, 3.0)):
        since = NOW + timedelta(seconds=ahead)
        told = RequestCondition(type="PreRecreateGrace", status="True", last_transition_time=since)
        held = request(unready_grace_period_seconds=5, status={"conditions": (told,)})
        [wake] = decide(snapshot(held, containers=app, unready_for=1.0)).wakes
        assert wake.after == left


def test_when_a_pod_left_traffic_is_remembered_by_request() -> None:
    """CRR-43."""
    told = RequestCondition(type="PreRecreateGrace", status="True", last_transition_time=NOW)
    before = request(unready_grace_period_seconds=5)
    after = request(unready_grace_period_seconds=5, status={"conditions": (told,)})
    other = request(name="other", unready_grace_period_seconds=5, status={"conditions": (told,)})
    kept = spec(Place.of("n", Settings(gates={"DaemonWatchingPod": False}))).snapshot

    def look(*requests: ContainerRecreateRequest, at: float) -> tuple[float | None, bool] | None:
        store = SimpleNamespace(by_index=lambda name, key: requests)
        now = NOW + timedelta(seconds=at)
        view: Any = SimpleNamespace(store=lambda kind: store, jobs={}, outside=Seen(), now=now)
        found = kept(view, Key("ns", "p"))
        return (found.unready_for, found.saw_it_leave) if found is not None else None

    assert look(before, at=0) == (None, True)
    assert look(after, at=2) == (0.0, True)
    assert look(after, at=5) == (3.0, True)
    # The clock of the node is put back.
    assert look(after, at=-3600) == (0.0, True)
    assert look(after, at=-3598) == (2.0, True)
    assert look(other, at=6) == (0.0, False)
    assert look(other, at=7) == (1.0, False)
    assert look(at=8) is None
    assert look(request("app"), at=9) == (None, False)


def test_no_runtime() -> None:
    """CRR-44."""
    plan = decide(snapshot(request(), seen=Seen(problem="there is no runtime x on node n")))
    assert ("r", "/message", "failed to find runtime service: there is no runtime x on node n") in written(plan)
    mixed = request("a", "b")
    odd = RecreatedContainer(name="b", status_context=StatusContext(container_id="docker://b"))
    spec = ContainerRecreateRequestSpec(pod_name="p", containers=(mixed.spec.containers[0], odd))
    with pytest.raises(ValueError, match="several runtimes: containerd, docker"):
        runtime_of(ContainerRecreateRequest(spec=spec))


READY = (SyncedStatus(name="app", ready=True, restart_count=1, container_id="containerd://app-1"),)


@pytest.mark.parametrize(
    ("before", "found", "strategy", "synced", "after"),
    [
        (state("app", "Succeeded"), container("app"), {}, (), state("app", "Succeeded")),
        (state("app", "Failed", "x"), None, {}, (), state("app", "Failed", "x")),
        (None, None, {}, (), state("app", message="not found container on Node")),
        (None, container("app", kind=ContainerState.EXITED), {}, (), state("app", "Recreating")),
        (
            state("app", message="stopping app-0"),
            container("app", kind=ContainerState.EXITED),
            {"force_recreate": True},
            (),
            state("app", "Recreating", "", True),
        ),
        (None, container("app"), {}, (), state("app")),
        (None, container("app", 1), {}, (), state("app", "Recreating")),
        (None, container("app", 1), {}, READY, state("app", "Succeeded")),
        (None, container("app", 1, age=3), {"min_started_seconds": 5}, READY, state("app", "Recreating")),
        (state("app", "Recreating", "", True), container("app", 1), {}, READY, state("app", "Succeeded", "", True)),
        (None, container("app", 1), {"force_recreate": True}, READY, state("app", message="stopping app-1")),
        (
            state("app", message="stopping app-1"),
            container("app", 2),
            {"force_recreate": True},
            (),
            state("app", "Recreating", "", True),
        ),
    ],
)
def test_states(
    before: RecreateState | None,
    found: ContainerStatus | None,
    strategy: dict[str, Any],
    synced: tuple[SyncedStatus, ...],
    after: RecreateState,
) -> None:
    """CRR-46 to CRR-48: row by row; written before anything is done."""
    status = {"container_recreate_states": (before,) if before else (), "container_status_snapshot": synced or None}
    plan = decide(snapshot(request(status=status, **strategy), containers=(found,) if found else ()))
    if before == after:
        assert not any(path == "/containerRecreateStates" for _, path, _ in written(plan))
        return
    wanted = {"name": "app", "phase": after.phase}
    wanted |= {"message": after.message} if after.message else {}
    wanted |= {"isKilled": True} if after.is_killed else {}
    assert written(plan) == [("r", "/containerRecreateStates", [wanted])]
    assert plan.jobs == ()


def acting(*states: RecreateState, containers: tuple[ContainerStatus, ...], **strategy: Any) -> Plan:
    names = [one.name for one in states]
    return decide(
        snapshot(request(*names, status={"container_recreate_states": states}, **strategy), containers=containers)
    )


def killed(plan: Plan) -> list[str]:
    return [job.call.container for job in plan.jobs if isinstance(job.call, StopContainer)]


def test_the_walk() -> None:
    """CRR-45, CRR-49, CRR-51: one kill, and with order only after the one before has succeeded."""
    both = (container("a", kind=ContainerState.EXITED), container("b"))
    plan = acting(state("a"), state("b"), containers=(container("a"), container("b")))
    assert killed(plan) == ["a"]
    [job] = plan.jobs
    assert job.to_the_end
    assert isinstance(job.call, StopContainer)
    assert (job.call.grace, job.call.container_id) == (30, "a-0")
    assert killed(acting(state("a", "Recreating", "", True), state("b"), containers=both)) == ["b"]
    ordered = acting(state("a", "Recreating", "", True), state("b"), containers=both, ordered_recreate=True)
    assert killed(ordered) == []
    found = acting(state("a", "Recreating"), state("b"), containers=both)
    assert written(found)[0][2][0] == {"name": "a", "phase": "Recreating", "isKilled": True}


def test_the_end() -> None:
    """CRR-50, CRR-76."""
    one = (container("b"),)
    done = acting(state("a", "Succeeded"), state("b", "Failed", "x"), containers=one, failure_policy="Ignore")
    assert ("r", "/phase", "Completed") in written(done)
    assert not any(path == "/message" for _, path, _ in written(done))
    early = acting(state("a", "Failed", "x"), state("b"), containers=one)
    assert ("r", "/phase", "Completed") in written(early)
    assert killed(early) == []


@pytest.mark.parametrize(("policy", "exit_code", "phase"), [
    ("Never", 0, "Failed"), ("Never", 1, "Failed"), ("OnFailure", 0, "Failed"), ("OnFailure", 1, "Recreating"),
    ("Always", 0, "Recreating"), ("", 0, "Recreating"),
])  # fmt: skip
def test_a_container_that_does_not_start_again(policy: str, exit_code: int, phase: str) -> None:
    ended = container("app", kind=ContainerState.EXITED, exit_code=exit_code)
    plan = decide(snapshot(request(), containers=(ended,), restart_policy=policy))
    assert written(plan)[0][2][0]["phase"] == phase


def test_a_kill_that_has_ended_is_written_down() -> None:
    """CRR-58: also for a request that is out of sight; and nothing is begun for the pod before (DMN-60)."""
    states = (state("app"), state("b"))
    call = StopContainer(
        node="n",
        runtime="containerd",
        container_id="app-0",
        container="app",
        grace=3,
        pod_uid="pod-uid",
        request="r",
        request_uid="uid-r",
        states=states,
    )
    running = Stop(name="j", call=call)
    other = request("b", name="other")
    assert decide(snapshot(other, stops=(running,), containers=(container("b"),))) == Plan()
    ended = snapshot(stops=(Stop(name="j", call=call, ended=True, hook_error="no"),))
    plan = decide(ended)
    assert written(plan) == [
        (
            "r",
            "/containerRecreateStates",
            [{"name": "app", "phase": "Recreating", "isKilled": True}, {"name": "b", "phase": "Pending"}],
        )
    ]
    for result in (Result.DONE, Result.GONE, Result.MOVED):
        concluded = conclude(ended, plan, carried_out(plan, lambda action, r=result: Outcome(action=action, result=r)))
        assert concluded.drops == ("j",)
        [note] = concluded.events
        assert (note.reason, note.message) == ("FailedPreStopHook", "preStop hook of container app failed: no")
    later = carried_out(plan, lambda action: Outcome(action=action, result=Result.UNKNOWN))
    assert conclude(ended, plan, later) == Conclusion()
    failed = decide(snapshot(stops=(Stop(name="j", call=call, ended=True, error="boom"),)))
    assert written(failed)[0][2][0]["message"] == "kill container error: boom"


async def test_a_request_without_a_pod_sees_no_containers() -> None:
    """CRR-44: an empty uid would mean all containers of the node."""
    known = request()
    known = evolve(known, metadata=evolve(known.metadata, labels={"crr.apps.kruise.io/node-name": "n"}))
    stores = SimpleNamespace(store=lambda resource: SimpleNamespace(by_index=lambda *index: (known,)))
    scene: Any = SimpleNamespace(stores=stores, node=lambda name: SimpleNamespace(name=name, runtimes={}))
    seen = await look(scene, Key("ns", "p"))
    assert seen is not None
    assert seen.problem == "the request has no label crr.apps.kruise.io/pod-uid"
