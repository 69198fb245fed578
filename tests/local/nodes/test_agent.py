"""The node agent: what it reports of containers, and which ones it stops (IPU-63 to IPU-68, DMN-69 to DMN-78)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kruise.daemon.containers.part import PART
from kruise.inplace import hashes, keys
from tests.local.nodes import world as worlds
from tests.local.nodes.world import World, container, status

META = keys.CONTAINERS_META_ANNOTATION
NULL_HASH = 86995377
OWNER = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "1", "controller": True}
GATES = [{"conditionType": keys.IN_PLACE_READY}]


def from_annotation(key: str, variable: str = "CONFIG") -> dict[str, Any]:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}}


def from_label(key: str, variable: str = "LABEL") -> dict[str, Any]:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{key}']"}}}


def virtually(scenario: Any, **options: Any) -> None:
    worlds.virtually(scenario, daemon=True, **options)


async def create(world: World, *, owner: Any = OWNER, **spec: Any) -> dict[str, Any]:
    body = worlds.pod(annotations={"config": "one"}, readinessGates=GATES, **spec)
    body["metadata"]["labels"] = {"tier": "a"}
    if owner is not None:
        body["metadata"]["ownerReferences"] = [owner]
    await world.client.create(worlds.PODS, body, "default")
    await in_place_ready(world, True)
    return await world.until_ready()


async def in_place_ready(world: World, ready: bool) -> None:
    condition = {"type": keys.IN_PLACE_READY, "status": "True" if ready else "False"}
    await world.patch({"status": {"conditions": [condition]}}, subresource="status")


def meta(found: dict[str, Any]) -> list[dict[str, Any]]:
    text = found["metadata"].get("annotations", {}).get(META)
    return json.loads(text)["containers"] if text else []


async def reported(world: World) -> list[dict[str, Any]]:
    """The report, as soon as it tells of the containers that the status tells of."""

    def is_told(found: dict[str, Any]) -> bool:
        ids = [item.get("containerID") for item in found["status"]["containerStatuses"]]
        return [item["containerID"] for item in meta(found)] == ids

    return meta(await world.until(is_told))


def env_hash(**values: str) -> int:
    return hashes.env_values_hash(values.items())


def test_what_is_reported() -> None:
    """IPU-63, DMN-65 to DMN-68: the exact text, in the order of the status, a second after the containers are known."""

    async def scenario(world: World) -> None:
        containers = [
            container("web", env=[from_annotation("config"), from_label("tier"), {"name": "A", "value": "x"}]),
            container("log", "busybox:1", command=["sleep", "10000"]),
        ]
        await create(world, containers=containers, initContainers=[container("init", "busybox:1")])
        before = world.clock.monotonic()
        await reported(world)
        assert world.clock.monotonic() - before <= 1.1
        found = await world.pod()
        log, web = found["status"]["containerStatuses"]
        environment = env_hash(CONFIG="one", LABEL="a")
        assert found["metadata"]["annotations"][META] == (
            f'{{"containers":[{{"name":"log","containerID":"{log["containerID"]}","restartCount":0,'
            f'"hashes":{{"plainHash":{hashes.plain_hash("log", "busybox:1")},'
            f'"extractedEnvFromMetadataHash":{NULL_HASH}}}}},'
            f'{{"name":"web","containerID":"{web["containerID"]}","restartCount":0,'
            f'"hashes":{{"plainHash":{hashes.plain_hash("web", "nginx:1.25")},'
            f'"extractedEnvFromMetadataHash":{environment}}}}}]}}'
        )
        version = found["metadata"]["resourceVersion"]
        await asyncio.sleep(120)
        assert (await world.pod())["metadata"]["resourceVersion"] == version, "told once"

    virtually(scenario)


@pytest.mark.parametrize(
    ("owner", "annotation", "is_reported"),
    [
        (OWNER, "", True),
        ({**OWNER, "apiVersion": "apps.kruise.io/v1alpha1"}, "", True),
        ({**OWNER, "apiVersion": "apps/v1", "kind": "ReplicaSet"}, "", False),
        ({**OWNER, "controller": False}, "", False),
        (None, "", False),
        (None, "kruise.io/sidecarset-hash", True),
    ],
)
def test_which_pods_are_reported(owner: Any, annotation: str, is_reported: bool) -> None:
    """IPU-67, DMN-69: those that a workload of ours controls, or a SidecarSet has changed."""

    async def scenario(world: World) -> None:
        await create(world, owner=owner)
        if annotation:
            await world.patch({"metadata": {"annotations": {annotation: "x"}}})
        await asyncio.sleep(10)
        assert bool(meta(await world.pod())) == is_reported

    virtually(scenario)


def test_without_the_agent_nothing_is_reported() -> None:
    async def scenario(world: World) -> None:
        await create(world)
        await asyncio.sleep(10)
        assert meta(await world.pod()) == []

    worlds.virtually(scenario)


def test_a_new_image_is_reported_with_its_container() -> None:
    """IPU-62: id, restart count and hash belong together, also where two names are one image."""

    async def scenario(world: World) -> None:
        await create(world)
        (before,) = await reported(world)
        await world.set_image("nginx:1.26")
        await world.until(lambda found: status(found)["restartCount"] == 1)
        (after,) = await reported(world)
        assert after["containerID"] != before["containerID"]
        assert after["restartCount"] == 1
        assert after["hashes"] == {
            "plainHash": hashes.plain_hash("app", "nginx:1.26"),
            "extractedEnvFromMetadataHash": NULL_HASH,
        }

    virtually(scenario)


def test_an_old_environment_is_restarted_during_an_update_only() -> None:
    """IPU-67: a change by hand restarts nothing; an update that finds it restarts the container once."""

    async def scenario(world: World) -> None:
        containers = [container(env=[from_annotation("config")]), container("side", "envoy:1")]
        await create(world, containers=containers)
        before = await reported(world)
        await world.patch({"metadata": {"annotations": {"config": "two"}}})
        await asyncio.sleep(60)
        assert await reported(world) == before
        assert status(await world.pod())["restartCount"] == 0

        began = world.clock.monotonic()
        await in_place_ready(world, False)
        found = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert 4.0 <= world.clock.monotonic() - began <= 8.0, "looked at after 1 s, stopped 3 s later"
        assert status(found, "side")["restartCount"] == 0
        app, side = await reported(world)
        assert app["hashes"]["extractedEnvFromMetadataHash"] == env_hash(CONFIG="two")
        assert side == before[1]
        await asyncio.sleep(60)
        assert status(await world.pod())["restartCount"] == 1

        (event,) = [item for item in await world.events() if item["source"]["component"] == PART.component]
        assert (event["reason"], event["message"]) == (
            "Killing",
            "Stopping containerID app by container meta restarter",
        )
        assert event["involvedObject"]["fieldPath"] == "spec.containers{app}"

    virtually(scenario)


def test_labels_work_like_annotations() -> None:
    async def scenario(world: World) -> None:
        await create(world, containers=[container(env=[from_label("tier")])])
        await reported(world)
        await in_place_ready(world, False)
        await world.patch({"metadata": {"labels": {"tier": "b"}}})
        await world.until(lambda found: status(found)["restartCount"] == 1)
        (entry,) = await reported(world)
        assert entry["hashes"]["extractedEnvFromMetadataHash"] == env_hash(LABEL="b")

    virtually(scenario)


def test_image_and_environment_together_restart_once() -> None:
    """IPU-68."""

    async def scenario(world: World) -> None:
        await create(world, containers=[container(env=[from_annotation("config")])])
        await reported(world)
        await in_place_ready(world, False)
        image = [{"name": "app", "image": "nginx:1.26"}]
        await world.patch({"metadata": {"annotations": {"config": "two"}}, "spec": {"containers": image}})
        await asyncio.sleep(60)
        assert status(await world.pod())["restartCount"] == 1
        (entry,) = await reported(world)
        assert entry["hashes"] == {
            "plainHash": hashes.plain_hash("app", "nginx:1.26"),
            "extractedEnvFromMetadataHash": env_hash(CONFIG="two"),
        }

    virtually(scenario)


def test_a_slow_stop_is_asked_for_once() -> None:
    """DMN-77: exactly once, however much happens to the pod meanwhile; its hook and grace period hold."""

    async def scenario(world: World) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "10"]}}}
        await create(world, containers=[container(env=[from_annotation("config")], lifecycle=hook)])
        await reported(world)
        await in_place_ready(world, False)
        began = world.clock.monotonic()
        await world.patch({"metadata": {"annotations": {"config": "two"}}})
        for number in range(12):
            await asyncio.sleep(1)
            await world.patch({"metadata": {"annotations": {"noise": str(number)}}})
        await world.until(lambda found: status(found)["restartCount"] == 1)
        assert world.clock.monotonic() - began >= 14.0
        await asyncio.sleep(60)
        assert status(await world.pod())["restartCount"] == 1
        assert [reason for reason, text in await world.said() if "meta restarter" in text] == ["Killing"]

    virtually(scenario)


def test_an_environment_that_is_right_again_costs_no_restart() -> None:
    """A number once found for a container stays: it tells of the environment at the container's start (DMN-74)."""

    async def scenario(world: World) -> None:
        await create(world, containers=[container(env=[from_annotation("config")])])
        before = await reported(world)
        await world.patch({"metadata": {"annotations": {"config": "two"}}})
        await asyncio.sleep(5)
        await world.patch({"metadata": {"annotations": {"config": "one"}}})
        await in_place_ready(world, False)
        await asyncio.sleep(60)
        assert await reported(world) == before
        assert status(await world.pod())["restartCount"] == 0

    virtually(scenario)


