"""Images that cannot be had, containers that crash, probes that fail."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime

import pytest

from tests.local.nodes.world import World, condition, container, is_ready, script, status, virtually, waiting


def test_a_missing_image_backs_off() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[container(image="ghost:missing")])
        found = await world.until(lambda found: waiting(found) == "ErrImagePull")
        message = status(found)["state"]["waiting"]["message"]
        assert message.startswith("rpc error: code = NotFound desc = failed to pull and unpack image")
        assert found["status"]["phase"] == "Pending"
        found = await world.until(lambda found: waiting(found) == "ImagePullBackOff")
        told = status(found)["state"]["waiting"]["message"]
        assert told == f'Back-off pulling image "ghost:missing": ErrImagePull: {message}'
        said = await world.said()
        assert said == [
            ("Pulling", 'Pulling image "ghost:missing"'),
            ("Failed", f'Failed to pull image "ghost:missing": {message}'),
            ("Failed", "Error: ErrImagePull"),
            ("BackOff", 'Back-off pulling image "ghost:missing"'),
            ("Failed", "Error: ImagePullBackOff"),
        ]
        await asyncio.sleep(3600)
        pulls = next(item["count"] for item in await world.events() if item["reason"] == "Pulling")
        # 10 s, 20 s, ... up to five minutes: a dozen and a few in an hour.
        assert 12 <= pulls <= 20

    virtually(scenario)


def test_a_name_that_cannot_be_read_is_not_pulled() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[container(image="Nginx:1:2")])
        found = await world.until(lambda found: waiting(found) == "InvalidImageName")
        text = (
            'Failed to apply default image tag "Nginx:1:2": couldn\'t parse image name "Nginx:1:2": '
            "invalid reference format: repository name (library/Nginx) must be lowercase"
        )
        assert status(found)["state"]["waiting"]["message"] == text
        assert status(found)["image"] == "Nginx:1:2"
        assert found["status"]["phase"] == "Pending"
        assert await world.said() == [("InspectFailed", text), ("Failed", "Error: InvalidImageName")]
        await world.patch({"spec": {"containers": [{"name": "app", "image": "nginx:1.25"}]}})
        await world.until_ready()

    virtually(scenario)


def test_a_pull_error_by_annotation_ends_when_the_annotation_goes() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"sim.kruise.io/pull-error": "registry is on fire"})
        found = await world.until(lambda found: waiting(found) == "ErrImagePull")
        assert status(found)["state"]["waiting"]["message"] == "registry is on fire"
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/pull-error": None}}})
        await world.until_ready()

    virtually(scenario)


def test_never_pull_waits_for_an_image_that_is_not_there() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[{**container(), "imagePullPolicy": "Never"}])
        found = await world.until(lambda found: waiting(found) == "ErrImageNeverPull")
        text = 'Container image "nginx:1.25" is not present with pull policy of Never'
        assert status(found)["state"]["waiting"]["message"] == text

    virtually(scenario)


def test_a_crash_loop_backs_off_and_doubles() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"sim.kruise.io/crash-loop": "3 after 1s"})
        found = await world.until(lambda found: waiting(found) == "CrashLoopBackOff")
        app = status(found)
        assert app["restartCount"] == 1
        assert app["lastState"]["terminated"]["exitCode"] == 3
        assert app["lastState"]["terminated"]["reason"] == "Error"
        uid = found["metadata"]["uid"]
        text = f"back-off 10s restarting failed container=app pod=web_default({uid})"
        assert app["state"]["waiting"]["message"] == text
        text = f"Back-off restarting failed container app in pod web_default({uid})"
        assert ("BackOff", text) in await world.said()

        starts = []
        for restarts in range(2, 9):
            found = await world.until(
                lambda found, count=restarts: (
                    status(found)["restartCount"] == count and "running" in status(found)["state"]
                ),
                seconds=1000,
            )
            starts.append(world.clock.monotonic())
        gaps = [round(later - sooner) for sooner, later in itertools.pairwise(starts)]
        assert [gap // 10 * 10 for gap in gaps] == [20, 40, 80, 160, 300, 300]

    virtually(scenario)


def test_a_crash_loop_can_heal() -> None:
    async def scenario(world: World) -> None:
        knobs = {"sim.kruise.io/crash-loop": "1", "sim.kruise.io/crash-count": "3"}
        await world.create(annotations=knobs)
        found = await world.until(lambda found: status(found).get("restartCount") == 3 and is_ready(found))
        await asyncio.sleep(600)
        assert status(await world.pod())["restartCount"] == 3
        assert found["status"]["phase"] == "Running"

    virtually(scenario)


def test_a_container_that_ended_well_is_restarted_too() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[script("echo hi")])
        found = await world.until(lambda found: waiting(found) == "CrashLoopBackOff")
        assert status(found)["lastState"]["terminated"]["reason"] == "Completed"

    virtually(scenario)


def test_readiness_follows_the_settings_of_its_probe() -> None:
    async def scenario(world: World) -> None:
        probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 20, "periodSeconds": 5, "successThreshold": 3}
        await world.create(containers=[container(readinessProbe=probe)])
        await asyncio.sleep(15)
        found = await world.pod()
        assert found["status"]["phase"] == "Running"
        assert status(found)["started"]
        assert not status(found)["ready"]
        await world.until_ready()
        assert 30 <= world.clock.monotonic() <= 36

    virtually(scenario)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["false"], ""),
        (["sh", "-c", "echo not yet; exit 2"], "not yet\n"),
        (["sh", "-c", "sleep 3"], 'command timed out: "sh -c sleep 3" timed out after 1s'),
    ],
)
def test_a_failing_command_says_what_it_printed(command: list[str], says: str) -> None:
    """The words of a kubelet for exec probes."""

    async def scenario(world: World) -> None:
        await world.create(containers=[container(readinessProbe={"exec": {"command": command}})])
        await asyncio.sleep(15)
        assert condition(await world.pod(), "Ready")["status"] == "False"
        assert ("Unhealthy", f"Readiness probe failed: {says}") in await world.said()

    virtually(scenario)


def test_the_end_is_shown_before_the_back_off() -> None:
    """A kubelet first tells how a container ended, and at its next look that it waits."""

    async def scenario(world: World) -> None:
        await world.create(containers=[script("sleep 3; exit 3")])
        ended = await world.until(
            lambda found: "terminated" in status(found)["state"] and status(found)["restartCount"] == 1
        )
        assert status(ended)["state"]["terminated"]["exitCode"] == 3
        at = world.clock.monotonic()
        await world.until(lambda found: waiting(found) == "CrashLoopBackOff")
        assert 0.5 < world.clock.monotonic() - at < 1.5

    virtually(scenario)


def test_a_slow_start_fails_probes_until_it_answers() -> None:
    async def scenario(world: World) -> None:
        probe = {"httpGet": {"path": "/healthz", "port": "web"}, "periodSeconds": 2}
        app = container(readinessProbe=probe, ports=[{"name": "web", "containerPort": 8080}])
        await world.create(containers=[app], annotations={"sim.kruise.io/slow-start": "30"})
        found = await world.until_ready()
        assert 30 <= world.clock.monotonic() <= 35
        address = found["status"]["podIP"]
        text = f'Get "http://{address}:8080/healthz": dial tcp {address}:8080: connect: connection refused'
        unhealthy = next(item for item in await world.events() if item["reason"] == "Unhealthy")
        assert unhealthy["message"] == f"Readiness probe failed: {text}"
        assert unhealthy["count"] > 10
        assert status(found)["restartCount"] == 0

    virtually(scenario)


def test_a_startup_probe_comes_first_and_can_kill() -> None:
    async def scenario(world: World) -> None:
        startup = {"tcpSocket": {"port": 80}, "periodSeconds": 2, "failureThreshold": 3}
        app = container(startupProbe=startup, readinessProbe={"tcpSocket": {"port": 80}})
        await world.create(containers=[app], annotations={"sim.kruise.io/slow-start": "60"})
        await asyncio.sleep(4)
        assert not status(await world.pod())["started"]
        found = await world.until(lambda found: status(found)["restartCount"] == 1)
        said = await world.said()
        assert ("Killing", "Container app failed startup probe, will be restarted") in said
        assert not any(message.startswith("Readiness") for _, message in said)
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/slow-start": "0"}}})
        found = await world.until_ready()
        assert status(found)["started"]

    virtually(scenario)


def test_liveness_restarts_the_container() -> None:
    async def scenario(world: World) -> None:
        probe = {"httpGet": {"port": 80}, "periodSeconds": 10}
        await world.create(
            containers=[container(livenessProbe=probe)], annotations={"sim.kruise.io/unhealthy-after": "60"}
        )
        await world.until_ready()
        found = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert 80 <= world.clock.monotonic() <= 100
        said = await world.said()
        assert ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 503") in said
        assert ("Killing", "Container app failed liveness probe, will be restarted") in said
        assert found["status"]["phase"] == "Running"

    virtually(scenario)


def test_never_ready_and_its_end() -> None:
    async def scenario(world: World) -> None:
        await world.create(annotations={"sim.kruise.io/never-ready": "true"})
        await asyncio.sleep(600)
        found = await world.pod()
        assert found["status"]["phase"] == "Running"
        assert condition(found, "Ready")["reason"] == "ContainersNotReady"
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/never-ready": None}}})
        await world.until_ready()

    virtually(scenario)


def test_a_knob_for_one_container_leaves_the_others() -> None:
    async def scenario(world: World) -> None:
        await world.create(
            containers=[container(), container("side", "envoy:1")],
            annotations={"sim.kruise.io/never-ready.side": "true"},
        )
        await asyncio.sleep(60)
        found = await world.pod()
        assert status(found)["ready"]
        assert not status(found, "side")["ready"]
        assert condition(found, "Ready")["message"] == "containers with unready status: [side]"

    virtually(scenario)


def test_transition_times_move_only_with_the_status() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        first = condition(await world.until_ready(), "Ready")["lastTransitionTime"]
        await asyncio.sleep(100)
        await world.patch({"metadata": {"annotations": {"sim.kruise.io/never-ready": "true"}}})
        found = await world.until(lambda found: not is_ready(found))
        second = condition(found, "Ready")["lastTransitionTime"]
        assert (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds() >= 100
        assert condition(found, "Initialized")["lastTransitionTime"] == first

    virtually(scenario)
