"""Edits of pods as a real API server takes them: one request for all that goes together, and none on the wrong pod."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.api.meta import Condition, ObjectMeta
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS, Pod, condition
from kruise.inplace import engine, keys, lifecycle, readiness
from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.edits import PodEdit, writes
from kruise.inplace.lifecycle import State
from kruise.inplace.state import Resources, UpdateSpec
from kruise.machinery.apply import Applier
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import RealClock
from kruise.machinery.plan import Chain, Result
from tests.support.realcluster import ControlPlane

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
OPTIONS = InPlaceOptions(env_from_metadata=True, vertical_scaling=True, compare_claim_templates=False)
REVISION = ControllerRevision(metadata=ObjectMeta(name="web-new"))
GATES = (keys.IN_PLACE_READY, keys.KRUISE_POD_READY)


class Stage:
    """Pods without a kubelet: the test plays it."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.namespace = namespace
        self.client = Client(HttpTransport(kubeconfig.load(cluster.kubeconfig)))
        self.applier = Applier(self.client, None, clock=RealClock())

    async def add(self, *, resources: dict[str, Any] | None = None, bound: bool = True, **metadata: Any) -> Pod:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web-1", "namespace": self.namespace, **metadata},
            "spec": {
                "schedulerName": "nobody",
                "terminationGracePeriodSeconds": 0,
                "readinessGates": [{"conditionType": gate} for gate in GATES],
                "containers": [
                    {"name": "main", "image": "nginx:1.25", "resources": resources or {}},
                    {"name": "side", "image": "envoy:1"},
                ],
            },
        }
        pod = await self.client.create(PODS, body, self.namespace)
        if bound:
            await self.client.bind(PODS, "web-1", self.namespace, node="absent", uid=pod.metadata.uid)
        return await self.pod()

    async def pod(self) -> Pod:
        return await self.client.get(PODS, "web-1", self.namespace)

    async def change(self, body: Any, subresource: str = "") -> Pod:
        return await self.client.patch(
            PODS, "web-1", body, self.namespace, patch_type=PatchType.STRATEGIC, subresource=subresource
        )

    async def kubelet(self, **images: str) -> Pod:
        """All containers run and are ready, and so is the pod as far as its gates allow."""
        pod = await self.pod()
        allowed = all((found := condition(pod, gate)) is not None and found.status == "True" for gate in GATES)
        statuses = [
            {"name": name, "image": image, "imageID": f"id of {image}", "ready": True, "restartCount": 0}
            for name, image in images.items()
        ]
        conditions = [
            {"type": "ContainersReady", "status": "True"},
            {"type": "Ready", "status": "True" if allowed else "False"},
        ]
        status = {"phase": "Running", "containerStatuses": statuses, "conditions": conditions}
        return await self.change({"status": status}, "status")

    async def results(self, chain: Chain) -> list[Result]:
        return [(await self.applier.carry_out(action)).result for action in chain]

    async def make(self, pod: Pod, edit: PodEdit, **options: Any) -> list[Result]:
        return await self.results(writes(pod, edit, reason="test", **options))


@pytest.fixture
async def stage(control_plane: ControlPlane, namespace: str) -> AsyncIterator[Stage]:
    scene = Stage(control_plane, namespace)
    yield scene
    for pod in (await scene.client.list(PODS, namespace)).items:
        if pod.metadata.finalizers:
            await scene.client.patch(PODS, pod.metadata.name, {"metadata": {"finalizers": None}}, namespace)
    await scene.client.close()


def made(kind: str, status: str = "True", message: str = "") -> Condition:
    return Condition(type=kind, status=status, message=message, last_transition_time=NOW)


def statuses(pod: Pod) -> dict[str, str]:
    found = {item.type: item.status for item in pod.status.conditions}
    assert len(found) == len(pod.status.conditions), "two conditions of one type"
    return found


DONE = [Result.DONE]
MOVED = [Result.MOVED]


