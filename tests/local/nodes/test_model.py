"""Nodes come, go down and come back; a new process goes on where the old one ended; the same seed tells the same."""

from __future__ import annotations

import asyncio
import json

import pytest

from kruise.api.native.events import LEASES
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.local.apicore.errors import StatusError
from kruise.local.nodes import NodeSpec, make_nodes
from kruise.local.nodes.knobs import NODE_DOWN
from kruise.local.nodes.lifecycle import PodMachine, Step
from kruise.local.nodes.pods import Pod
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import run_virtual
from tests.local.nodes.world import Json, World, condition, container, is_ready, pod, script, status, virtually, waiting


async def node(world: World, name: str = "node-1") -> Json:
    answer = await world.client.send(Request(Verb.GET, NODES, "", name))
    found: Json = json.loads(answer.body)
    return found


def test_nodes_register() -> None:
    async def scenario(world: World) -> None:
        found = await node(world, "node-2")
        assert found["metadata"]["labels"]["topology.kubernetes.io/zone"] == "b"
        assert condition(found, "Ready")["status"] == "True"
        assert found["spec"]["podCIDR"] == "10.244.1.0/24"
        assert found["status"]["allocatable"]["pods"] == "110"
        assert not (await world.client.list(LEASES)).items

    virtually(scenario, make_nodes(3, zones=["a", "b"]))


def test_with_heartbeats_leases_are_renewed() -> None:
    async def scenario(world: World) -> None:
        await asyncio.sleep(1)
        first = await world.client.get(LEASES, "node-3", "kube-node-lease")
        assert first.spec.holder_identity == "node-3"
        assert first.spec.lease_duration_seconds == 40
        await asyncio.sleep(15)
        second = await world.client.get(LEASES, "node-3", "kube-node-lease")
        assert second.spec.renew_time is not None
        assert first.spec.renew_time is not None
        assert second.spec.renew_time > first.spec.renew_time
        before = condition(await node(world), "Ready")["lastHeartbeatTime"]
        await asyncio.sleep(400)
        assert condition(await node(world), "Ready")["lastHeartbeatTime"] > before

    virtually(scenario, 3, heartbeat=True)


def test_images_are_reported_with_the_node() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.until_ready()
        await asyncio.sleep(15)
        names = [name for item in (await node(world))["status"]["images"] for name in item["names"]]
        assert "docker.io/library/nginx:1.25" in names

    virtually(scenario)


def test_a_node_that_is_down_does_nothing_until_it_is_back() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.until_ready()
        world.model.stop_node("node-1")
        await world.create("late")
        await world.client.delete(PODS, "web", "default")
        await asyncio.sleep(120)
        assert await world.exists()
        assert "startTime" not in (await world.pod("late"))["status"]
        world.model.start_node("node-1")
        await world.gone()
        await world.until_ready("late")
        with pytest.raises(LookupError, match="node-9 is not simulated"):
            world.model.stop_node("node-9")

    virtually(scenario)


def test_a_node_goes_down_by_annotation_and_the_model_says_so_where_nobody_else_does() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await world.until_ready()
        await world.client.patch(NODES, "node-1", {"metadata": {"annotations": {NODE_DOWN: "down"}}})
        await asyncio.sleep(30)
        assert condition(await node(world), "Ready")["status"] == "True"
        await asyncio.sleep(30)
        lost = await node(world)
        ready = condition(lost, "Ready")
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
        assert ready["message"] == "Kubelet stopped posting node status."
        assert {taint["effect"] for taint in lost["spec"]["taints"]} == {"NoSchedule", "NoExecute"}
        assert condition(await world.pod(), "Ready")["status"] == "False"

        await world.client.patch(NODES, "node-1", {"metadata": {"annotations": {NODE_DOWN: None}}})
        await asyncio.sleep(1)
        found = await node(world)
        assert condition(found, "Ready")["status"] == "True"
        assert not found["spec"].get("taints")
        assert is_ready(await world.pod())

    virtually(scenario, monitor=True)


