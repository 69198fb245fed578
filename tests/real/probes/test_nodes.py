"""Probes of every kind in real containers, run by the node daemon: what they find, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.probes import NODE_POD_PROBES, POD_PROBE_MARKERS
from kruise.api.native.pod import PODS
from kruise.machinery.client.requests import PatchType
from tests.scenarios.probing import ProbeStage
from tests.scenarios.stage import Pace
from tests.support.nodedaemons import Daemons, daemons_on
from tests.support.realnodes import RealNodes
from tests.support.world import Json, World

pytestmark = [pytest.mark.nodes, pytest.mark.together("own-nodes")]
PACE = Pace(seconds=3, calm=3.0, within=120.0, every=0.3, slack=10.0)
ANNOTATION = "game.example/level"
IDLE = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]


@pytest.fixture(scope="module")
def daemons(own_nodes: RealNodes) -> Iterator[Daemons]:
    with daemons_on(own_nodes, "PodProbeMarkerGate") as made:
        yield made


def kind_of(name: str) -> str:
    return f"game.example/{name}"


def probe(name: str, handler: Mapping[str, Any], *, container: str = "main", **numbers: int) -> Json:
    return {
        "name": name,
        "containerName": container,
        "probe": {"periodSeconds": 1, **handler, **numbers},
        "podConditionType": kind_of(name),
    }


def command(text: str) -> Json:
    return {"exec": {"command": ["sh", "-c", text]}}


def page(path: str, port: int | str = "web") -> Json:
    return {"httpGet": {"path": path, "port": port, "scheme": "HTTP"}}


def port(number: int | str) -> Json:
    return {"tcpSocket": {"port": number}}


CONTAINERS: Sequence[Json] = (
    {"name": "main", "image": "nginx:1.25", "ports": [{"name": "web", "containerPort": 80}]},
    {
        "name": "side",
        "image": "busybox:1.36",
        "command": IDLE,
        "env": [{"name": "LEVEL", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{ANNOTATION}']"}}}],
    },
)


def stage_of(world: World) -> ProbeStage:
    return ProbeStage(world, gates={}, pace=PACE)


async def start(stage: ProbeStage, replicas: int = 3) -> list[Json]:
    return await stage.start(
        replicas=replicas,
        containers=CONTAINERS,
        annotations={ANNOTATION: "one"},
        pod={"terminationGracePeriodSeconds": 3},
    )


async def stays(stage: ProbeStage, seconds: float) -> None:
    """Nothing changes about the pods."""
    before = {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in await stage.pods("web")}
    await asyncio.sleep(seconds)
    after = {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in await stage.pods("web")}
    assert after == before


@pytest.mark.smoke
def test_probes_of_every_kind(daemons: Daemons) -> None:
    """PRB-3 to PRB-8, NPP-11, NPP-13, PPM-25, PPM-41: commands, requests and connections that succeed, fail, and take
    too long; conditions have the words, labels and annotations the marks. Steady results write nothing (no. 14)."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        await start(stage)
        marked = probe("marked", command("test $LEVEL = two"), container="side") | {
            "markerPolicy": [
                {"state": "Succeeded", "labels": {"level": "two"}, "annotations": {"cost": "10"}},
                {"state": "Failed", "annotations": {"cost": "-10"}},
            ]
        }
        probes = [
            probe("fine", command("echo level $LEVEL"), container="side"),
            probe("bad", command("echo broken >&2; exit 3")),
            probe("late", command("sleep 30"), timeoutSeconds=1, periodSeconds=5),
            probe("absent", {"exec": {"command": ["no-such-program"]}}),
            probe("page", page("/")),
            probe("missing", page("/nothing")),
            probe("shut-page", page("/", 81)),
            probe("open", port("web")),
            probe("shut", port(81)),
            marked,
        ]
        await stage.mark(probes=probes)
        await stage.told()
        await stage.all_are("True", "level one\n", kind=kind_of("fine"))
        await stage.all_are("False", "broken\n", kind=kind_of("bad"))
        await stage.all_are("False", kind=kind_of("late"))
        assert all("took longer than 1s" in text for _, text in await stage.conditions(kind_of("late")))
        await stage.all_are("False", kind=kind_of("absent"))

        async def told() -> None:
            texts = [text for _, text in await stage.conditions(kind_of("absent"))]
            assert all(text.startswith("the command cannot be run in the container: ") for text in texts), texts

        await stage.until(told)
        code, said = await daemons.kruise(world, "why", "podprobemarker/m")
        assert (code, "probe absent of container main: the command cannot be run" in said) == (3, True), said
        await stage.all_are("True", "<html><body><h1>nginx 1.25</h1></body></html>\n", kind=kind_of("page"))
        await stage.all_are("False", "HTTP probe failed with statuscode: 404", kind=kind_of("missing"))
        await stage.all_are("False", kind=kind_of("shut-page"))
        await stage.all_are("True", "", kind=kind_of("open"))
        await stage.all_are("False", kind=kind_of("shut"))
        for kind in ("shut-page", "shut"):
            assert all("refused" in text.lower() or "111" in text for _, text in await stage.conditions(kind_of(kind)))
        await stage.all_are("False", kind=kind_of("marked"))
        assert await stage.annotations("cost") == {"-10"}
        assert await stage.labels("level") == {None}
        await stays(stage, 4)

        # The environment comes from an annotation: the daemon restarts the container, and probes find the new value.
        await stage.edit_template({"metadata": {"annotations": {ANNOTATION: "two"}}})
        after = await stage.complete()
        counts = [{one["name"]: one["restartCount"] for one in pod["status"]["containerStatuses"]} for pod in after]
        assert counts == [{"main": 0, "side": 1}] * 3
        await stage.all_are("True", "level two\n", kind=kind_of("fine"))
        await stage.all_are("True", kind=kind_of("marked"))
        assert await stage.annotations("cost") == {"10"}
        assert await stage.labels("level") == {"two"}
        await world.delete(POD_PROBE_MARKERS, "m")
        await stage.gone()

        async def emptied() -> None:
            assert not await stage.entries()

        await stage.until(emptied)

    daemons.play(story, "probes")


