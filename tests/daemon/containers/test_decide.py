"""Restarts of containers with an old environment, and how much of an environment is kept."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from kruise.api.meta import OwnerReference
from kruise.daemon.containers.decide import DELAY, KILL, Decisions
from kruise.daemon.containers.part import read_environment, spec
from kruise.daemon.containers.report import with_own_variables
from kruise.daemon.containers.situation import Delay, Job, Seen, SeenContainer, Snapshot
from kruise.daemon.parts import Place, Settings
from kruise.daemon.pods import PODS, Container, Pod
from kruise.daemon.runtime import ContainerStatus, ExecResult
from kruise.inplace import keys
from kruise.machinery.codec import convert, evolve

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ENV = [{"name": "VERSION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['version']"}}}]
POD = convert(
    {
        "metadata": {"name": "p", "namespace": "demo", "uid": "u", "labels": {"version": "2"}},
        "spec": {"nodeName": "n", "containers": [{"name": "app", "env": ENV}]},
        "status": {
            "conditions": [{"type": keys.IN_PLACE_READY, "status": "False"}],
            "containerStatuses": [{"name": "app", "containerID": "containerd://c1"}],
        },
    },
    Pod,
)


def seen(*jobs: Job) -> Snapshot:
    container = SeenContainer(id="c1", name="app", running=True, environment={"VERSION": "1"})
    runtime = Seen(runtime="containerd", containers=(container,))
    return Snapshot(pod=POD, node="n", seen=runtime, now=NOW, jobs=jobs)


def job(name: str, **more: Any) -> Job:
    return Job(name=f"{name}c1", is_kill=name == KILL, container_id="c1", ended=True, **more)


def test_a_kill_that_failed_is_begun_anew() -> None:
    """DMN-2, DMN-77: after twice the delay, up to ten minutes, and without waiting for news of the pod."""
    decide = Decisions(PODS).decide
    [first] = decide(seen()).jobs
    assert (first.name, first.call) == (f"{DELAY}c1", Delay(container_id="c1", seconds=3))
    assert [one.name for one in decide(seen(job(DELAY, seconds=3))).jobs] == [f"{KILL}c1"]
    for seconds, longer in ((3, 6), (6, 12), (384, 600), (600, 600)):
        plan = decide(seen(job(DELAY, seconds=seconds), job(KILL, error="runtime is down")))
        [again] = plan.jobs
        assert (again.name, again.call) == (first.name, Delay(container_id="c1", seconds=longer))
        assert sorted(plan.drops) == [f"{DELAY}c1", f"{KILL}c1"]
        assert plan.wakes == ()
    plan = decide(seen(job(DELAY, seconds=3), job(KILL)))
    assert (plan.jobs, plan.drops, plan.wakes) == ((), (), ())


def test_only_variables_from_metadata_are_kept() -> None:
    """An environment holds passwords, and what a decision is made of is written down."""
    container = convert({"name": "app", "env": [*ENV, {"name": "PASSWORD"}]}, Container)
    assert with_own_variables(container, {"VERSION": "1", "PASSWORD": "x", "PATH": "/"}) == {"VERSION": "1"}
    assert with_own_variables(container, None) is None


async def test_an_environment_that_the_runtime_does_not_tell_is_read_in_the_container() -> None:
    """DMN-75, DMN 14.13: line breaks and blanks belong to the value. Otherwise it would restart for ever."""
    said = b"PATH=/bin\0VERSION= one\ntwo=2 \0EMPTY=\0"

    class Runtime:
        async def container_status(self, container_id: str, *, verbose: bool = False) -> ContainerStatus:
            return ContainerStatus(id=container_id)

        async def exec_sync(self, container_id: str, command: tuple[str, ...], seconds: float) -> ExecResult:
            return ExecResult(stdout=said) if command == ("env", "-0") else ExecResult(exit_code=127)

    runtime: Any = Runtime()
    assert await read_environment(runtime, "c1") == {"PATH": "/bin", "VERSION": " one\ntwo=2 ", "EMPTY": ""}
    told: Any = SimpleNamespace(environment={"A": "b"})

    async def status(container_id: str, *, verbose: bool = False) -> Any:
        return told

    runtime.container_status = status
    assert await read_environment(runtime, "c1") == {"A": "b"}


def test_a_daemon_that_comes_later_does_not_report_every_pod_at_once() -> None:
    """DMN-70: a pod without a report waits until something happens to it."""
    reporting = spec(Place.of("n", Settings()))
    [source] = reporting.sources
    stores: Any = None
    meta = '{"containers":[{"name":"app","containerID":"containerd://c0"}]}'
    owner = OwnerReference(api_version="apps.kruise.io/v1beta1", kind="CloneSet", name="c", uid="1", controller=True)
    bare = evolve(POD, metadata=evolve(POD.metadata, owner_references=(owner,)))
    stale = evolve(bare, metadata=evolve(bare.metadata, annotations={keys.CONTAINERS_META_ANNOTATION: meta}))
    assert reporting.at_start is not None
    assert [reporting.at_start(pod) for pod in (bare, stale)] == [False, True]
    assert [bool(source.keys(None, pod, stores)) for pod in (bare, stale)] == [False, True]
    assert source.keys(bare, bare, stores)