def test_a_node_joins_later() -> None:
    async def scenario(world: World) -> None:
        await world.create(nodeName="extra")
        await asyncio.sleep(10)
        await world.model.add_node(NodeSpec(name="extra", pod_cidr="10.9.0.0/24"))
        assert (await world.until_ready())["status"]["podIP"] == "10.9.0.2"
        with pytest.raises(ValueError, match="extra is simulated already"):
            await world.model.add_node(NodeSpec(name="extra"))

    virtually(scenario)


def test_a_new_process_restarts_nothing() -> None:
    async def scenario(world: World) -> None:
        probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 5}
        await world.create(containers=[container(readinessProbe=probe, startupProbe=probe), container("side", "b:1")])
        await world.create("job", restartPolicy="Never", containers=[script("sleep 100; exit 0")])
        await world.create("done", restartPolicy="Never", containers=[script("exit 0")])
        await world.create("loop", annotations={"sim.kruise.io/crash-loop": "1"})
        await world.create("ghost", containers=[container(image="a:missing")])
        await world.until_ready()
        await world.until(lambda found: found["status"]["phase"] == "Succeeded", "done")
        await world.until(lambda found: waiting(found) == "CrashLoopBackOff", "loop")
        await world.until(lambda found: waiting(found) == "ImagePullBackOff", "ghost")
        names = ("web", "job", "done")
        before = [await world.pod(name) for name in names]
        loops = status(await world.pod("loop"))["restartCount"]
        await world.restart()
        await asyncio.sleep(20)
        after = [await world.pod(name) for name in names]
        assert after == before
        found = await world.until(lambda found: found["status"]["phase"] == "Succeeded", "job")
        assert status(found)["restartCount"] == 0
        assert 100 <= world.clock.monotonic() < 110
        assert loops <= status(await world.pod("loop"))["restartCount"] <= loops + 3
        await world.create("next")
        addresses = [
            (await world.pod(name))["status"]["podIP"]
            for name in ("web", "job", "next")
            if await world.until(lambda found: "podIP" in found["status"], name)
        ]
        assert len(set(addresses)) == 3

    virtually(scenario)


def test_a_change_of_image_while_nobody_was_there_is_made_up_for() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        before = await world.until_ready()
        await world.stop()
        await world.set_image("nginx:1.26")
        await world.restart()
        after = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert status(after)["lastState"]["terminated"]["containerID"] == status(before)["containerID"]
        assert after["status"]["podIP"] == before["status"]["podIP"]

    virtually(scenario)


def test_imported_pods_go_on_as_they_are() -> None:
    """From another cluster: a runtime may report other names for an image."""

    async def scenario(world: World) -> None:
        await world.stop()
        await world.create()
        told = {
            "phase": "Running",
            "startTime": "2029-12-01T00:00:00Z",
            "podIP": "10.1.2.3",
            "hostIP": "192.168.0.7",
            "observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2029-12-01T00:00:05Z"}],
            "containerStatuses": [
                {
                    "name": "app",
                    "image": "registry.example.com/mirror/nginx:stable",
                    "imageID": "registry.example.com/mirror/nginx@sha256:" + "b" * 64,
                    "containerID": "containerd://" + "c" * 64,
                    "ready": True,
                    "started": True,
                    "restartCount": 4,
                    "state": {"running": {"startedAt": "2029-12-01T00:00:04Z"}},
                    "lastState": {},
                }
            ],
        }
        await world.patch({"status": told}, subresource="status")
        await world.restart()
        await asyncio.sleep(100)
        found = await world.pod()
        assert status(found)["containerID"].endswith("c" * 64)
        assert status(found)["restartCount"] == 4
        assert found["status"]["podIP"] == "10.1.2.3"
        assert condition(found, "Ready")["lastTransitionTime"] == "2029-12-01T00:00:05Z"
        await world.set_image("nginx:1.26")
        found = await world.until(lambda found: status(found)["restartCount"] == 5)
        assert found["status"]["podIP"] == "10.1.2.3"
        assert status(found)["lastState"]["terminated"]["containerID"].endswith("c" * 64)

    virtually(scenario)


