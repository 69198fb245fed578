"""A changed image restarts its container and nothing else."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.local.nodes.world import World, condition, container, script, status, virtually, waiting


def test_the_container_restarts_in_place() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[container(), container("side", "envoy:1")])
        before = await world.until_ready()
        await world.set_image("nginx:1.26")
        after = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["podIP"] == before["status"]["podIP"]
        assert after["status"]["startTime"] == before["status"]["startTime"]
        assert after["spec"]["nodeName"] == before["spec"]["nodeName"]
        old, new = status(before), status(after)
        assert new["imageID"] != old["imageID"]
        assert new["image"] == "docker.io/library/nginx:1.26"
        assert new["containerID"] != old["containerID"]
        ended = new["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("Completed", 0)
        assert ended["containerID"] == old["containerID"]
        assert status(after, "side") == status(before, "side")
        assert after["status"]["observedGeneration"] == after["metadata"]["generation"] == 2
        said = await world.said()
        assert ("Killing", "Container app definition changed, will be restarted") in said
        assert ("Pulling", 'Pulling image "nginx:1.26"') in said
        counts = {item["message"]: item["count"] for item in await world.events()}
        assert counts["Created container: app"] == counts["Started container app"] == 2
        assert counts["Created container: side"] == 1

    virtually(scenario)


def test_a_change_during_a_restart_is_not_observed_before_the_restart_is_shown() -> None:
    """A kubelet looks at its containers again before it tells of a later spec."""

    async def scenario(world: World) -> None:
        await world.create(annotations={"sim.kruise.io/image-size": "100M"})
        before = await world.until_ready()
        await world.set_image("nginx:1.26")
        await world.until(lambda found: found["status"]["observedGeneration"] == 2)
        await world.set_image("nginx:1.25")
        after = await world.until(lambda found: found["status"]["observedGeneration"] == 3)
        assert status(after)["containerID"] != status(before)["containerID"]
        assert status(after)["image"] == "docker.io/library/nginx:1.26"
        last = await world.until(lambda found: status(found)["restartCount"] == 2)
        assert status(last)["image"] == "docker.io/library/nginx:1.25"

    virtually(scenario)


def test_two_names_of_one_image_still_restart() -> None:
    """The kubelet compares the definition, not what is behind it; the image id stays."""

    async def scenario(world: World) -> None:
        table = json.dumps({"nginx:stable": {"same-as": "nginx:1.25"}})
        await world.create(annotations={"sim.kruise.io/images": table})
        before = await world.until_ready()
        await world.set_image("nginx:stable")
        after = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert status(after)["imageID"] == status(before)["imageID"]
        assert status(after)["containerID"] != status(before)["containerID"]

    virtually(scenario)


def test_an_image_that_cannot_be_had_has_already_cost_the_old_container() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        before = await world.until_ready()
        await world.set_image("nginx:missing")
        failing = await world.until(lambda found: waiting(found) == "ErrImagePull")
        app = status(failing)
        assert app["lastState"]["terminated"]["containerID"] == status(before)["containerID"]
        assert app["restartCount"] == 0
        assert app["imageID"] == status(before)["imageID"]
        assert not app["ready"]
        assert condition(failing, "Ready")["status"] == "False"
        assert failing["status"]["phase"] == "Running"
        await world.until(lambda found: waiting(found) == "ImagePullBackOff")

        await world.set_image("nginx:1.26")
        after = await world.until_ready()
        assert status(after)["restartCount"] == 1
        assert status(after)["lastState"]["terminated"]["containerID"] == status(before)["containerID"]

    virtually(scenario)


def test_the_pod_stays_ready_while_the_new_image_comes() -> None:
    """No news before the sync is over: without a readiness probe a kubelet says nothing of the gap."""

    async def scenario(world: World) -> None:
        await world.create(annotations={"sim.kruise.io/images": json.dumps({"nginx:2": {"size": "3G"}})})
        before = await world.until_ready()
        await world.set_image("nginx:2")
        await asyncio.sleep(15)
        half = await world.pod()
        assert condition(half, "Ready")["status"] == "True"
        assert status(half)["containerID"] == status(before)["containerID"]
        assert half["status"]["observedGeneration"] == 2
        await world.until(lambda found: status(found)["restartCount"] == 1)

    virtually(scenario)


def test_a_readiness_probe_shows_the_gap() -> None:
    async def scenario(world: World) -> None:
        probe = {"httpGet": {"port": 80}, "periodSeconds": 1}
        await world.create(
            containers=[container(readinessProbe=probe)],
            annotations={"sim.kruise.io/images": json.dumps({"nginx:2": {"size": "3G"}})},
        )
        await world.until_ready()
        await world.set_image("nginx:2")
        await asyncio.sleep(15)
        assert condition(await world.pod(), "Ready")["status"] == "False"
        await world.until_ready()

    virtually(scenario)


def test_a_restart_policy_of_never_does_not_matter() -> None:
    async def scenario(world: World) -> None:
        await world.create(restartPolicy="Never")
        await world.until_ready()
        await world.set_image("nginx:1.26")
        await world.until(lambda found: status(found)["restartCount"] == 1)

    virtually(scenario)


def test_the_old_container_gets_its_grace() -> None:
    async def scenario(world: World) -> None:
        slow = {"sim.kruise.io/stop-seconds": "300"}
        await world.create(annotations=slow, terminationGracePeriodSeconds=20)
        await world.until_ready()
        began = world.clock.monotonic()
        await world.set_image("nginx:1.26")
        after = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert 20 <= world.clock.monotonic() - began < 25
        ended = status(after)["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("Error", 137)

    virtually(scenario)


def test_a_second_change_during_the_first_is_not_lost() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.until_ready()
        await world.set_image("nginx:1.26")
        await asyncio.sleep(0.3)
        await world.set_image("nginx:1.27")
        after = await world.until(lambda found: status(found)["image"].endswith("1.27"))
        assert status(after)["restartCount"] in (1, 2)
        assert after["status"]["observedGeneration"] == 3

    virtually(scenario)


@pytest.mark.parametrize(
    ("command", "shared", "seconds", "code"),
    [
        ("while true; do sleep 1; done", False, 30, 137),
        ("while true; do sleep 1; done", True, 0, 143),
        ("trap 'exit 0' TERM; while true; do sleep 1; done", False, 0, 0),
        ("trap 'exit 3' INT TERM; while true; do sleep 1; done", False, 0, 3),
    ],
)
def test_a_shell_as_process_1_heeds_only_signals_it_traps(command: str, shared: bool, seconds: int, code: int) -> None:
    """It runs on until the grace period is over, unless it traps SIGTERM or the sandbox is process 1."""

    async def scenario(world: World) -> None:
        await world.create(containers=[script(command)], shareProcessNamespace=shared)
        await world.until_ready()
        began = world.clock.monotonic()
        await world.set_image("busybox:1.37")
        after = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert status(after)["lastState"]["terminated"]["exitCode"] == code
        assert seconds < world.clock.monotonic() - began < seconds + 5

    virtually(scenario)
