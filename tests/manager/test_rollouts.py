"""Metrics of rollouts: which series there are, when they go, and what a manager tells of a rollout that it makes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from kruise import kinds
from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.meta import Key
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.embedded import embedded_manager, embedded_options
from kruise.faces.face import Face
from kruise.kinds import face_of
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import decode, encode
from kruise.machinery.plan import Held, Plan, Target
from kruise.machinery.store import Store
from kruise.manager.process import Manager
from kruise.manager.rollouts import Rollouts, is_measured
from kruise.workloads.shared.causes import MAX_UNAVAILABLE, PAUSED
from tests.support.world import LocalWorld, run_local

WEB = {"kind": "CloneSet", "namespace": "demo", "name": "web"}
Json = dict[str, Any]


class Time:
    def __init__(self) -> None:
        self.seconds = 100.0

    def monotonic(self) -> float:
        return self.seconds


def face() -> Face:
    found = face_of("apps.kruise.io", "CloneSet")
    assert found is not None
    return found


def cloneset(
    version: int,
    *,
    revision: str = "web-1",
    updated: int = 3,
    generation: int = 1,
    observed: int | None = None,
    rolling: Json | None = None,
    strategy: str = "RollingUpdate",
    uid: str = "u1",
    conditions: tuple[Json, ...] = (),
) -> CloneSet:
    counts = {"replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": updated}
    status = {"observedGeneration": observed or generation, "updateRevision": revision, **counts}
    document = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {
            "namespace": "demo",
            "name": "web",
            "uid": uid,
            "resourceVersion": str(version),
            "generation": generation,
        },
        "spec": {"replicas": 3, "updateStrategy": {"type": strategy, "rollingUpdate": rolling or {}}},
        "status": {**status, "conditions": list(conditions)},
    }
    return decode(encode(document), CloneSet)


class Scene:
    """One CloneSet, of which the store is told."""

    def __init__(self, **options: Any) -> None:
        self.time = Time()
        self.registry = CollectorRegistry()
        self.rollouts = Rollouts(self.registry, clock=self.time, **options)  # type: ignore[arg-type]
        self.store: Store[CloneSet] = Store(CLONE_SETS)
        self.store.replace([cloneset(1)], 1)
        self.rollouts.follow(face(), "cloneset-controller", self.store)

    def at(self, seconds: float, obj: CloneSet) -> None:
        self.time.seconds = 100.0 + seconds
        self.store.event("MODIFIED", obj)

    def held(self, *meanings: Any) -> None:
        target = Target(CLONE_SETS, "demo", "web-pod")
        held = tuple(Held(target=target, causes=(meaning.cause("so"), PAUSED.cause("behind"))) for meaning in meanings)
        self.rollouts.decided("cloneset-controller", Key("demo", "web"), Plan(held=held))

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {**WEB, **labels})

    def series(self) -> set[tuple[str, ...]]:
        """All that name a workload."""
        return {
            (sample.name, *(value for label, value in sample.labels.items() if label not in WEB))
            for metric in self.registry.collect()
            for sample in metric.samples
            if "name" in sample.labels
        }


def test_kinds_that_bring_revisions_to_pods_are_measured() -> None:
    measured = {face.resource.kind for face in kinds.faces() if is_measured(face)}
    assert measured == {"CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "SidecarSet"}


def test_a_rollout_in_numbers() -> None:
    scene = Scene()
    assert scene.value("kruise_rollout_age_seconds") is None
    assert scene.value("kruise_rollouts_total", result="done") == 0, "so that the first one is an increase"
    scene.held(MAX_UNAVAILABLE, MAX_UNAVAILABLE)
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2))
    scene.time.seconds += 5
    assert scene.value("kruise_rollout_age_seconds") == 5
    assert scene.value("kruise_rollout_paused") == 0
    assert scene.value("kruise_rollout_waiting_seconds_total", cause="max-unavailable") == 5
    assert scene.value("kruise_workload_pods", state="updated") == 0
    scene.held()
    scene.at(40, cloneset(3, revision="web-2", updated=3, generation=2))
    assert scene.value("kruise_rollouts_total", result="done") == 1
    assert scene.value("kruise_rollout_last_duration_seconds") == 30
    assert scene.value("kruise_rollout_waiting_seconds_total", cause="max-unavailable") == 5
    assert scene.value("kruise_workload_pods", state="updated") == 3
    assert scene.registry.get_sample_value("kruise_rollout_duration_seconds_sum", {"kind": "CloneSet"}) == 30
    assert scene.registry.get_sample_value("kruise_rollout_duration_seconds_bucket", {"kind": "CloneSet", "le": "30.0"})


def test_a_failure_has_no_part_in_the_durations() -> None:
    scene = Scene()
    stopped = {"type": "FailureBudgetExceeded", "status": "True", "message": "2 pods"}
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2))
    scene.at(20, cloneset(3, revision="web-2", updated=1, generation=2, conditions=(stopped, late)))
    assert scene.value("kruise_rollouts_total", result="failed") == 1
    assert scene.value("kruise_rollout_age_seconds") is None
    assert scene.value("kruise_rollout_last_duration_seconds") is None
    assert scene.registry.get_sample_value("kruise_rollout_duration_seconds_count", {"kind": "CloneSet"}) == 0


def test_a_pause_is_told_while_a_rollout_is_under_way() -> None:
    scene = Scene()
    scene.at(10, cloneset(2, revision="web-2", updated=1, generation=2, rolling={"paused": True}))
    assert scene.value("kruise_rollout_paused") == 1


def test_pods_that_somebody_has_to_delete_are_no_failure() -> None:
    scene = Scene()
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2, strategy="OnDelete"))
    assert scene.value("kruise_rollouts_total", result="failed") == 0
    assert scene.value("kruise_rollout_age_seconds") is None


def test_what_changes_neither_spec_nor_status_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    seen: list[Mapping[str, Any]] = []
    monkeypatch.setattr(scene.rollouts, "_see", lambda face, obj: seen.append(obj))
    scene.at(1, cloneset(2))
    assert not seen
    scene.at(2, cloneset(3, generation=2, observed=1))
    scene.at(3, cloneset(4, generation=2))
    assert len(seen) == 2


def test_there_are_few_series_of_a_workload_and_all_go_with_it() -> None:
    scene = Scene()
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2))
    for meaning in (MAX_UNAVAILABLE, PAUSED):
        scene.held(meaning)
        scene.time.seconds += 1
    states = {("kruise_workload_pods", state) for state in ("wanted", "expected", "updated", "ready", "available")}
    assert scene.series() == states | {
        ("kruise_rollouts_total", "done"),
        ("kruise_rollouts_total", "failed"),
        ("kruise_rollout_age_seconds",),
        ("kruise_rollout_paused",),
        ("kruise_rollout_waiting_seconds_total", "max-unavailable"),
        ("kruise_rollout_waiting_seconds_total", "paused"),
    }
    scene.store.event("DELETED", cloneset(3))
    assert scene.series() == set()
    scene.held(MAX_UNAVAILABLE)  # a pass that was under way meanwhile
    assert scene.series() == set()


def test_another_one_of_the_same_name_begins_anew() -> None:
    scene = Scene()
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2))
    scene.at(20, cloneset(3, revision="web-2", updated=3, generation=2))
    scene.at(30, cloneset(4, uid="u2"))
    assert scene.value("kruise_rollouts_total", result="done") == 0


def test_who_leads_no_more_tells_nothing_of_workloads() -> None:
    scene = Scene()
    scene.rollouts.forget()
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2))
    scene.held(MAX_UNAVAILABLE)
    assert scene.series() == set()
    scene.rollouts.follow(face(), "cloneset-controller", scene.store)
    assert scene.value("kruise_rollout_age_seconds") == 0


def test_workloads_can_be_left_out() -> None:
    scene = Scene(per_workload=False)
    scene.at(10, cloneset(2, revision="web-2", updated=0, generation=2))
    scene.at(20, cloneset(3, revision="web-2", updated=3, generation=2))
    assert scene.series() == set()
    assert scene.registry.get_sample_value("kruise_rollout_duration_seconds_count", {"kind": "CloneSet"}) == 1


IMAGE, NEWER = "nginx:1.25", "nginx:1.26"
_SELECTOR: Json = {"matchLabels": {"app": "web"}}


def template(image: str) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def of_subsets(image: str) -> Json:
    inner = {"metadata": {"labels": {"app": "web"}}, "spec": {"selector": _SELECTOR, "template": template(image)}}
    return {
        "selector": _SELECTOR,
        "template": {"cloneSetTemplate": inner},
        "topology": {"subsets": [{"name": "a"}, {"name": "b"}]},
    }


def of_sidecars(image: str) -> Json:
    return {
        "selector": _SELECTOR,
        "containers": [{"name": "side", "image": image}],
        "updateStrategy": {"type": "RollingUpdate"},
    }


def of_pods(image: str) -> Json:
    return {"selector": _SELECTOR, "template": template(image)}


async def watched(world: LocalWorld, run: Callable[[Manager], Awaitable[None]]) -> None:
    manager = embedded_manager(world.cluster, world.features, embedded_options(world.options), random=Random(1))
    stop = asyncio.Event()
    running = asyncio.create_task(manager.run(stop))
    await asyncio.sleep(1)
    assert manager.registry.get_sample_value("kruise_manager_is_leader") == 1, "it is alone"
    await run(manager)
    stop.set()
    await running


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        pytest.param(CLONE_SETS, of_pods, id="CloneSet"),
        pytest.param(STATEFUL_SETS, of_pods, id="StatefulSet"),
        pytest.param(DAEMON_SETS, of_pods, id="DaemonSet"),
        pytest.param(UNITED_DEPLOYMENTS, of_subsets, id="UnitedDeployment"),
        pytest.param(SIDECAR_SETS, of_sidecars, id="SidecarSet"),
    ],
)
def test_a_rollout_of_each_kind_is_counted_once_and_nothing_else_is(
    resource: Resource[Any], spec: Callable[[str], Json]
) -> None:
    async def scenario(world: LocalWorld) -> None:
        async def run(manager: Manager) -> None:
            labels = {"kind": resource.kind, "namespace": "default" if resource.namespaced else "", "name": "web"}

            def value(name: str, **more: str) -> float | None:
                return manager.registry.get_sample_value(name, {**labels, **more})

            def ended() -> tuple[float | None, float | None]:
                return value("kruise_rollouts_total", result="done"), value("kruise_rollouts_total", result="failed")

            sized = resource not in (DAEMON_SETS, SIDECAR_SETS)
            replicas = {"replicas": 4} if sized else {}
            body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "web"}}
            if resource == SIDECAR_SETS:
                await world.create({**body, "spec": spec(IMAGE)})
                pods = {"apiVersion": CLONE_SETS.api_version, "kind": "CloneSet", "metadata": {"name": "host"}}
                await world.create({**pods, "spec": {**of_pods(IMAGE), "replicas": 4}})
            else:
                await world.create({**body, "spec": {**spec(IMAGE), **replicas}})
            await asyncio.sleep(120)
            assert ended() == (1, 0), "the first one"
            assert (
                value("kruise_workload_pods", state="available") == value("kruise_workload_pods", state="wanted") != 0
            )

            await world.patch(resource, "web", {"spec": spec(NEWER)})
            await asyncio.sleep(300)
            assert ended() == (2, 0)
            assert value("kruise_rollout_age_seconds") is None
            last = value("kruise_rollout_last_duration_seconds")
            assert last is not None
            assert 0 < last < 300

            if sized:
                await world.patch(resource, "web", {"spec": {"replicas": 7}})
                await asyncio.sleep(60)
                await world.patch(resource, "web", {"spec": {"replicas": 2}})
            [pod, *_] = await world.pods("app=web")
            await world.delete(PODS, pod["metadata"]["name"])
            await asyncio.sleep(120)
            assert ended() == (2, 0), "what is scaled or made again is no rollout"
            assert (
                value("kruise_workload_pods", state="available") == value("kruise_workload_pods", state="wanted") != 0
            )

        await watched(world, run)

    run_local(scenario, start=False)


def test_a_manager_tells_of_the_rollout_that_it_makes() -> None:
    async def scenario(world: LocalWorld) -> None:
        await watched(world, lambda manager: paused(world, manager))

    async def paused(world: LocalWorld, manager: Manager) -> None:
        labels = {**WEB, "namespace": "default"}

        def value(name: str, **more: str) -> float:
            return manager.registry.get_sample_value(name, {**labels, **more}) or 0.0

        container = {"name": "main", "image": "nginx:1.25"}
        await world.create(
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "CloneSet",
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 4,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
                    "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
                },
            }
        )
        await asyncio.sleep(60)
        assert value("kruise_rollouts_total", result="done") == 1, "the first one"
        pause = {"spec": {"updateStrategy": {"rollingUpdate": {"paused": True}}}}
        change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]
        await world.patch(CLONE_SETS, "web", pause)
        await world.patch(CLONE_SETS, "web", change, patch_type=PatchType.JSON)
        await asyncio.sleep(100)
        assert 95 < value("kruise_rollout_age_seconds") <= 100
        assert value("kruise_rollout_paused") == 1
        assert 95 < value("kruise_rollout_waiting_seconds_total", cause="paused") <= 100
        pause["spec"]["updateStrategy"]["rollingUpdate"]["paused"] = False
        await world.patch(CLONE_SETS, "web", pause)
        await asyncio.sleep(200)
        assert value("kruise_rollouts_total", result="done") == 2
        assert 100 < value("kruise_rollout_last_duration_seconds") < 200
        assert value("kruise_rollout_waiting_seconds_total", cause="max-unavailable") > 1
        assert value("kruise_workload_pods", state="updated") == 4
        await world.delete(CLONE_SETS, "web")
        await asyncio.sleep(60)
        assert manager.registry.get_sample_value("kruise_workload_pods", {**labels, "state": "wanted"}) is None

    run_local(scenario, start=False)
