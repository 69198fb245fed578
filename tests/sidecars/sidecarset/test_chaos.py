"""Managers that die on the way, and a workload and two SidecarSets that change the same pods at the same time."""

from __future__ import annotations

import json
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS
from kruise.sidecars.sidecarset import keys
from tests.support.sidecarsets import SIDE, pod, set_image, sidecar_set, until_counts
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
EMPTY = "nginx:empty"
HOT = {"name": "hot", "image": "nginx:1.25"}


def test_a_manager_that_dies_leaves_nothing_half_done() -> None:
    """SCS-64, SCS-110: cold and hot upgrade go on where they were, whenever the manager went."""

    async def scenario(world: LocalWorld) -> None:
        strategy = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY}
        containers = [SIDE, {**HOT, "upgradeStrategy": strategy}]
        await world.create(sidecar_set(containers=containers, updateStrategy={"maxUnavailable": 2}))
        for number in range(3):
            await world.create(pod(f"web-{number}"))
        await until_counts(world, 3, 3, 3, 3)
        for turn, seconds in enumerate((0.0, 0.03, 0.2, 0.6, 1.5)):
            for name in ("side", "hot"):
                await set_image(world, f"nginx:2.{turn}", sidecar=name)
            await world.sleep(seconds)
            await world.kill_manager()
            await world.sleep(3)
            world.start_manager()
            await until_counts(world, 3, 3, 3, 3)
            for whole in await world.list(PODS):
                images = {item["name"]: item["image"] for item in whole["spec"]["containers"]}
                working = json.loads(whole["metadata"]["annotations"][keys.WORKING])["hot"]
                resting = "hot-2" if working == "hot-1" else "hot-1"
                assert (images["side"], images[working], images[resting]) == (f"nginx:2.{turn}",) * 2 + (EMPTY,)

    run_local(scenario)


def test_a_workload_and_two_sets_change_the_same_pods_at_once() -> None:
    """SCS-102, SCS-121, SCS-132: all arrive, and nobody undoes anybody."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(updateStrategy={"maxUnavailable": 3}))
        second = {"name": "second", "image": "nginx:1.25"}
        await world.create(sidecar_set("second", containers=[second], updateStrategy={"maxUnavailable": 3}))
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.24"}]},
        }
        rolling = {"podUpdatePolicy": "InPlaceOnly", "maxUnavailable": 3}
        await world.create(
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "CloneSet",
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": template,
                    "updateStrategy": {"rollingUpdate": rolling},
                },
            }
        )
        await until_counts(world, 3, 3, 3, 3)
        uids = sorted(whole["metadata"]["uid"] for whole in await world.list(PODS))
        for turn in range(3):
            image = f"nginx:3.{turn}"
            changed = {**template, "spec": {"containers": [{"name": "main", "image": image}]}}
            await world.patch(CLONE_SETS, "web", {"spec": {"template": changed}})
            await set_image(world, image)
            await set_image(world, image, "second", "second")
            await until_counts(world, 3, 3, 3, 3)
            await until_counts(world, 3, 3, 3, 3, name="second")

            async def arrived(image: str = image) -> None:
                status = (await world.cloneset())["status"]
                assert status["updatedReadyReplicas"] == 3
                for whole in await world.list(PODS):
                    assert {item["image"] for item in whole["spec"]["containers"]} == {image}
                    verdict = next(item for item in whole["status"]["conditions"] if item["type"] == keys.UPGRADABLE)
                    assert json.loads(verdict["message"]) == {"logs": True, "second": True}

            await world.until(arrived)
        assert sorted(whole["metadata"]["uid"] for whole in await world.list(PODS)) == uids

    run_local(scenario)
