"""What `kruise why` says of a PodProbeMarker: every cause that only it knows, reached on the local cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kruise.api.apps.probes import NODE_POD_PROBES
from kruise.operations.probes.marker.causes import CAUSES
from kruise.operations.probes.node import causes as node_causes
from kruise.reasons.words import answer_lines
from tests.reasons.asking import ask, ask_journal, codes, is_helped
from tests.scenarios.probing import ProbeStage, exec_probe
from tests.support.world import LocalWorld, run_local

Play = Callable[[ProbeStage], Awaitable[None]]
SCENES: dict[str, Play] = {}
BY_DECISION = {"node-not-told", "no-node-probe"}
"""They last a moment on a cluster that works: the rules of decisions show them."""


def reaches(code: str) -> Callable[[Play], Play]:
    def enlist(play: Play) -> Play:
        SCENES[code] = play
        return play

    return enlist


@reaches("nothing-to-probe")
async def no_pod_matches(stage: ProbeStage) -> None:
    await stage.mark()
    await stage.told()


@reaches("not-initialized")
async def an_init_container_takes_its_time(stage: ProbeStage) -> None:
    init = [{"name": "setup", "image": "busybox:1.36", "command": ["sleep", "1000"]}]
    await stage.create(replicas=1, pod={"initContainers": init})
    await stage.mark()
    await stage.told()
    await stage.world.sleep(5)


@reaches("no-such-container")
async def a_container_that_nobody_has(stage: ProbeStage) -> None:
    await stage.start(replicas=1)
    await stage.mark(
        probes=[{"name": "p", "containerName": "nobody", "probe": exec_probe(), "podConditionType": "a/b"}]
    )
    await stage.told()


@reaches("no-such-port")
async def a_port_that_nobody_has(stage: ProbeStage) -> None:
    await stage.start(replicas=1)
    await stage.mark(probe={"tcpSocket": {"port": "nobody"}})
    await stage.told()


@reaches("no-probe-result")
async def no_daemon_answers(stage: ProbeStage) -> None:
    [pod] = await stage.start(replicas=1)
    assert isinstance(stage.world, LocalWorld)
    stage.world.cluster.nodes.stop_daemon(pod["spec"]["nodeName"])
    await stage.mark()
    await stage.told()
    await stage.world.sleep(90)


@reaches("probe-cannot-run")
async def a_command_that_the_image_does_not_have(stage: ProbeStage) -> None:
    """As a real runtime says it; simulated containers can run anything."""
    [pod] = await stage.start(replicas=1)
    assert isinstance(stage.world, LocalWorld)
    node, metadata = pod["spec"]["nodeName"], pod["metadata"]
    stage.world.cluster.nodes.stop_daemon(node)
    await stage.mark()
    await stage.told()
    text = "the command cannot be run in the container: exec failed: no such program"
    state = {"name": "m#p", "state": "Unknown", "message": text}
    told = {name: metadata[name] for name in ("name", "namespace", "uid")} | {"probeStates": [state]}
    body = {"status": {"podProbeStatuses": [told]}}
    await stage.world.patch(NODE_POD_PROBES, node, body, subresource="status")
    await stage.world.sleep(5)


@reaches("condition-taken")
async def another_marker_has_the_condition(stage: ProbeStage) -> None:
    await stage.start(replicas=1)
    await stage.mark("a-first-one")
    await stage.mark()
    await stage.told()
    await stage.world.sleep(10)


@pytest.mark.parametrize("code", list(SCENES))
def test_cause(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = ProbeStage(world, gates=world.options.gates)
        await SCENES[code](stage)
        kind = f"podprobemarkers.{NODE_POD_PROBES.group}"
        answer = await ask_journal(stage, monkeypatch, "m", kind=kind)
        assert code in codes(answer)
        is_helped(answer)
        assert codes(await ask(stage, "m", kind=kind)) == codes(answer)
        assert "at the newest template" not in "\n".join(answer_lines(answer))

    run_local(play)


def test_no_cause_is_left_out() -> None:
    assert {cause.code for cause in CAUSES} == set(SCENES) | BY_DECISION


def test_a_node_whose_daemon_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """`kruise why nodepodprobe/NODE`: which pods wait, and where to look."""

    async def play(world: LocalWorld) -> None:
        stage = ProbeStage(world, gates=world.options.gates)
        [pod] = await stage.start(replicas=1)
        node, kind = pod["spec"]["nodeName"], f"nodepodprobes.{NODE_POD_PROBES.group}"
        calm = await ask(stage, node, kind=kind)
        assert f"nothing is probed on node {node}" in "\n".join(answer_lines(calm))
        world.cluster.nodes.stop_daemon(node)
        await stage.mark()
        await stage.told()
        await world.sleep(90)
        answer = await ask_journal(stage, monkeypatch, node, kind=kind)
        assert codes(answer) == {"probes-silent"}
        assert codes(await ask(stage, node, kind=kind)) == codes(answer)
        is_helped(answer)
        told = "\n".join(answer_lines(answer))
        assert f"node {node}: 0 of 1 probe of 1 pod have a result" in told
        assert f"{pod['metadata']['name']} (m#" in told
        world.cluster.nodes.start_daemon(node)
        await world.sleep(30)
        assert codes(await ask(stage, node, kind=kind)) == set()

    run_local(play)


def test_every_cause_of_a_node_is_reached() -> None:
    """`probes-not-told` lasts a moment: the rules of decisions show it."""
    assert {cause.code for cause in node_causes.CAUSES} == {"probes-not-told", "probes-silent"}
