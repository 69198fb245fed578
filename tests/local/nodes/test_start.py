"""From a bound pod to a ready one, as a kubelet of 1.34 tells it."""

from __future__ import annotations

import asyncio

from tests.local.nodes.world import World, condition, container, script, status, virtually, waiting


def test_a_pod_is_pulled_started_and_ready() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        first = await world.until(lambda found: "containerStatuses" in found["status"])
        assert first["status"]["phase"] == "Pending"
        assert waiting(first) == "ContainerCreating"
        assert condition(first, "Ready")["reason"] == "ContainersNotReady"
        assert condition(first, "Ready")["message"] == "containers with unready status: [app]"
        assert condition(first, "PodReadyToStartContainers")["status"] == "False"
        assert condition(first, "Initialized")["status"] == "True"
        assert "podIP" not in first["status"]

        found = await world.until_ready()
        told = found["status"]
        assert told["phase"] == "Running"
        assert told["podIP"] == "10.244.0.2"
        assert told["podIPs"] == [{"ip": "10.244.0.2"}]
        assert told["hostIP"] == "172.18.0.2"
        assert told["qosClass"] == "BestEffort"
        assert told["observedGeneration"] == 1
        assert {item["type"]: item["observedGeneration"] for item in told["conditions"]} == dict.fromkeys(
            ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), 1
        )
        app = status(found)
        assert app["started"]
        assert app["ready"]
        assert app["restartCount"] == 0
        assert app["image"] == "docker.io/library/nginx:1.25"
        assert app["imageID"].startswith("docker.io/library/nginx@sha256:")
        assert app["containerID"].startswith("containerd://")
        assert len(app["containerID"]) == len("containerd://") + 64

    virtually(scenario)


def test_the_events_are_the_kubelets() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[container(image="app:1")], annotations={"sim.kruise.io/image-size": "100M"})
        await world.until_ready()
        await world.create("second", containers=[container(image="app:1")])
        await world.until_ready("second")
        # 100 MB at 100 MB/s, and a quarter of a second to ask the registry.
        size = "Image size: 100000000 bytes."
        assert await world.said() == [
            ("Pulling", 'Pulling image "app:1"'),
            ("Pulled", f'Successfully pulled image "app:1" in 1.25s (1.25s including waiting). {size}'),
            ("Created", "Created container: app"),
            ("Started", "Started container app"),
        ]
        events = await world.events()
        assert {item["source"]["component"] for item in events} == {"kubelet"}
        assert {item["source"]["host"] for item in events} == {"node-1"}
        assert {item["involvedObject"]["fieldPath"] for item in events} == {"spec.containers{app}"}
        assert (await world.said("second"))[0] == ("Pulled", 'Container image "app:1" already present on machine')

    virtually(scenario)


def test_a_start_takes_two_status_writes() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        before = int((await world.pod())["metadata"]["resourceVersion"])
        await world.until_ready()
        await asyncio.sleep(60)
        assert len(world.core.storage.since("pods", before)) == 2
        assert (await world.pod())["status"]["phase"] == "Running"

    virtually(scenario)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await world.create(
            containers=[
                container(readinessProbe={"httpGet": {"port": 80}}, livenessProbe={"exec": {"command": ["true"]}})
            ]
        )
        await world.until_ready()
        await asyncio.sleep(60)
        before = world.core.storage.version
        await asyncio.sleep(7200)
        assert world.core.storage.version == before

    virtually(scenario)


def test_pods_of_other_nodes_are_left_alone() -> None:
    async def scenario(world: World) -> None:
        await world.create(nodeName="elsewhere")
        await asyncio.sleep(60)
        assert "startTime" not in (await world.pod())["status"]

    virtually(scenario)


def test_containers_start_in_order_and_are_told_together() -> None:
    """One sync of a kubelet starts them one after the other; its status comes after it."""

    async def scenario(world: World) -> None:
        slow = {"sim.kruise.io/image-size.second": "1G"}
        await world.create(containers=[container("first", "one:1"), container("second", "two:1")], annotations=slow)
        await asyncio.sleep(5)
        half = await world.pod()
        assert [waiting(half, name) for name in ("first", "second")] == ["ContainerCreating"] * 2
        found = await world.until_ready()
        assert [item["name"] for item in found["status"]["containerStatuses"]] == ["first", "second"]
        reasons = [reason for reason, message in await world.said() if reason == "Started"]
        assert len(reasons) == 2

    virtually(scenario)


