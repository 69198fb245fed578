"""Promises of restarts, over random pods and requests: only what is named is stopped, once, in order, to an end."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.containerrecreaterequest import ContainerRecreateRequest, RecreateState, SyncedStatus
from kruise.daemon.recreate.decide import decide
from kruise.daemon.recreate.situation import Seen, Stop, StopContainer
from kruise.daemon.runtime import ContainerState, ContainerStatus
from kruise.machinery.codec import convert, evolve
from tests.daemon.recreate.test_decide import container, request, snapshot

NAMES = ("a", "b", "c", "d")


class Pod:
    """Containers that a kubelet starts again, and one request for them."""

    def __init__(self, wanted: ContainerRecreateRequest, crashes: dict[str, int]) -> None:
        self.request = wanted
        self.attempts = {name: crashes.get(name, 0) for name in NAMES}
        self.exited: set[str] = set()
        self.stops: tuple[Stop, ...] = ()
        self.killed: list[str] = []

    @property
    def containers(self) -> tuple[ContainerStatus, ...]:
        return tuple(
            container(
                name, self.attempts[name], ContainerState.EXITED if name in self.exited else ContainerState.RUNNING
            )
            for name in NAMES
        )

    def step(self, restarts: bool, daemon_dies: bool) -> bool:
        """One pass of the daemon, and one look of the kubelet; whether the request is over."""
        if daemon_dies:
            self.stops = ()
        seen = Seen(runtime="containerd", containers=self.containers)
        plan = decide(snapshot(self.request, seen=seen, stops=self.stops))
        for action in plan.actions():
            for operation in action.body:
                self._write(operation["path"].removeprefix("/status/"), operation["value"])
        if any(stop.ended for stop in self.stops):
            self.stops = ()
        for job in plan.jobs:
            assert isinstance(job.call, StopContainer)
            assert job.call.container_id == f"{job.call.container}-{self.attempts[job.call.container]}"
            assert job.call.pod_uid == "pod-uid"
            self.killed.append(job.call.container)
            self.exited.add(job.call.container)
            self.stops = (Stop(name=job.name, call=job.call, ended=True),)
        if restarts:
            self._start()
        return self.request.status.phase == "Completed"

    def _start(self) -> None:
        for name in self.exited:
            self.attempts[name] += 1
        self.exited.clear()
        synced = tuple(
            SyncedStatus(name=one.container_name, ready=True, container_id=f"containerd://{one.id}")
            for one in self.containers
        )
        status = evolve(self.request.status, container_status_snapshot=synced)
        self.request = evolve(self.request, status=status)

    def _write(self, path: str, value: Any) -> None:
        status = self.request.status
        if path == "phase":
            status = evolve(status, phase=value)
        elif path == "containerRecreateStates":
            status = evolve(status, container_recreate_states=tuple(convert(one, RecreateState) for one in value))
        self.request = evolve(self.request, status=status)


@given(data=st.data())
def test_nothing_is_stopped_that_is_not_named_and_nothing_twice(data: st.DataObject) -> None:
    """CRR-46 to CRR-51, DMN-97: whoever crashed before, whenever the daemon dies, whenever the kubelet looks."""
    named = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    crashes = data.draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 2), max_size=2))
    strategy = {
        "ordered_recreate": data.draw(st.booleans()),
        "force_recreate": data.draw(st.booleans()),
        "failure_policy": data.draw(st.sampled_from(["", "Fail", "Ignore"])),
    }
    pod = Pod(request(*named, phase="", **strategy), crashes)
    pod.request = evolve(pod.request, status=evolve(pod.request.status, phase="Recreating"))
    others = {name: attempt for name, attempt in pod.attempts.items() if name not in named}
    for _ in range(60):
        if pod.step(restarts=data.draw(st.booleans()), daemon_dies=data.draw(st.integers(0, 5)) == 0):
            break
    else:
        for _ in range(40):
            if pod.step(restarts=True, daemon_dies=False):
                break
    assert pod.request.status.phase == "Completed", pod.request.status
    assert set(pod.killed) <= set(named)
    assert {name: attempt for name, attempt in pod.attempts.items() if name not in named} == others
    assert len(pod.killed) == len(set(pod.killed)), "a container was stopped twice"
    assert {state.phase for state in pod.request.status.container_recreate_states} == {"Succeeded"}
    if strategy["force_recreate"]:
        assert set(pod.killed) == set(named)
    elif not crashes:
        assert sorted(pod.killed) == sorted(named)
