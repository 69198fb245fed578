"""SidecarSets from their begin to their end, as stories that a local world, a real control plane and real nodes play
alike.

A SidecarSet is in no namespace: each story has its own, for the pods of its namespace alone.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.sidecars.sidecarset import keys
from tests.support.world import World

Json = dict[str, Any]
OLD, NEW, EMPTY = "busybox:1.36", "busybox:1.35.0", "busybox:latest"
MISSING = "busybox:missing"
RUN = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"]
AGENT: Json = {"name": "agent", "image": OLD, "command": RUN}
HOT = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY}


async def _nobody() -> None:
    raise NotImplementedError("this world has no manager that may be killed")


@dataclasses.dataclass(frozen=True)
class Sidecars:
    """A world, and what SidecarSets of a story are called there."""

    world: World
    kill_manager: Callable[[], Awaitable[None]] = _nobody
    """Ends it as a crash does, and starts the next one."""
    within: float = 180.0

    def named(self, name: str = "logs") -> str:
        return f"{name}-{self.world.namespace}"[:63].rstrip("-")

    async def create(self, name: str = "logs", *, annotations: Json | None = None, **spec: Any) -> None:
        around = {"matchLabels": {"kubernetes.io/metadata.name": self.world.namespace}}
        body = {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "SidecarSet",
            "metadata": {"name": self.named(name), "annotations": annotations or {}},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "namespaceSelector": around,
                "containers": [AGENT],
                **spec,
            },
        }
        await self.world.create(body)

        async def known() -> None:
            assert (await self.status(name)).get("latestRevision")

        await self.world.until(known, within=self.within)

    async def pod(self, name: str, **labels: str) -> None:
        main = {"name": "main", "image": "nginx:1.25"}
        spec = {"containers": [main], "terminationGracePeriodSeconds": 1}
        metadata = {"name": name, "labels": {"app": "web", **labels}}
        await self.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def start(self, count: int, **spec: Any) -> None:
        await self.create(**spec)
        for number in range(count):
            await self.pod(f"web-{number}")
        await self.counts(count, count, count, count)

    async def status(self, name: str = "logs") -> Json:
        found: Json = (await self.world.get(SIDECAR_SETS, self.named(name))).get("status", {})
        return found

    async def counts(self, *counts: int, name: str = "logs") -> None:
        """Matched, updated, ready and updated-ready pods, and nothing is left to observe."""

        async def check() -> None:
            whole = await self.world.get(SIDECAR_SETS, self.named(name))
            told = whole.get("status", {})
            found = tuple(told.get(key, 0) for key in ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods"))
            assert (found, told.get("observedGeneration")) == (counts, whole["metadata"]["generation"]), told

        await self.world.until(check, within=self.within)

    async def change(self, spec: Json, name: str = "logs") -> None:
        await self.world.patch(SIDECAR_SETS, self.named(name), {"spec": spec})

    async def set_image(self, image: str, name: str = "logs") -> None:
        body = [{"op": "replace", "path": "/spec/containers/0/image", "value": image}]
        await self.world.patch(SIDECAR_SETS, self.named(name), body, patch_type=PatchType.JSON)

    async def images(self, container: str = "agent") -> dict[str, str]:
        return {
            pod["metadata"]["name"]: item["image"]
            for pod in await self.world.pods("app=web")
            for item in pod["spec"]["containers"]
            if item["name"] == container
        }

    async def end(self) -> None:
        """Nobody else's pods concern it, but it would stay for ever."""
        for one in await self.world.list(SIDECAR_SETS):
            if one["metadata"]["name"].endswith(self.named("")):
                await self._delete(one["metadata"]["name"])

    async def _delete(self, name: str) -> None:
        try:
            await self.world.delete(SIDECAR_SETS, name)
        except NotFoundError:
            return


def statuses(pod: Json) -> dict[str, Json]:
    return {item["name"]: item for item in pod["status"]["containerStatuses"]}


def lives(pods: list[Json], container: str = "main") -> dict[str, tuple[str, str, int]]:
    """Who runs since when: the same as long as a container is not started again."""
    found = {}
    for pod in pods:
        status = statuses(pod)[container]
        found[pod["metadata"]["uid"]] = (
            status["containerID"],
            status["state"]["running"]["startedAt"],
            status["restartCount"],
        )
    return found


