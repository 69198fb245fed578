"""DaemonSets: a pod on each node that suits, and rollouts node by node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.inplace import keys
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import ANNOTATION
from tests.scenarios.failure_budget import BAD, PULLS
from tests.scenarios.podlog import is_serving, is_there
from tests.scenarios.predownload import serve_pull_jobs
from tests.scenarios.stage import (
    ALPHA,
    BETA,
    Scenario,
    Stage,
    has_condition,
    hash_of,
    images_of,
    names,
    restarts_of,
    scenario,
    state_of,
    uids,
)
from tests.support.world import Json

OLD, NEW = "nginx:1.25", "nginx:1.26"
HOOK = "example.io/block-deleting"
SCENARIOS: dict[str, Scenario] = {}


class DaemonStage(Stage):
    """A DaemonSet `web`, on all nodes unless it says otherwise."""

    resource: Resource[Any] = DAEMON_SETS

    def manifest(
        self,
        name: str = "web",
        *,
        version: str = BETA,
        image: str = OLD,
        rolling: Mapping[str, Any] | None = None,
        strategy: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        pod: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Json:
        """`rolling` are the settings of the rollout; `labels`, `annotations` and `pod` belong to the template."""
        template = {"labels": {"app": name, **(labels or {})}, "annotations": dict(annotations or {})}
        return {
            "apiVersion": f"{DAEMON_SETS.group}/{version}",
            "kind": DAEMON_SETS.kind,
            "metadata": {"name": name, **(metadata or {})},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": template,
                    "spec": {"containers": [{"name": "main", "image": image}], **(pod or {})},
                },
                "updateStrategy": dict(strategy or {"rollingUpdate": dict(rolling or {})}),
                **spec,
            },
        }

    async def complete(self, name: str = "web", *, within: float | None = None) -> list[Json]:
        """Wait until each node that should have a pod has one, available and of the present template, and no other node
        has any; gives the pods by node."""

        async def is_complete() -> list[Json]:
            found = await self.subject(name)
            status = found.get("status", {})
            assert status.get("observedGeneration") == found["metadata"]["generation"], f"not noticed: {status}"
            wanted = status["desiredNumberScheduled"]
            for counter in ("currentNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled"):
                assert status.get(counter, 0) == wanted, f"{name}: {counter} of {wanted}: {status}"
            pods = await self.pods(name)
            assert len(pods) == wanted
            return sorted(pods, key=lambda pod: str(pod["spec"]["nodeName"]))

        found: list[Json] = await self.until(is_complete, within=within)
        return found

    async def by_node(self, name: str = "web") -> dict[str, Json]:
        """Its pods by their nodes; one for each, or it fails."""
        pods = [pod for pod in await self.pods(name) if pod["spec"].get("nodeName")]
        found = {pod["spec"]["nodeName"]: pod for pod in pods}
        assert len(found) == len(pods)
        return found


daemons = functools.partial(scenario, into=SCENARIOS, stage=DaemonStage)


@daemons("DS-11", "DS-40", "DS-46", "DS-47", "DS-48", "DS-120", smoke=True)
async def each_node_has_a_pod(stage: DaemonStage) -> None:
    """One pod on every node, bound to it by the scheduler, ready by its gate."""
    pods = await stage.start()
    assert [pod["spec"]["nodeName"] for pod in pods] == await stage.nodes()
    for pod in pods:
        assert pod["metadata"]["name"].startswith("web-")
        assert keys.STATE_LABEL not in pod["metadata"]["labels"]
        assert [gate["conditionType"] for gate in pod["spec"]["readinessGates"]] == [keys.KRUISE_POD_READY]
        assert has_condition(pod, keys.KRUISE_POD_READY)
    subject = await stage.subject()
    assert subject["metadata"]["generation"] == 1
    assert hash_of(pods[0]) == subject["status"]["updateRevision"]
    await stage.has_event("SuccessfulCreate", "Created pod: web-")


@daemons("DS-101")
async def a_deleted_pod_comes_back_on_its_node(stage: DaemonStage) -> None:
    """Whoever deletes a pod of a node gets another one there."""
    first = (await stage.start())[0]
    await stage.delete_pod(first["metadata"]["name"])
    await stage.is_gone(PODS, first["metadata"]["name"])
    await stage.complete()
    assert (await stage.by_node())[first["spec"]["nodeName"]]["metadata"]["uid"] != first["metadata"]["uid"]


@daemons("DS-21", "DS-31", "DS-100", smoke=True)
async def the_node_selector_chooses_nodes(stage: DaemonStage) -> None:
    """No node matches, a node is labelled, is labelled otherwise, and the template follows it."""
    [node, *_] = await stage.nodes()
    blue = {f"example.com/{stage.namespace}": "blue"}
    assert await stage.start(pod={"nodeSelector": blue}) == []
    await stage.label(node, "blue")
    await stage.reaches(desiredNumberScheduled=1, numberAvailable=1)
    [pod] = await stage.pods()
    green = await stage.label(node, "green")
    await stage.is_gone(PODS, pod["metadata"]["name"])
    await stage.reaches(desiredNumberScheduled=0, currentNumberScheduled=0)
    await stage.edit_template({"spec": {"nodeSelector": green}})
    [successor] = await stage.complete()
    assert successor["spec"]["nodeName"] == node
    assert (await stage.subject())["metadata"]["generation"] == 2


@daemons("DS-44")
async def a_failed_pod_is_replaced(stage: DaemonStage) -> None:
    """A pod that has failed is told of, and goes."""
    first = names(await stage.start())[0]
    failed = {"status": {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"}}
    await stage.world.patch(PODS, first, failed, subresource="status")
    await stage.is_gone(PODS, first)
    await stage.complete()
    await stage.has_event("FailedDaemonPod", f"{first} on node", type="Warning")


@daemons("DS-20", "DS-40")
async def pods_are_adopted_and_let_go(stage: DaemonStage) -> None:
    """A pod whose label is changed belongs to nobody, and its node gets another; changed back, it is taken again, and
    the younger of the two goes."""
    first = (await stage.start())[0]
    name, node = first["metadata"]["name"], first["spec"]["nodeName"]
    await stage.set_labels(name, {"app": "other"})

    async def is_replaced() -> None:
        assert "ownerReferences" not in (await stage.pod(name))["metadata"]
        assert node in await stage.by_node()

    await stage.until(is_replaced)
    await stage.complete()
    await stage.set_labels(name, {"app": "web"})

    async def is_adopted() -> None:
        owners = (await stage.pod(name))["metadata"].get("ownerReferences", [])
        assert [owner["apiVersion"] for owner in owners] == [DAEMON_SETS.api_version]
        assert (await stage.by_node())[node]["metadata"]["uid"] == first["metadata"]["uid"]

    await stage.until(is_adopted)
    await stage.complete()


# Rolling


@daemons("DS-36", "DS-62", "DS-64", "DS-65", smoke=True)
async def one_node_after_the_other(stage: DaemonStage) -> None:
    """With maxUnavailable 1 at most one node is without a pod that serves, and the last names come first."""
    before = await stage.start(rolling={"maxUnavailable": 1})
    async with stage.watching() as log:
        await stage.set_image(NEW)
        pods = await stage.complete()
    assert log.lowest(is_serving) >= len(before) - 1
    assert log.highest(is_there) <= len(before)
    gone = [entry.pod.spec.node_name for entry in log.entries if entry.kind == "DELETED"]
    assert gone == [pod["spec"]["nodeName"] for pod in reversed(before)]
    assert {images_of(pod)["main"] for pod in pods} == {NEW}
    assert not set(uids(pods)) & set(uids(before))
    assert (await stage.subject())["status"]["observedGeneration"] == 2
    await stage.has_event("SuccessfulDelete", "Deleted pod: web-")


@daemons("DS-66", "DS-67", smoke=True)
async def an_image_changes_in_place(stage: DaemonStage) -> None:
    """Pods keep their names, ids and nodes; what cannot be changed in place makes them anew."""
    before = await stage.start(rolling={"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "50%"})
    await stage.set_image(NEW)
    pods = await stage.complete()
    assert uids(pods) == uids(before)
    assert {restarts_of(pod)["main"] for pod in pods} == {1}
    await stage.has_event("SuccessfulUpdatePodInPlace", f"successfully update pod {names(pods)[-1]} in-place")
    await stage.edit_template({"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}})
    pods = await stage.complete()
    assert not set(uids(pods).values()) & set(uids(before).values())
    for pod in pods:
        gates = [gate["conditionType"] for gate in pod["spec"]["readinessGates"]]
        assert sorted(gates) == [keys.IN_PLACE_READY, keys.KRUISE_POD_READY]


@daemons("DS-68", "DS-69", "DS-103", smoke=True)
async def a_surge_brings_the_new_pod_first(stage: DaemonStage) -> None:
    """Each node has the new pod beside the old one until that has been ready for minReadySeconds."""
    seconds = stage.pace.seconds
    before = await stage.start(rolling={"maxSurge": "100%", "maxUnavailable": 0}, minReadySeconds=seconds)
    nodes = [pod["spec"]["nodeName"] for pod in before]
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.complete()
    assert log.lowest(is_serving) >= len(before)
    # Not all nodes at one moment: where pods take long to be made, the first nodes are done when the last begin.
    assert {node: log.highest(_is_there_on(node)) for node in nodes} == dict.fromkeys(nodes, 2)
    assert len(await stage.pods()) == len(before)


def _is_there_on(node: str) -> Callable[[Pod], bool]:
    return lambda pod: pod.spec.node_name == node and is_there(pod)


@daemons("DS-5", "DS-13", "DS-122")
async def surging_is_understood(stage: DaemonStage) -> None:
    """The old word in v1alpha1 means a surge of one."""
    await stage.start(version=ALPHA, rolling={"rollingUpdateType": "Surging"})
    rolling = (await stage.subject())["spec"]["updateStrategy"]["rollingUpdate"]
    assert (rolling["rollingUpdateType"], rolling["maxSurge"], rolling["maxUnavailable"]) == ("Standard", 1, 0)
    count = len(await stage.pods())
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.complete()
    assert log.lowest(is_serving) >= count
    assert log.highest(is_there) == count + 1


@daemons("DS-42", "DS-62", "DS-63")
async def partition_and_selector_choose_who_goes_on(stage: DaemonStage) -> None:
    """First only selected nodes, then all but so many as the partition keeps."""
    before = await stage.start()
    node = before[1]["spec"]["nodeName"]
    chosen = {"matchLabels": await stage.label(node, "first")}
    await stage.roll({"selector": chosen})
    await stage.set_image(NEW)
    await stage.reaches(updatedNumberScheduled=1, numberAvailable=len(before))
    moved = [name for name, pod in (await stage.by_node()).items() if images_of(pod)["main"] == NEW]
    assert moved == [node]
    await stage.roll({"selector": None, "partition": len(before) - 2})
    await stage.reaches(updatedNumberScheduled=2, numberAvailable=len(before))
    moved = [name for name, pod in (await stage.by_node()).items() if images_of(pod)["main"] == NEW]
    assert sorted(moved) == sorted([node, before[-1]["spec"]["nodeName"]])
    await stage.delete_pod(before[0]["metadata"]["name"])
    await stage.reaches(updatedNumberScheduled=3, numberAvailable=len(before))
    await stage.roll({"partition": 0})
    await stage.complete()


@daemons("DS-43", "DS-107")
async def the_partition_limits_creation_too(stage: DaemonStage) -> None:
    """With partitioned scaling, said in v1alpha1 by an annotation, not every node gets a pod."""
    asked = {"annotations": {"daemonset.kruise.io/progressive-create-pod": "true"}}
    count = len(await stage.nodes())
    await stage.create(version=ALPHA, metadata=asked, rolling={"partition": count - 2})
    await stage.reaches(desiredNumberScheduled=count, currentNumberScheduled=2, numberAvailable=2)
    assert (await stage.subject())["spec"]["scaleStrategy"] == {"partitionedScaling": True}
    assert sorted(await stage.by_node()) == (await stage.nodes())[:2]
    await stage.roll({"partition": 0})
    await stage.complete()


@daemons("DS-70", "DS-112")
async def paused_and_on_delete_leave_pods_alone(stage: DaemonStage) -> None:
    """Nothing is updated, but what is missing comes back, new."""
    before = await stage.start(rolling={"paused": True})
    await stage.set_image(NEW)
    await stage.seen()
    await stage.delete_pod(names(before)[0])
    await stage.reaches(updatedNumberScheduled=1, numberAvailable=len(before))
    await stage.change({"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}})
    await stage.seen()
    await stage.delete_pod(names(before)[1])
    await stage.reaches(updatedNumberScheduled=2, numberAvailable=len(before))

    async def others_stay() -> None:
        assert set(uids(before[2:]).items()) <= set(uids(await stage.pods()).items())

    await stage.stays(others_stay)
    await stage.change({"updateStrategy": {"type": "RollingUpdate"}})
    await stage.complete()


@daemons("DS-50", "DS-51", "DS-52", "DS-125")
async def a_hook_holds_deletion(stage: DaemonStage) -> None:
    """With maxUnavailable 1 one pod prepares for its deletion, and all stay until the label is taken off."""
    lifecycle = {"preDelete": {"labelsHandler": {HOOK: "true"}, "markPodNotReady": True}}
    before = await stage.start(lifecycle=lifecycle, labels={HOOK: "true"})
    last = before[-1]["metadata"]["name"]
    await stage.set_image(NEW)
    preparing = await stage.in_state(last, "PreparingDelete")
    assert has_condition(preparing, keys.KRUISE_POD_READY, "False")

    async def one_prepares() -> None:
        pods = await stage.pods()
        assert uids(pods) == uids(before)
        assert [pod["metadata"]["name"] for pod in pods if state_of(pod)] == [last]

    await stage.stays(one_prepares)
    await stage.set_labels(last, {HOOK: None})
    await stage.is_gone(PODS, last)
    await stage.in_state(before[-2]["metadata"]["name"], "PreparingDelete")
    assert images_of((await stage.by_node())[before[-1]["spec"]["nodeName"]])["main"] == NEW


@daemons("DS-24", "DS-26", "DS-105")
async def going_back_uses_the_old_revision(stage: DaemonStage) -> None:
    """The old template's revision is the newest again, and history keeps as many as it may."""
    await stage.start(rolling={"maxUnavailable": "100%"}, revisionHistoryLimit=1)
    first = (await stage.status())["updateRevision"]
    await stage.set_image(NEW)
    await stage.complete()
    await stage.set_image(OLD)
    await stage.complete()
    assert (await stage.status())["updateRevision"] == first
    assert [int(item["revision"]) for item in await stage.revisions()] == [2, 3]
    await stage.set_image("nginx:1.27")
    await stage.complete()

    async def one_old_is_left() -> None:
        assert len(await stage.revisions()) == 2

    await stage.until(one_old_is_left)


