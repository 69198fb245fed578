"""Sidecars that are updated in place, on the local cluster (SCS sections 9 to 14)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import ClientError
from kruise.sidecars.sidecarset import keys
from tests.support.sidecarsets import SIDE, images, names, pod, set_image, sidecar_set, status, until_counts
from tests.support.world import LocalWorld, World, run_local

Json = dict[str, Any]


async def make(world: World, count: int, **more: Any) -> None:
    for number in range(count):
        await world.create(pod(f"web-{number}", **more))


def verdict(whole: Json) -> Json | None:
    return next((item for item in whole["status"]["conditions"] if item["type"] == keys.UPGRADABLE), None)


def restarts(whole: Json, name: str) -> int:
    return next(int(item["restartCount"]) for item in whole["status"]["containerStatuses"] if item["name"] == name)


def test_a_new_image_goes_to_the_pods_one_by_one() -> None:
    """SCS-60, SCS-64, SCS-70 to SCS-73, SCS-94, SCS-100 to SCS-103, SCS-106, SCS-120, SCS-133."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(pod("before"))
        await world.create(sidecar_set())
        await until_counts(world, 0, 0, 0, 0)
        await make(world, 3)
        await until_counts(world, 3, 3, 3, 3)
        assert names((await world.get(PODS, "before"))["spec"]["containers"]) == ["main"]
        first = (await status(world))["latestRevision"]
        await set_image(world, "nginx:1.26")
        most = 0

        async def check() -> None:
            nonlocal most
            whole = await world.get(SIDECAR_SETS, "logs")
            told = whole["status"]
            assert told["observedGeneration"] == whole["metadata"]["generation"]
            most = max(most, told["matchedPods"] - told["readyPods"])
            assert told.get("updatedReadyPods") == 3

        await world.until(check, every=0.02)
        assert most == 1, "maxUnavailable is 1"
        for whole in await world.list(PODS):
            if whole["metadata"]["name"] == "before":
                continue
            assert (restarts(whole, "side"), restarts(whole, "main")) == (1, 0)
            assert "apps.kruise.io/runtime-containers-meta" in whole["metadata"]["annotations"]
            state = json.loads(whole["metadata"]["annotations"][keys.UPDATE_STATE])["logs"]
            assert "sha256" in state["lastContainerStatuses"]["side"]["imageID"]
            record = json.loads(whole["metadata"]["annotations"][keys.HASH])["logs"]
            assert state["revision"] == record["hash"]
            assert record["controllerRevision"] == (await status(world))["latestRevision"] != first
            told = verdict(whole)
            assert told is not None
            assert (told["status"], told["reason"], told["message"]) == ("True", keys.ALL_UPGRADABLE, '{"logs":true}')
        found = await world.client.list(CONTROLLER_REVISIONS, "kruise-system")
        assert sorted(item.revision for item in found.items) == [1, 2]

    run_local(scenario)


def test_partition_pause_and_selector_hold_pods() -> None:
    """SCS-90, SCS-93, SCS-W3; edge case 4: labels alone let a pod go on."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(updateStrategy={"partition": "50%", "maxUnavailable": 4}))
        await make(world, 4)
        await until_counts(world, 4, 4, 4, 4)
        await set_image(world, "nginx:1.26")
        await until_counts(world, 4, 2, 4, 2)
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"updateStrategy": {"partition": 0, "paused": True}}})
        await world.sleep(10)
        await until_counts(world, 4, 2, 4, 2)
        selector = {"matchLabels": {"canary": "yes"}}
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"updateStrategy": {"paused": False, "selector": selector}}})
        await world.sleep(10)
        await until_counts(world, 4, 2, 4, 2)
        old = next(name for name, image in (await images(world)).items() if image == "nginx:1.25")
        await world.patch(PODS, old, {"metadata": {"labels": {"canary": "yes"}}})
        await until_counts(world, 4, 3, 4, 3)
        assert (await images(world))[old] == "nginx:1.26"

    run_local(scenario)


def test_a_bad_image_stops_at_the_limit_and_a_good_one_goes_on() -> None:
    """SCS-94: 4 pods with 50 %: matched 4, updated 2, none of them ready; then the broken ones go first."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(updateStrategy={"maxUnavailable": "50%"}))
        await make(world, 4)
        await until_counts(world, 4, 4, 4, 4)
        await set_image(world, "Nginx:no such image")
        await until_counts(world, 4, 2, 2, 0)
        await world.sleep(30)
        await until_counts(world, 4, 2, 2, 0)
        await set_image(world, "nginx:1.27")
        await until_counts(world, 4, 4, 4, 4)

    run_local(scenario)