def verdict(pod: Json) -> Json:
    return next((item for item in pod["status"]["conditions"] if item["type"] == keys.UPGRADABLE), {})


# The stories


async def sidecars_change_and_the_app_runs_on(stage: Sidecars) -> None:
    """SCS-60, SCS-94, SCS-100 to SCS-103, SCS-120, SCS-W1, SCS-W2: one after the other, and only the sidecars
    restart."""
    await stage.pod("before")
    await stage.start(3)
    pods = [pod for pod in await stage.world.pods("app=web") if pod["metadata"]["name"] != "before"]
    before = lives(pods)
    assert [[item["name"] for item in pod["spec"]["containers"]] for pod in pods] == [["agent", "main"]] * 3
    await stage.set_image(NEW)
    most = 0

    async def check() -> None:
        nonlocal most
        told = await stage.status()
        most = max(most, told["matchedPods"] - told["readyPods"])
        assert told.get("updatedReadyPods") == 3

    await stage.world.until(check, within=stage.within, every=0.05)
    await stage.counts(3, 3, 3, 3)
    assert most <= 1, "maxUnavailable is 1"
    pods = [pod for pod in await stage.world.pods("app=web") if pod["metadata"]["name"] != "before"]
    assert lives(pods) == before
    for pod in pods:
        assert (statuses(pod)["agent"]["restartCount"], statuses(pod)["main"]["restartCount"]) == (1, 0)
        state = json.loads(pod["metadata"]["annotations"][keys.UPDATE_STATE])[stage.named()]
        assert state["lastContainerStatuses"]["agent"]["imageID"]
        assert json.loads(verdict(pod)["message"]) == {stage.named(): True}
    alone = await stage.world.get(PODS, "before")
    assert [item["name"] for item in alone["spec"]["containers"]] == ["main"]


async def canaries_by_label_then_all(stage: Sidecars) -> None:
    """SCS-90, SCS-93, SCS-W3: a label alone lets a pod go on; a partition keeps pods."""
    await stage.start(3, updateStrategy={"selector": {"matchLabels": {"canary.release": "true"}}, "maxUnavailable": 3})
    await stage.set_image(NEW)
    await stage.counts(3, 0, 3, 0)
    await stage.world.patch(PODS, "web-1", {"metadata": {"labels": {"canary.release": "true"}}})
    await stage.counts(3, 1, 3, 1)
    assert (await stage.images())["web-1"] == NEW
    assert (await stage.status())["notSelectedPods"] == 2
    await stage.change({"updateStrategy": {"selector": None, "partition": 1}})
    await stage.counts(3, 2, 3, 2)
    await stage.change({"updateStrategy": {"partition": 0}})
    await stage.counts(3, 3, 3, 3)
    assert set((await stage.images()).values()) == {NEW}


async def a_bad_image_is_corrected(stage: Sidecars) -> None:
    """SCS-94: it stops at the limit, the app runs on, and what is good goes to the broken pods first."""
    await stage.start(2)
    before = lives(await stage.world.pods("app=web"))
    await stage.set_image(MISSING)
    await stage.counts(2, 1, 1, 0)
    await stage.set_image(NEW)
    await stage.counts(2, 2, 2, 2)
    assert lives(await stage.world.pods("app=web")) == before


async def pods_that_cannot_be_updated_say_so(stage: Sidecars) -> None:
    """SCS-95, SCS-120 to SCS-123."""
    await stage.start(1)
    await stage.change({"containers": [{**AGENT, "image": NEW, "env": [{"name": "A", "value": "b"}]}]})
    await stage.counts(1, 0, 1, 0)

    async def told() -> None:
        found = verdict(await stage.world.get(PODS, "web-0"))
        assert (found.get("status"), found.get("reason")) == ("False", keys.IMMUTABLE_FIELD)

    await stage.world.until(told, within=stage.within)
    assert (await stage.status())["notUpgradablePods"] == 1
    await stage.pod("later")
    await stage.counts(2, 1, 2, 1)