@pytest.mark.smoke
async def test_a_status_patch_carries_everything_along(stage: Stage) -> None:
    pod = await stage.add(labels={"a": "1", "gone": "x"}, finalizers=["example.com/drop"])
    edit = PodEdit(
        labels={"a": "2", "gone": None, keys.STATE_LABEL: "Normal"},
        annotations={keys.STATE_TIME_ANNOTATION: "2026-03-04T05:06:07Z"},
        add_finalizers=("example.com/new",),
        remove_finalizers=("example.com/drop",),
        conditions=(made(keys.IN_PLACE_READY), made(keys.KRUISE_POD_READY)),
    )
    assert await stage.make(pod, edit) == DONE
    pod = await stage.pod()
    assert pod.metadata.labels == {"a": "2", keys.STATE_LABEL: "Normal"}
    assert pod.metadata.annotations == {keys.STATE_TIME_ANNOTATION: "2026-03-04T05:06:07Z"}
    assert pod.metadata.finalizers == ("example.com/new",)
    assert {kind: statuses(pod)[kind] for kind in GATES} == dict.fromkeys(GATES, "True")
    # The same through a JSON patch, with the conditions there already.
    edit = PodEdit(
        labels={"a": None},
        annotations={"b": "1"},
        add_finalizers=("example.com/more",),
        remove_finalizers=("example.com/new",),
        conditions=(made(keys.IN_PLACE_READY, "False"),),
        exact=True,
    )
    assert await stage.make(pod, edit) == DONE
    pod = await stage.pod()
    assert pod.metadata.labels == {keys.STATE_LABEL: "Normal"}
    assert pod.metadata.annotations["b"] == "1"
    assert pod.metadata.finalizers == ("example.com/more",)
    assert (statuses(pod)[keys.IN_PLACE_READY], statuses(pod)[keys.KRUISE_POD_READY]) == ("False", "True")


@pytest.mark.smoke
@pytest.mark.parametrize("door", ["status", "spec", "metadata"])
async def test_an_exact_edit_is_refused_on_a_pod_that_moved_on(stage: Stage, door: str) -> None:  # IPU-72
    told = {keys.UPDATE_STATE_ANNOTATION: '{"revision":"web-1"}'}
    await stage.add(labels={keys.REVISION_LABEL: "web-1"}, annotations=told)
    await stage.change({"status": {"conditions": [{"type": keys.IN_PLACE_READY, "status": "False"}]}}, "status")
    seen = await stage.kubelet(main="nginx:1.25", side="envoy:1")
    edit = {
        "status": PodEdit(conditions=(made(keys.IN_PLACE_READY),), labels={"x": "y"}, exact=True),
        "spec": PodEdit(images={"main": "nginx:1.26"}, labels={"x": "y"}),
        "metadata": PodEdit(labels={"x": "y"}, exact=True),
    }[door]

    for change in (
        {"metadata": {"labels": {keys.REVISION_LABEL: "web-2"}}},
        {"metadata": {"labels": {keys.REVISION_LABEL: None}}},
        {"metadata": {"annotations": {keys.UPDATE_STATE_ANNOTATION: '{"revision":"web-2"}'}}},
        {"metadata": {"annotations": {keys.UPDATE_STATE_ANNOTATION: None}}},
    ):
        await stage.change(change)
        assert await stage.make(seen, edit) == MOVED
        back = {"labels": {keys.REVISION_LABEL: "web-1"}, "annotations": told}
        unchanged = await stage.change({"metadata": back})
        assert "x" not in unchanged.metadata.labels
    # The kubelet may write in between: that changes nothing about the update.
    await stage.kubelet(main="nginx:1.25", side="envoy:1")
    assert await stage.make(seen, edit) == DONE
    assert (await stage.pod()).metadata.labels["x"] == "y"


async def test_maps_that_are_not_there_are_made_over_nobodys_head(stage: Stage) -> None:
    seen = await stage.add()
    assert (dict(seen.metadata.labels), dict(seen.metadata.annotations)) == ({}, {})
    edit = PodEdit(labels={"a/b": "1"}, annotations={"c~d": "2"}, add_finalizers=("example.com/f",), exact=True)
    await stage.change({"metadata": {"annotations": {"z": "1"}}})
    assert await stage.make(seen, edit) == MOVED
    await stage.change({"metadata": {"annotations": {"z": None}}})
    assert await stage.make(seen, PodEdit(labels={"a/b": "1"}, annotations={"c.d": "2"}, exact=True)) == DONE
    pod = await stage.pod()
    assert (pod.metadata.labels, pod.metadata.annotations) == ({"a/b": "1"}, {"c.d": "2"})


@pytest.mark.smoke
async def test_two_writers_of_one_message_do_not_overrule_each_other(stage: Stage) -> None:  # IPU-82, regression 18
    seen = await stage.add()
    first = readiness.add_writer(seen, readiness.PRE_DELETE, now=NOW)
    second = readiness.add_writer(seen, readiness.PRE_UPDATE, now=NOW)
    assert first is not None
    assert second is not None
    assert await stage.make(seen, first) == DONE
    assert await stage.make(seen, second) == MOVED
    seen = await stage.pod()
    second = readiness.add_writer(seen, readiness.PRE_UPDATE, now=NOW)
    stale = readiness.remove_writer(seen, readiness.PRE_DELETE, now=NOW)
    assert second is not None
    assert stale is not None
    assert await stage.make(seen, second) == DONE
    assert await stage.make(seen, stale) == MOVED
    for writer, status in ((readiness.PRE_DELETE, "False"), (readiness.PRE_UPDATE, "True")):
        seen = await stage.pod()
        removal = readiness.remove_writer(seen, writer, now=NOW)
        assert removal is not None
        assert await stage.make(seen, removal) == DONE
        assert statuses(await stage.pod())[keys.KRUISE_POD_READY] == status
    found = condition(await stage.pod(), keys.KRUISE_POD_READY)
    assert found is not None
    assert found.message == "[]"