def test_the_failure_budget_stops_a_rollout() -> None:
    async def scenario(world: LocalWorld) -> None:
        budget = {"annotations": {"apps.kruise.io/failure-budget": "1"}}
        await world.create(sidecar_set(metadata=budget, updateStrategy={"maxUnavailable": 2}))
        await make(world, 4)
        await until_counts(world, 4, 4, 4, 4)
        await set_image(world, "Nginx:no such image")

        async def stopped() -> None:
            told = (await status(world)).get("failureBudget", {})
            assert told.get("failed") == 2

        await world.until(stopped)
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"updateStrategy": {"maxUnavailable": 4}}})
        await world.sleep(20)
        await until_counts(world, 4, 2, 2, 0)
        await set_image(world, "nginx:1.26")
        await until_counts(world, 4, 4, 4, 4)
        assert "failureBudget" not in await status(world)

    run_local(scenario)


def test_pods_that_cannot_be_updated_are_told_of() -> None:
    """SCS-95, SCS-120 to SCS-123, SCS-18; edge cases 1 and 2."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set())
        await make(world, 2)
        await until_counts(world, 2, 2, 2, 2)
        more = {"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{"name": "i", "image": "busybox:1.36"}]}
        await world.patch(SIDECAR_SETS, "logs", {"spec": more})
        await until_counts(world, 2, 2, 2, 2)
        changed = [{**SIDE, "image": "nginx:1.26", "env": [{"name": "A", "value": "b"}]}]
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"containers": changed}})
        await until_counts(world, 2, 0, 2, 0)

        async def told() -> None:
            for whole in await world.list(PODS):
                found = verdict(whole)
                assert found is not None
                assert (found["status"], found["reason"]) == ("False", keys.IMMUTABLE_FIELD)
                assert found["message"] == '{"logs":false}'
            assert len(await world.events("logs", "NotUpgradablePods")) == 1

        await world.until(told)
        assert set((await images(world)).values()) == {"nginx:1.25"}
        await world.create(pod("later"))
        await until_counts(world, 3, 1, 3, 1)
        await world.patch(SIDECAR_SETS, "logs", {"spec": {"containers": [{**SIDE, "image": "nginx:1.27"}]}})
        await until_counts(world, 3, 2, 3, 2)
        whole = await world.get(PODS, "web-0")
        assert verdict(whole)["message"] == '{"logs":true}'  # type: ignore[index]

    run_local(scenario)


def test_history_is_kept_and_cut() -> None:
    """SCS-74 to SCS-78."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(revisionHistoryLimit=3, customVersion="v0"))
        known: list[str] = []

        async def latest() -> str:
            whole = await world.get(SIDECAR_SETS, "logs")
            assert whole.get("status", {}).get("observedGeneration") == whole["metadata"]["generation"]
            return str(whole["status"]["latestRevision"])

        known.append(await world.until(latest))
        for number in range(1, 6):
            await set_image(world, f"nginx:1.{number}")
            await world.patch(SIDECAR_SETS, "logs", {"spec": {"customVersion": f"v{number}"}})
            known.append(await world.until(latest))
        assert len(set(known)) == 6

        async def numbers() -> dict[str, int]:
            found = await world.client.list(CONTROLLER_REVISIONS, "kruise-system")
            return {item.metadata.name: item.revision for item in found.items}

        assert await numbers() == {known[3]: 4, known[4]: 5, known[5]: 6}
        await set_image(world, "nginx:1.3")
        await world.until(latest)
        assert await numbers() == {known[4]: 5, known[5]: 6, known[3]: 7}
        assert (await status(world))["latestRevision"] == known[3]
        found = await world.client.get(CONTROLLER_REVISIONS, known[5], "kruise-system")
        assert found.metadata.labels[keys.CUSTOM_VERSION] == "v5"
        assert found.metadata.labels[keys.NAME_LABEL] == "logs"

    run_local(scenario)