def test_thresholds_and_a_late_start(daemons: Daemons) -> None:
    """PRB-3.4, PRB-3.6: nothing is asked before initialDelaySeconds, and a change counts when seen often enough."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        [pod] = await start(stage, replicas=1)
        began = world.clock.monotonic()
        flag = command("cat /tmp/flag")
        await stage.mark(
            probes=[
                probe("slowly", flag, successThreshold=4, failureThreshold=1),
                probe("stubborn", flag, successThreshold=1, failureThreshold=4),
                probe("patient", command("echo up"), initialDelaySeconds=12, container="side"),
            ]
        )
        await stage.all_are("False", kind=kind_of("slowly"))
        # Before the delay is over nobody has asked: there may be no result, but none that succeeded.
        started = {one["name"]: one["state"]["running"]["startedAt"] for one in pod["status"]["containerStatuses"]}
        await write(daemons, stage, pod, "touch /tmp/flag")
        changed = world.clock.monotonic()
        await stage.all_are("True", kind=kind_of("stubborn"))
        quick = world.clock.monotonic() - changed
        await stage.all_are("True", kind=kind_of("slowly"))
        assert world.clock.monotonic() - changed >= 2.5
        assert quick < world.clock.monotonic() - changed
        await stage.all_are("True", "up\n", kind=kind_of("patient"))
        [told] = [
            one
            for one in (await stage.pod(pod["metadata"]["name"]))["status"]["conditions"]
            if one["type"] == kind_of("patient")
        ]
        assert told["lastProbeTime"] > started["side"]
        await write(daemons, stage, pod, "rm /tmp/flag")
        changed = world.clock.monotonic()
        await stage.all_are("False", kind=kind_of("slowly"))
        await stage.all_are("False", kind=kind_of("stubborn"))
        assert world.clock.monotonic() - changed >= 2.5
        assert world.clock.monotonic() - began < PACE.within

    daemons.play(story, "thresholds")


async def write(daemons: Daemons, stage: ProbeStage, pod: Json, text: str) -> None:
    """Run a command in container main, as somebody on its node."""
    [status] = [one for one in pod["status"]["containerStatuses"] if one["name"] == "main"]
    identity = status["containerID"].removeprefix("containerd://")
    run = ("ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", f"t{abs(hash(text))}", identity, "sh", "-c", text)
    await asyncio.to_thread(daemons.nodes.run_on_node, pod["spec"]["nodeName"], *run)


def test_probes_go_on_when_daemon_or_runtime_die(daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-98, DMN-99: results stand meanwhile, no mark goes for a moment, and what changes afterwards is seen."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        pods = await start(stage, replicas=2)
        policy = [{"state": "Succeeded", "labels": {"idle": "yes"}}]
        await stage.mark(probes=[probe("flag", command("! test -e /tmp/flag")) | {"markerPolicy": policy}])
        await stage.all_are("True", kind=kind_of("flag"))
        seen: set[str | None] = set()

        async def watch() -> None:
            while True:
                seen.update(await stage.labels("idle"))
                await asyncio.sleep(0.1)

        watching = asyncio.create_task(watch())
        nodes = {pod["spec"]["nodeName"] for pod in pods}
        for node in nodes:
            daemons.restart(node)
        await asyncio.sleep(4)
        for node in nodes:
            own_nodes.kill_containerd(node)
        await asyncio.sleep(4)
        for node in nodes:
            own_nodes.start_containerd(node)
        await asyncio.sleep(6)
        watching.cancel()
        assert seen == {"yes"}
        for pod in pods:
            await write(daemons, stage, pod, "touch /tmp/flag")
        await stage.all_are("False", kind=kind_of("flag"))
        assert await stage.labels("idle") == {None}

    daemons.play(story, "torn-probes")


def test_nobody_answers_on_the_node(daemons: Daemons, own_nodes: RealNodes) -> None:
    """DMN-100: `why` names the nodes without a daemon; when it is back, the probe is made."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        [pod] = await start(stage, replicas=1)
        node = pod["spec"]["nodeName"]
        daemons.stop(node)
        await stage.mark(probes=[probe("p", command("echo back"))])
        await stage.told()
        _, said = await daemons.kruise(world, "why", "podprobemarker/m")
        assert f"the daemon of node {node} has reported nothing of probe p" in said
        daemons.start(node)
        await stage.all_are("True", "back\n", kind=kind_of("p"))

    daemons.play(story, "silent")