@pytest.mark.smoke
async def test_an_update_from_its_begin_to_its_end_is_three_writes(stage: Stage) -> None:  # IPU-40, IPU-42, IPU-72
    pod = await stage.add(labels={keys.REVISION_LABEL: "web-old", keys.STATE_LABEL: "PreparingNormal", "app": "web"})
    entered = lifecycle.enter(pod, State.NORMAL, None, now=NOW)
    assert entered is not None
    assert await stage.make(pod, engine.refresh(pod, options=OPTIONS, now=NOW).edit.merged(entered)) == DONE
    pod = await stage.kubelet(main="nginx:1.25", side="envoy:1")
    assert statuses(pod)["Ready"] == "True"

    patch = {"metadata": {"labels": {"team": "b"}}}
    spec = UpdateSpec(revision="web-new", container_images={"main": "nginx:1.26"}, meta_data_patch=patch)
    chain = engine.begin(
        pod,
        spec,
        labels={keys.REVISION_LABEL: "web-new", keys.TEMPLATE_HASH_LABEL: "new"},
        state=State.UPDATING,
        options=OPTIONS,
        now=NOW,
        new=REVISION,
    )
    assert await stage.results(chain) == [Result.DONE, Result.DONE]
    pod = await stage.pod()
    assert [container.image for container in pod.spec.containers] == ["nginx:1.26", "envoy:1"]
    assert pod.metadata.labels["team"] == "b"
    assert (statuses(pod)[keys.IN_PLACE_READY], statuses(pod)["Ready"]) == ("False", "False")
    ready = condition(pod, "Ready")
    assert ready is not None
    assert (ready.reason, ready.last_transition_time) == ("ReadinessGatesNotReady", None)
    assert engine.refresh(pod, options=OPTIONS, now=NOW).awaiting

    pod = await stage.kubelet(main="nginx:1.26", side="envoy:1")
    done = engine.refresh(pod, options=OPTIONS, now=NOW)
    entered = lifecycle.enter(pod, State.NORMAL, None, now=NOW)
    assert entered is not None
    assert await stage.make(pod, done.edit.merged(entered)) == DONE
    pod = await stage.kubelet(main="nginx:1.26", side="envoy:1")
    assert (statuses(pod)[keys.IN_PLACE_READY], statuses(pod)["Ready"]) == ("True", "True")
    assert pod.metadata.labels[keys.STATE_LABEL] == "Normal"
    assert engine.refresh(pod, options=OPTIONS, now=NOW) == engine.Refreshed()


@pytest.mark.smoke
async def test_resources_go_through_resize(stage: Stage) -> None:  # IPU-55
    amounts = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}
    pod = await stage.add(resources=amounts, labels={keys.REVISION_LABEL: "web-old"})
    changed = {"main": Resources(limits={"cpu": "800m", "memory": "1024Mi"}, requests={"cpu": "400m"})}
    edit = PodEdit(resources=changed, labels={keys.REVISION_LABEL: "web-new"})
    chain = writes(pod, edit, reason="test")
    assert [action.subresource for action in chain] == ["resize", ""]
    assert await stage.results(chain) == [Result.DONE, Result.DONE]
    pod = await stage.pod()
    resources = pod.spec.containers[0].resources
    assert resources.limits == {"cpu": "800m", "memory": "1Gi"}
    assert resources.requests == {"cpu": "400m", "memory": "1Gi"}
    assert pod.metadata.labels[keys.REVISION_LABEL] == "web-new"
    assert writes(pod, edit, reason="test") == ()


async def test_a_newly_bound_pod_is_not_disturbed_by_the_kubelets_writes(stage: Stage) -> None:
    """What was decided before the kubelet's first report still fits after it."""
    seen = await stage.add(labels={keys.REVISION_LABEL: "web-1", keys.STATE_LABEL: "PreparingNormal"})
    entered = lifecycle.enter(seen, State.NORMAL, None, now=NOW)
    assert entered is not None
    edit = engine.refresh(seen, options=OPTIONS, now=NOW).edit.merged(entered)
    await stage.kubelet(main="nginx:1.25", side="envoy:1")
    mine = {"status": {"conditions": [{"type": keys.KRUISE_POD_READY, "status": "True"}]}}
    await stage.change(mine, "status")  # the readiness controller was quicker
    assert await stage.make(seen, edit) == DONE
    assert {kind: statuses(await stage.pod())[kind] for kind in GATES} == dict.fromkeys(GATES, "True")
