"""Init containers one after the other, and sidecars that stay."""

from __future__ import annotations

import asyncio

from tests.local.nodes.world import World, condition, container, script, status, virtually, waiting


def sidecar(name: str = "proxy", **more: object) -> dict[str, object]:
    return container(name, "envoy:1", restartPolicy="Always", **more)


def test_init_containers_run_in_order() -> None:
    async def scenario(world: World) -> None:
        await world.create(initContainers=[script("sleep 10", "one"), script("sleep 10", "two")])
        found = await world.until(lambda found: "running" in status(found, "one").get("state", {}))
        assert waiting(found, "two") == "PodInitializing"
        assert waiting(found) == "PodInitializing"
        assert found["status"]["phase"] == "Pending"
        assert condition(found, "Initialized")["message"] == "containers with incomplete status: [one two]"
        found = await world.until(lambda found: "running" in status(found, "two")["state"])
        assert status(found, "one")["ready"]
        assert status(found, "one")["state"]["terminated"]["reason"] == "Completed"
        found = await world.until_ready()
        assert condition(found, "Initialized")["status"] == "True"
        assert [item["name"] for item in found["status"]["initContainerStatuses"]] == ["one", "two"]

    virtually(scenario)


def test_a_failing_init_container_is_tried_again() -> None:
    async def scenario(world: World) -> None:
        await world.create(
            initContainers=[container("setup", "setup:1")], annotations={"sim.kruise.io/crash-loop.setup": "2"}
        )
        found = await world.until(lambda found: waiting(found, "setup") == "CrashLoopBackOff")
        assert found["status"]["phase"] == "Pending"
        assert condition(found, "Initialized")["reason"] == "ContainersNotInitialized"
        assert status(found)["containerID" if "containerID" in status(found) else "imageID"] == ""
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/exit.setup": "0"}}})
        await world.until_ready()

    virtually(scenario)


def test_a_failing_init_container_fails_a_pod_that_is_not_restarted() -> None:
    async def scenario(world: World) -> None:
        await world.create(restartPolicy="Never", initContainers=[script("exit 7", "setup")])
        found = await world.until(lambda found: found["status"]["phase"] == "Failed")
        assert status(found, "setup")["state"]["terminated"]["exitCode"] == 7
        assert condition(found, "Ready")["reason"] == "PodFailed"
        assert not await asyncio.sleep(100)
        assert status(await world.pod(), "setup")["restartCount"] == 0

    virtually(scenario)


def test_sidecars_start_before_and_count_for_readiness() -> None:
    async def scenario(world: World) -> None:
        probe = {"tcpSocket": {"port": 1}, "periodSeconds": 5}
        await world.create(
            initContainers=[sidecar(startupProbe=probe), script("sleep 5", "setup")],
            annotations={"sim.kruise.io/slow-start.proxy": "12"},
        )
        await asyncio.sleep(8)
        found = await world.pod()
        assert "running" in status(found, "proxy")["state"]
        assert not status(found, "proxy")["started"]
        assert waiting(found, "setup") == "PodInitializing"
        found = await world.until_ready()
        assert status(found, "proxy")["ready"]
        assert status(found, "setup")["ready"]

        await world.patch({"metadata": {"annotations": {"sim.kruise.io/never-ready.proxy": "true"}}})
        await asyncio.sleep(1)
        found = await world.pod()
        assert condition(found, "Ready")["message"] == "containers with unready status: [proxy]"

    virtually(scenario)


def test_a_sidecar_is_updated_in_place() -> None:
    async def scenario(world: World) -> None:
        await world.create(initContainers=[sidecar()])
        before = await world.until_ready()
        await world.patch({"spec": {"initContainers": [{"name": "proxy", "image": "envoy:2"}]}})
        after = await world.until(lambda found: status(found, "proxy")["restartCount"] == 1)
        assert status(after) == status(before)
        assert condition(after, "Initialized")["status"] == "True"
        assert ("Killing", "Init container proxy definition changed") in await world.said()

    virtually(scenario)


def test_sidecars_end_after_the_work_is_done() -> None:
    async def scenario(world: World) -> None:
        await world.create(restartPolicy="Never", initContainers=[sidecar()], containers=[script("sleep 5; echo done")])
        found = await world.until(lambda found: found["status"]["phase"] == "Succeeded")
        proxy = status(found, "proxy")["state"]["terminated"]
        assert proxy["finishedAt"] >= status(found)["state"]["terminated"]["finishedAt"]
        assert condition(found, "Initialized")["reason"] == "PodCompleted"

    virtually(scenario)