def test_a_spoilt_report_is_written_anew() -> None:
    async def scenario(world: World) -> None:
        await create(world)
        before = await reported(world)
        for text in ("nonsense", "{}", '{"containers":[]}'):
            await world.patch({"metadata": {"annotations": {META: text}}})
            await asyncio.sleep(5)
            assert meta(await world.pod()) == before

    virtually(scenario)


def test_another_process_keeps_what_was_reported() -> None:
    """The environment of a running container cannot be known from the status: the report is what remains."""

    async def scenario(world: World) -> None:
        await create(world, containers=[container(env=[from_annotation("config")])])
        before = await reported(world)
        await world.patch({"metadata": {"annotations": {"config": "two"}}})
        await world.restart()
        await asyncio.sleep(10)
        assert meta(await world.pod()) == before
        await in_place_ready(world, False)
        await world.until(lambda found: status(found)["restartCount"] == 1)
        (entry,) = await reported(world)
        assert entry["hashes"]["extractedEnvFromMetadataHash"] == env_hash(CONFIG="two")

    virtually(scenario)


def test_the_agent_is_as_silent_as_its_node() -> None:
    async def scenario(world: World) -> None:
        await create(world, containers=[container(env=[from_annotation("config")])])
        before = await reported(world)
        await in_place_ready(world, False)
        await world.patch({"metadata": {"annotations": {"config": "two"}}})
        await asyncio.sleep(2)
        world.model.stop_node("node-1")
        await asyncio.sleep(60)
        assert meta(await world.pod()) == before
        assert status(await world.pod())["restartCount"] == 0
        world.model.start_node("node-1")
        await world.until(lambda found: status(found)["restartCount"] == 1)
        assert len(await reported(world)) == 1

    virtually(scenario)


def test_a_terminating_pod_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        await create(world, containers=[container(env=[from_annotation("config")])])
        await reported(world)
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/stop-seconds": "20"}}})
        await in_place_ready(world, False)
        await world.client.delete(worlds.PODS, "web", "default")
        await world.patch({"metadata": {"annotations": {"config": "two"}}})
        await world.gone()
        assert not any("meta restarter" in text for _, text in await world.said())

    virtually(scenario)