def test_another_pod_of_the_name_begins_anew(daemons: Daemons) -> None:
    """NPP-3, section 11 no. 3 and 17: results are of a pod's uid. A restarted container begins anew, too (PRB-3.2)."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        await start(stage, replicas=2)
        await stage.mark(probes=[probe("count", command("echo x >> /tmp/n; wc -l < /tmp/n"))])
        await stage.all_are("True", kind=kind_of("count"))
        await stage.scale(0)
        await stage.complete()

        async def emptied() -> None:
            assert not await stage.entries()

        await stage.until(emptied)
        await stage.scale(3)
        pods = await stage.complete()
        await stage.all_are("True", kind=kind_of("count"))
        living = {pod["metadata"]["uid"] for pod in pods}
        for one in await world.list(NODE_POD_PROBES):
            for entry in one.get("status", {}).get("podProbeStatuses", []):
                assert entry["namespace"] != stage.namespace or entry["uid"] in living
        assert {entry["uid"] for entry in (await stage.entries()).values()} == living
        there = [pod["metadata"] for pod in await world.list(PODS, "app=web")]
        assert {one["uid"] for one in there if "deletionTimestamp" not in one} == living

    daemons.play(story, "anew")


def test_a_probe_that_is_changed_is_asked_anew(daemons: Daemons) -> None:
    """PPM-42, PRB-1, section 11 no. 2, 5 and 12."""

    async def story(world: World) -> None:
        stage = stage_of(world)
        await start(stage, replicas=2)
        policy = [{"state": "Succeeded", "labels": {"good": "yes"}}, {"state": "Failed", "annotations": {"bad": "yes"}}]
        await stage.mark(probes=[probe("p", port(80)) | {"markerPolicy": policy}])
        await stage.all_are("True", "", kind=kind_of("p"))
        for handler, status, text in (
            (port(8081), "False", None),
            (port(80), "True", ""),
            (command("no-such-command"), "False", None),
            (command("echo one"), "True", "one\n"),
            (command("echo two"), "True", "two\n"),
        ):
            body = {"spec": {"probes": [probe("p", handler) | {"markerPolicy": policy}]}}
            await world.patch(POD_PROBE_MARKERS, "m", body, patch_type=PatchType.MERGE)
            await stage.all_are(status, text, kind=kind_of("p"))
            good, bad = ("yes", None) if status == "True" else (None, "yes")
            assert await stage.labels("good") == {good}
            assert await stage.annotations("bad") == {bad}
        assert (await world.get(CLONE_SETS, "web"))["status"]["readyReplicas"] == 2

    daemons.play(story, "changed")