def test_two_sets_and_a_namespace_selector() -> None:
    """SCS-31, SCS-35, SCS-120: names that meet are refused with both names; entries of both sets stay."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set())
        around = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
        with pytest.raises(ClientError, match="container side already exist in logs"):
            await world.create(sidecar_set("second", namespaceSelector=around))
        second = {"name": "second", "image": "nginx:1.25"}
        await world.create(sidecar_set("second", containers=[second], namespaceSelector=around))
        elsewhere = {"matchLabels": {"kubernetes.io/metadata.name": "other"}}
        await world.create(
            sidecar_set("else", containers=[{"name": "else", "image": "i:1"}], namespaceSelector=elsewhere)
        )
        await make(world, 2)
        await until_counts(world, 2, 2, 2, 2)
        await until_counts(world, 2, 2, 2, 2, name="second")
        await until_counts(world, 0, 0, 0, 0, name="else")
        await set_image(world, "nginx:1.26")
        await set_image(world, "nginx:1.26", "second", "second")
        await until_counts(world, 2, 2, 2, 2)
        await until_counts(world, 2, 2, 2, 2, name="second")
        for whole in await world.list(PODS):
            told = verdict(whole)
            assert told is not None
            assert json.loads(told["message"]) == {"logs": True, "second": True}
            assert set(json.loads(whole["metadata"]["annotations"][keys.UPDATE_STATE])) == {"logs", "second"}

    run_local(scenario)


EMPTY = "nginx:empty"


def test_a_hot_upgrade_hands_over_and_comes_back_from_a_bad_image() -> None:
    """SCS-101, SCS-110 to SCS-114, SCS-W4."""

    async def scenario(world: LocalWorld) -> None:
        strategy = {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": EMPTY}
        await world.create(sidecar_set(containers=[{**SIDE, "upgradeStrategy": strategy}]))
        await make(world, 1)
        await until_counts(world, 1, 1, 1, 1)

        async def twins() -> tuple[str, str, str]:
            whole = await world.get(PODS, "web-0")
            found = {item["name"]: item["image"] for item in whole["spec"]["containers"]}
            working = json.loads(whole["metadata"]["annotations"][keys.WORKING])["side"]
            return found["side-1"], found["side-2"], working

        assert await twins() == ("nginx:1.25", EMPTY, "side-1")
        await set_image(world, "nginx:1.26")
        await until_counts(world, 1, 1, 1, 1)
        assert await twins() == (EMPTY, "nginx:1.26", "side-2")
        assert len(await world.events("web-0", "ResetContainerSucceed")) == 1
        annotations = (await world.get(PODS, "web-0"))["metadata"]["annotations"]
        assert annotations[keys.VERSION_PREFIX + "side-1"] == "0"
        assert annotations[keys.VERSION_ALT_PREFIX + "side-2"] == "0"
        await set_image(world, "Nginx:no such image")
        await until_counts(world, 1, 1, 0, 0)
        assert await twins() == ("Nginx:no such image", "nginx:1.26", "side-1")
        await set_image(world, "nginx:1.26")
        await until_counts(world, 1, 1, 1, 1)
        assert await twins() == (EMPTY, "nginx:1.26", "side-2")

    run_local(scenario)