def test_writes_that_fail_are_made_up_for() -> None:
    async def scenario(world: World) -> None:
        await world.create()
        await asyncio.sleep(0.1)
        world.transport.take_down()
        await asyncio.sleep(20)
        world.transport.bring_up()
        found = await world.until_ready()
        assert status(found)["restartCount"] == 0

    virtually(scenario)


def test_one_odd_pod_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PodMachine.step

    def step(machine: PodMachine, pod: Pod, now: float) -> Step:
        if pod.metadata.name == "odd":
            raise ValueError("too odd")
        return real(machine, pod, now)

    monkeypatch.setattr(PodMachine, "step", step)

    async def scenario(world: World) -> None:
        await world.create("odd")
        await world.create()
        await world.until_ready()
        assert "startTime" not in (await world.pod("odd"))["status"]

    virtually(scenario)


# Resize


def resources(cpu: str, memory: str = "64Mi") -> Json:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}}}


async def resize(world: World, cpu: str, memory: str = "64Mi", *, name: str = "web") -> None:
    body = {"spec": {"containers": [{"name": "app", **resources(cpu, memory)}]}}
    await world.patch(body, name, subresource="resize")


def test_a_resize_without_restart() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[container(**resources("100m"))])
        before = await world.until_ready()
        assert before["status"]["qosClass"] == "Guaranteed"
        assert status(before)["allocatedResources"] == {"cpu": "100m", "memory": "64Mi"}
        await resize(world, "200m")
        half = await world.until(lambda found: bool(condition(found, "PodResizeInProgress")))
        assert status(half)["allocatedResources"]["cpu"] == "200m"
        assert status(half)["resources"]["limits"]["cpu"] == "100m"
        after = await world.until(lambda found: not condition(found, "PodResizeInProgress"))
        assert status(after)["resources"]["limits"]["cpu"] == "200m"
        assert status(after)["containerID"] == status(before)["containerID"]
        assert status(after)["restartCount"] == 0
        reason, message = (await world.said())[-1]
        assert reason == "ResizeCompleted"
        assert message.startswith('Pod resize completed: {"containers":[{"name":"app","resources":{"limits":')

    virtually(scenario)


def test_a_resize_with_restart() -> None:
    async def scenario(world: World) -> None:
        policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        await world.create(containers=[container(resizePolicy=policy, **resources("100m"))])
        before = await world.until_ready()
        await resize(world, "100m", "128Mi")
        after = await world.until(lambda found: status(found)["restartCount"] == 1)
        assert status(after)["resources"]["limits"]["memory"] == "128Mi"
        assert status(after)["imageID"] == status(before)["imageID"]
        assert ("Killing", "Container app resize requires restart") in await world.said()
        await world.until(lambda found: not condition(found, "PodResizeInProgress"))

    virtually(scenario)


def test_a_resize_that_does_not_fit_waits_or_is_refused() -> None:
    async def scenario(world: World) -> None:
        await world.create("other", containers=[container(**resources("3"))])
        await world.create(containers=[container(**resources("100m"))])
        await world.until_ready("other")
        await world.until_ready()
        await resize(world, "2")
        found = await world.until(lambda found: bool(condition(found, "PodResizePending")))
        pending = condition(found, "PodResizePending")
        assert (pending["status"], pending["reason"]) == ("True", "Deferred")
        text = "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
        assert pending["message"] == text
        await resize(world, "5")
        await asyncio.sleep(1)
        pending = condition(await world.pod(), "PodResizePending")
        assert pending["reason"] == "Infeasible"
        assert pending["message"] == "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
        await resize(world, "2")
        await world.client.delete(PODS, "other", "default")
        found = await world.until(lambda found: status(found)["resources"]["limits"]["cpu"] == "2")
        assert not condition(found, "PodResizePending")

    virtually(scenario, make_nodes(1, cpu="4"))