def test_a_post_start_hook_holds_the_container_up() -> None:
    async def scenario(world: World) -> None:
        hook = {"postStart": {"exec": {"command": ["sh", "-c", "sleep 20; echo done"]}}}
        await world.create(containers=[container(lifecycle=hook)])
        await asyncio.sleep(15)
        assert waiting(await world.pod()) == "ContainerCreating"
        await world.until_ready()
        assert 20 < world.clock.monotonic() < 30

    virtually(scenario)


def test_a_failing_post_start_hook_ends_the_container() -> None:
    async def scenario(world: World) -> None:
        hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 7"]}}}
        await world.create(containers=[container(lifecycle=hook)])
        found = await world.until(lambda found: waiting(found) == "PostStartHookError")
        pod = f"web_default({found['metadata']['uid']})"
        assert status(found)["state"]["waiting"]["message"] == (
            f'Exec lifecycle hook ([sh -c echo no; exit 7]) for Container "app" in Pod "{pod}" failed'
            " - error: command 'sh -c echo no; exit 7' exited with 7: , message: \"no\\n\""
        )
        found = await world.until(lambda found: status(found)["restartCount"] >= 1)
        assert status(found)["lastState"]["terminated"]
        said = await world.said()
        assert ("FailedPostStartHook", "PostStartHook failed") in said
        assert ("Killing", "FailedPostStartHook") in said

    virtually(scenario)


def test_readiness_gates_hold_ready_back() -> None:
    async def scenario(world: World) -> None:
        await world.create(readinessGates=[{"conditionType": "example.com/load"}])
        held = await world.until(lambda found: condition(found, "ContainersReady").get("status") == "True")
        assert condition(held, "Ready")["reason"] == "ReadinessGatesNotReady"
        text = 'corresponding condition of pod readiness gate "example.com/load" does not exist.'
        assert condition(held, "Ready")["message"] == text

        await world.patch(
            {"status": {"conditions": [{"type": "example.com/load", "status": "False"}]}}, subresource="status"
        )
        await asyncio.sleep(1)
        text = 'the status of pod readiness gate "example.com/load" is not "True", but False'
        assert condition(await world.pod(), "Ready")["message"] == text

        await world.patch(
            {"status": {"conditions": [{"type": "example.com/load", "status": "True"}]}}, subresource="status"
        )
        await world.until_ready()

    virtually(scenario)


def test_what_others_write_over_is_put_right() -> None:
    """A control plane says that the pod is not ready while its node is away; the kubelet knows better."""

    async def scenario(world: World) -> None:
        await world.create()
        await world.until_ready()
        await world.patch({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, subresource="status")
        await asyncio.sleep(1)
        assert condition(await world.pod(), "Ready")["status"] == "True"

    virtually(scenario)


def test_host_network_pods_have_the_nodes_address() -> None:
    async def scenario(world: World) -> None:
        await world.create(hostNetwork=True)
        assert (await world.until_ready())["status"]["podIP"] == "172.18.0.2"

    virtually(scenario)


def test_ephemeral_containers_start_in_a_running_pod() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        before = await world.until_ready()
        added = {"spec": {"ephemeralContainers": [script("echo hi", "debug")]}}
        await world.patch(added, subresource="ephemeralcontainers")
        after = await world.until(lambda found: "terminated" in status(found, "debug").get("state", {}))
        assert status(after, "debug")["state"]["terminated"]["exitCode"] == 0
        assert status(after)["containerID"] == status(before)["containerID"]
        assert condition(after, "Ready")["status"] == "True"
        await asyncio.sleep(60)
        assert status(await world.pod(), "debug")["restartCount"] == 0

    virtually(scenario)


def test_addresses_are_unique_and_come_back() -> None:
    async def scenario(world: World) -> None:
        for number in range(20):
            await world.create(f"p{number}")
        found = [await world.until_ready(f"p{number}") for number in range(20)]
        assert len({item["status"]["podIP"] for item in found}) == 20

    virtually(scenario)
