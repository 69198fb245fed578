"""How pods end: by themselves, by a deadline, or because they are deleted."""

from __future__ import annotations

import asyncio

from kruise.api.native.pod import PODS
from tests.local.nodes.world import World, condition, container, script, status, virtually, waiting


def test_a_job_succeeds() -> None:
    async def scenario(world: World) -> None:
        await world.create(restartPolicy="Never", containers=[script("echo started; sleep 3")])
        await world.until(lambda found: found["status"]["phase"] == "Running")
        found = await world.until(lambda found: found["status"]["phase"] == "Succeeded")
        ended = status(found)["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
        assert not status(found)["ready"]
        assert not status(found)["started"]
        assert {condition(found, kind)["reason"] for kind in ("Ready", "ContainersReady", "Initialized")} == {
            "PodCompleted"
        }
        assert condition(found, "PodReadyToStartContainers")["status"] == "False"
        assert found["status"]["podIP"]
        await asyncio.sleep(30)
        before = world.core.storage.version
        await asyncio.sleep(600)
        assert world.core.storage.version == before

    virtually(scenario)


def test_a_job_fails_or_tries_again_by_its_policy() -> None:
    async def scenario(world: World) -> None:
        await world.create("never", restartPolicy="Never", containers=[script("exit 4")])
        await world.create("again", restartPolicy="OnFailure", containers=[script("exit 4")])
        found = await world.until(lambda found: found["status"]["phase"] == "Failed", "never")
        assert status(found)["state"]["terminated"]["exitCode"] == 4
        assert condition(found, "Ready")["reason"] == "PodFailed"
        found = await world.until(lambda found: waiting(found) == "CrashLoopBackOff", "again")
        assert found["status"]["phase"] == "Running"
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/exit": "0"}}}, "again")
        await world.until(lambda found: found["status"]["phase"] == "Succeeded", "again")

    virtually(scenario)


def test_a_deadline_ends_the_pod() -> None:
    async def scenario(world: World) -> None:
        await world.create(restartPolicy="Never", activeDeadlineSeconds=30)
        found = await world.until(lambda found: found["status"]["phase"] == "Failed")
        assert 30 <= world.clock.monotonic() < 35
        assert found["status"]["reason"] == "DeadlineExceeded"
        assert found["status"]["message"] == "Pod was active on the node longer than the specified deadline"
        assert status(found)["state"]["terminated"]["exitCode"] == 0
        assert await world.exists()

    virtually(scenario)


def test_a_deleted_pod_goes_when_its_containers_have_ended() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.until_ready()
        await world.client.delete(PODS, "web", "default")
        assert (await world.pod())["metadata"]["deletionGracePeriodSeconds"] == 30
        assert await world.gone() < 1
        assert ("Killing", "Stopping container app") in await world.said()

    virtually(scenario)


def test_the_last_status_comes_before_the_end() -> None:
    async def scenario(world: World) -> None:
        await world.client.create(
            PODS,
            {
                "metadata": {"name": "web", "finalizers": ["example.com/wait"]},
                "spec": {"nodeName": "node-1", "containers": [container()]},
            },
            "default",
        )
        await world.until_ready()
        await world.client.delete(PODS, "web", "default")
        found = await world.until(lambda found: found["status"]["phase"] == "Succeeded")
        assert status(found)["state"]["terminated"]["exitCode"] == 0
        assert condition(found, "Ready")["status"] == "False"
        await asyncio.sleep(10)
        found = await world.pod()
        assert found["metadata"]["deletionGracePeriodSeconds"] == 0
        before = world.core.storage.version
        await asyncio.sleep(600)
        assert world.core.storage.version == before
        await world.patch({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/wait"]}})
        assert await world.gone() == 0

    virtually(scenario)


def test_a_pre_stop_hook_and_a_slow_stop_use_up_the_grace() -> None:
    async def scenario(world: World) -> None:
        hook = {"preStop": {"sleep": {"seconds": 8}}}
        await world.create(containers=[container(lifecycle=hook)])
        await world.create("slow", annotations={"sim.kruise.io/stop-seconds": "100"})
        await world.until_ready()
        await world.until_ready("slow")
        await world.client.delete(PODS, "web", "default")
        assert 8 <= await world.gone() < 10
        await world.client.delete(PODS, "slow", "default", grace_period_seconds=12)
        assert 12 <= await world.gone("slow") < 14

    virtually(scenario)


def test_a_second_delete_can_shorten_the_grace() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"sim.kruise.io/stop-seconds": "1000"}, terminationGracePeriodSeconds=600)
        await world.until_ready()
        await world.client.delete(PODS, "web", "default")
        await asyncio.sleep(20)
        found = await world.pod()
        assert found["status"]["phase"] == "Running"
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        await world.client.delete(PODS, "web", "default", grace_period_seconds=5)
        assert await world.gone() <= 8
        killing = [message for reason, message in await world.said() if reason == "Killing"]
        assert killing == ["Stopping container app"]

    virtually(scenario)


def test_sidecars_stop_after_the_main_containers_in_reverse() -> None:
    async def scenario(world: World) -> None:
        body = {
            "metadata": {
                "name": "web",
                "finalizers": ["example.com/wait"],
                "annotations": {"sim.kruise.io/stop-seconds": "3"},
            },
            "spec": {
                "nodeName": "node-1",
                "initContainers": [container(name, "envoy:1", restartPolicy="Always") for name in ("first", "second")],
                "containers": [container()],
            },
        }
        await world.client.create(PODS, body, "default")
        await world.until_ready()
        await world.client.delete(PODS, "web", "default")
        found = await world.until(lambda found: found["status"]["phase"] == "Succeeded")
        ends = [status(found, name)["state"]["terminated"]["finishedAt"] for name in ("app", "second", "first")]
        assert ends == sorted(ends)
        assert len(set(ends)) == 3

    virtually(scenario)


def test_a_pod_that_never_ran_can_be_deleted() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[container(image="ghost:missing")])
        await world.until(lambda found: waiting(found) == "ImagePullBackOff")
        await world.client.delete(PODS, "web", "default")
        assert await world.gone() < 1

    virtually(scenario)


def test_a_pod_recreated_under_its_name_is_another_one() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        before = await world.until_ready()
        await world.client.delete(PODS, "web", "default", grace_period_seconds=0)
        await world.create()
        after = await world.until_ready()
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        assert status(after)["containerID"] != status(before)["containerID"]
        assert status(after)["restartCount"] == 0

    virtually(scenario)