def test_what_others_ask_for_and_were_not_granted_takes_no_room() -> None:
    async def scenario(world: World) -> None:
        await world.create("other", containers=[container(**resources("1"))])
        await world.create(containers=[container(**resources("1"))])
        await world.until_ready("other")
        await world.until_ready()
        await resize(world, "100", name="other")
        await world.until(lambda found: bool(condition(found, "PodResizePending")), "other")
        await resize(world, "3")
        await world.until(lambda found: status(found)["resources"]["limits"]["cpu"] == "3")
        assert not condition(await world.pod(), "PodResizePending")

    virtually(scenario, make_nodes(1, cpu="4"))


# Logs


def test_logs_are_what_the_command_printed() -> None:
    async def scenario(world: World) -> None:
        await world.create(containers=[script("for i in 1 2 3; do echo line $i; sleep 2; done; sleep 1000")])
        with pytest.raises(StatusError) as refused:
            await world.logs.read("default", "web", "app")
        assert 'container "app" in pod "web" is waiting to start: ContainerCreating' in str(refused.value.status)
        await world.until_ready()
        await asyncio.sleep(3)
        assert await world.logs.read("default", "web", "app") == b"line 1\nline 2\n"
        assert await world.logs.read("default", "web", "app", tail=1) == b"line 2\n"
        assert await world.logs.read("default", "web", "app", limit=4) == b"line"
        stamped = await world.logs.read("default", "web", "app", tail=1, timestamps=True)
        assert stamped.startswith(b"2030-01-01T00:00:")
        assert stamped.endswith(b"Z line 2\n")
        with pytest.raises(StatusError) as refused:
            await world.logs.read("default", "web", "app", previous=True)
        assert 'previous terminated container "app" in pod "web" not found' in str(refused.value.status)

        pieces = []

        async def follow() -> None:
            async for piece in world.logs.follow("default", "web", "app", tail=1):
                pieces.append(piece)

        following = asyncio.create_task(follow())
        await asyncio.sleep(10)
        assert b"".join(pieces) == b"line 2\nline 3\n"
        await world.set_image("busybox:1.37")
        await world.until(lambda found: status(found)["restartCount"] == 1)
        await asyncio.sleep(1)
        assert following.done()
        assert await world.logs.read("default", "web", "app", previous=True) == b"line 1\nline 2\nline 3\n"

    virtually(scenario)


# The same each time


async def _story(seed: int) -> list[str]:
    world = World(3, seed=seed)
    await world.start()
    for number in range(30):
        name = f"p{number:02}"
        knobs = {"sim.kruise.io/crash-loop": "1"} if number % 7 == 0 else {}
        body = pod(
            name, node=f"node-{number % 3 + 1}", annotations=knobs, containers=[container(image=f"app:{number % 4}")]
        )
        await world.client.create(PODS, body, "default")
    await asyncio.sleep(30)
    for number in range(0, 30, 2):
        await world.set_image("app:9", name=f"p{number:02}")
    await asyncio.sleep(30)
    for number in range(0, 30, 3):
        await world.client.delete(PODS, f"p{number:02}", "default")
    await asyncio.sleep(300)
    await world.stop()
    log = []
    for resource in ("pods", "events", "nodes"):
        for event in world.core.storage.since(resource, 1):
            log.append(json.dumps([event.version, event.type, event.object], sort_keys=True, default=str))
    return log


def test_the_same_seed_gives_the_same_event_log() -> None:
    first, second = run_virtual(_story(7)), run_virtual(_story(7))
    assert len(first) > 300
    assert first == second
    assert run_virtual(_story(8)) != first