async def a_hot_upgrade_hands_over(stage: Sidecars) -> None:
    """SCS-101, SCS-110 to SCS-113, SCS-W4: twice, so that both containers had their turn."""
    await stage.start(1, containers=[{**AGENT, "upgradeStrategy": HOT}])
    before = lives(await stage.world.pods("app=web"))
    for image, expected in ((NEW, (EMPTY, NEW, "agent-2")), (OLD, (OLD, EMPTY, "agent-1"))):
        await stage.set_image(image)
        await stage.counts(1, 1, 1, 1)
        pod = await stage.world.get(PODS, "web-0")
        images = {item["name"]: item["image"] for item in pod["spec"]["containers"]}
        working = json.loads(pod["metadata"]["annotations"][keys.WORKING])["agent"]
        assert (images["agent-1"], images["agent-2"], working) == expected
        assert pod["metadata"]["annotations"][keys.VERSION_ALT_PREFIX + working] == "0"
    assert await stage.world.events("web-0", "ResetContainerSucceed")
    assert lives(await stage.world.pods("app=web")) == before


async def a_workload_and_two_sets_at_once(stage: Sidecars) -> None:
    """SCS-31, SCS-102, SCS-121, SCS-132: all arrive in the same pods, and nobody undoes anybody."""
    rolling = {"updateStrategy": {"maxUnavailable": 2}}
    await stage.create(**rolling)
    await stage.create("more", containers=[{**AGENT, "name": "more"}], **rolling)
    template: Json = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], "terminationGracePeriodSeconds": 1},
    }
    policy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 2}}
    await stage.world.create(
        {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "CloneSet",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template,
                "updateStrategy": policy,
            },
        }
    )
    await stage.counts(2, 2, 2, 2)
    uids = {pod["metadata"]["uid"] for pod in await stage.world.pods("app=web")}
    changed = {**template, "spec": {**template["spec"], "containers": [{"name": "main", "image": "nginx:1.26"}]}}
    await stage.world.patch(CLONE_SETS, "web", {"spec": {"template": changed}})
    await stage.set_image(NEW)
    await stage.set_image(NEW, "more")
    await stage.counts(2, 2, 2, 2)
    await stage.counts(2, 2, 2, 2, name="more")

    async def arrived() -> None:
        assert (await stage.world.cloneset())["status"].get("updatedReadyReplicas") == 2
        for pod in await stage.world.pods("app=web"):
            images = {item["name"]: item["image"] for item in pod["spec"]["containers"]}
            assert images == {"agent": NEW, "more": NEW, "main": "nginx:1.26"}
            assert json.loads(verdict(pod)["message"]) == {stage.named(): True, stage.named("more"): True}

    await stage.world.until(arrived, within=stage.within)
    assert {pod["metadata"]["uid"] for pod in await stage.world.pods("app=web")} == uids


async def the_manager_dies_on_the_way(stage: Sidecars) -> None:
    """SCS-64, SCS-110: cold and hot upgrade go on where they were, and no container restarts once more for it."""
    hot = {**AGENT, "name": "hot", "upgradeStrategy": HOT}
    await stage.start(2, containers=[AGENT, hot])
    before = lives(await stage.world.pods("app=web"))
    containers = [{**AGENT, "image": NEW}, {**hot, "image": NEW}]
    await stage.change({"containers": containers})

    async def began() -> None:
        assert (await stage.status())["updatedPods"] >= 1

    await stage.world.until(began, within=stage.within)
    await stage.kill_manager()
    await stage.counts(2, 2, 2, 2)
    pods = await stage.world.pods("app=web")
    assert lives(pods) == before
    for pod in pods:
        assert statuses(pod)["agent"]["restartCount"] == 1
        images = {item["name"]: item["image"] for item in pod["spec"]["containers"]}
        assert sorted([images["hot-1"], images["hot-2"]]) == sorted([EMPTY, NEW])


Story = Callable[[Sidecars], Awaitable[None]]
STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        sidecars_change_and_the_app_runs_on,
        canaries_by_label_then_all,
        a_bad_image_is_corrected,
        pods_that_cannot_be_updated_say_so,
        a_hot_upgrade_hands_over,
        a_workload_and_two_sets_at_once,
        the_manager_dies_on_the_way,
    )
}