@daemons("failure budget")
async def a_failure_budget_stops_it(stage: DaemonStage) -> None:
    """An image that cannot be pulled stops at the nodes that have it, and a new template goes on."""
    asked = {"annotations": {ANNOTATION: "0"}}
    count = len(await stage.start(metadata=asked, annotations=PULLS))
    await stage.set_image(BAD)
    await stage.has_event(FAILURE_BUDGET, "failed at revision", type="Warning")
    await stage.reaches(updatedNumberScheduled=1, numberAvailable=count - 1)
    await stage.set_image(NEW)
    await stage.complete()


@daemons("DS-80", gates={"PreDownloadImageForDaemonSetUpdate": True})
async def images_are_pulled_ahead(stage: DaemonStage) -> None:
    """Jobs for the new image come with the rollout, and go with its end."""
    await serve_pull_jobs(stage)
    timeout = {"annotations": {"apps.kruise.io/image-predownload-timeout-seconds": "60"}}
    count = len(await stage.start(metadata=timeout))
    await stage.roll({"partition": count - 1})
    await stage.set_image(NEW)
    await stage.reaches(updatedNumberScheduled=1, numberAvailable=count)
    [job] = await stage.world.list(IMAGE_PULL_JOBS)
    revision = (await stage.status())["updateRevision"]
    assert job["metadata"]["name"] == f"web-{revision}-main"
    assert job["spec"]["image"] == NEW
    assert job["spec"]["pullPolicy"]["timeoutSeconds"] == 60
    [excluded] = job["spec"]["podSelector"]["matchExpressions"]
    assert revision in excluded["values"]
    await stage.roll({"partition": 0})
    await stage.complete()
    await stage.is_gone(IMAGE_PULL_JOBS, job["metadata"]["name"])


@daemons("DS-90")
async def its_pods_go_with_it(stage: DaemonStage) -> None:
    """Deleting it leaves nothing behind."""
    await stage.start()
    await stage.world.delete(DAEMON_SETS, "web")

    async def nothing_is_left() -> None:
        assert await stage.world.list(PODS, "app=web") == []
        assert await stage.revisions() == []

    await stage.until(nothing_is_left)
