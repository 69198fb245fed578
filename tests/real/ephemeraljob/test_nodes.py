"""EphemeralJobs on three real nodes: real ephemeral containers, which run, end and fail beside an app."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import shlex
import subprocess
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from tests.scenarios.ephemeral import EphemeralStage, ephemeral_names
from tests.support.commandline import Kruise
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes
from tests.support.walkthroughs import search_path
from tests.support.world import Json, World

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
WITHIN = 180.0
Play = Callable[[Callable[[EphemeralStage], Awaitable[None]]], None]


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    def run(story: Callable[[EphemeralStage], Awaitable[None]]) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(EphemeralStage(world, gates={}))

        asyncio.run(main())

    return run


async def web(world: World, number: int) -> list[Json]:
    """Pods of an app that run, on nodes that the scheduler chooses."""
    command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
    for place in range(number):
        container = {"name": "main", "image": "busybox:1.36", "command": command}
        spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
        metadata = {"name": f"web-{place}", "labels": {"app": "web"}}
        await world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def all_run() -> list[Json]:
        pods = await world.pods("app=web")
        assert [pod["status"]["phase"] for pod in pods] == ["Running"] * number
        return pods

    return await world.until(all_run, within=WITHIN)


async def counts(stage: EphemeralStage, name: str = "dbg", **wanted: object) -> Json:
    async def is_so() -> Json:
        status = await stage.status(name)
        assert {key: status.get(key) for key in wanted} == wanted
        return status

    return await stage.world.until(is_so, within=WITHIN, every=0.3)


@pytest.mark.smoke
def test_three_pods_one_after_the_other(play: Play) -> None:
    """EJ-36, EJ-40, EJ-46, EJ-60: never two at a time, and the apps go on running."""

    async def story(stage: EphemeralStage) -> None:
        before = await web(stage.world, 3)
        await stage.begin(command=("sh", "-c", "sleep 2"), parallelism=1)
        most = 0
        while (status := await stage.status()).get("phase") != "Succeeded":
            pods = await stage.world.pods("app=web")
            most = max(most, sum(_is_busy(pod) for pod in pods))
            await stage.world.sleep(0.2)
        assert most == 1
        assert (status["match"], status["succeeded"]) == (3, 3)
        after = await stage.world.pods("app=web")
        assert [_containers(pod) for pod in after] == [_containers(pod) for pod in before]
        assert all(ephemeral_names(pod) == ["dbg"] for pod in after)

    play(story)


def test_failures_a_deadline_and_what_cannot_start(play: Play) -> None:
    """EJ-27, EJ-32, EJ-33, EJ-51: exit codes and missing commands are failures; a deadline stops nothing that runs."""

    async def story(stage: EphemeralStage) -> None:
        await web(stage.world, 2)
        await stage.begin("fails", command=("sh", "-c", "exit 3"), parallelism=2)
        await stage.begin("missing", command=("/no/such/command",), parallelism=2)
        await stage.begin("late", command=("sleep", "25"), parallelism=2, activeDeadlineSeconds=8)
        await counts(stage, "fails", phase="Failed", failed=2)
        await counts(stage, "missing", phase="Failed", failed=2)
        await counts(stage, "late", phase="Failed", running=2)
        await counts(stage, "late", phase="Failed", running=0, succeeded=2)
        await stage.world.delete(EPHEMERAL_JOBS, "late")
        await stage.gone("late", within=20)

    play(story)


def test_shells_in_pods_from_the_command_line(play: Play, kruise_on_nodes: KruiseCluster, nodes_namespace: str) -> None:
    """EJ-16, EJ-20, EJ-41: `kruise debug` says where to attach, whoever does has a shell; what stands in the way."""
    kruise, where = Kruise(kruise_on_nodes.kubeconfig), ("-n", nodes_namespace, "--image", "busybox:1.36")
    told = kruise.refused("debug", "app=web", *where)
    assert told.startswith(f"no running pod in namespace {nodes_namespace} has the labels app=web: nothing was made")

    async def two_pods(stage: EphemeralStage) -> None:
        await web(stage.world, 2)

    play(two_pods)
    lines = kruise.ok("debug", "app=web", "--name", "shell", "--target", "main", "--attach-hint", *where)
    hints = [line.partition("; attach: ")[2] for line in lines if "attach: " in line]
    assert len(hints) == 2
    for hint in hints:
        # The processes of container main are seen, as --target says.
        printed = _typed(kruise_on_nodes, hint, "echo answer-$((40 + 2)); ps; exit")
        assert "answer-42" in printed, printed
        assert "trap 'exit 0' TERM" in printed, printed

    async def shells_ended_well(stage: EphemeralStage) -> None:
        await counts(stage, "shell", phase="Succeeded", succeeded=2)

    play(shells_ended_well)
    ended = kruise("debug", "app=web", "--name", "task", *where, "--", "sh", "-c", "exit 3")
    assert (ended.code, ended.out.count("failed with exit code 3")) == (1, 2)
    told = kruise.refused("debug", "app=web", "--name", "again", "--container", "task", *where)
    assert told.startswith("each pod has a container called task already: nothing was made")
    late = kruise("debug", "app=web", "--name", "none", "--image", "missing.invalid/no:1", *where[:2])
    assert late.code == 1
    assert "container none cannot start: " in late.out


def _typed(cluster: KruiseCluster, command: str, text: str) -> str:
    """What a command shows on a terminal for what is typed into it: without one, kubectl and the shell do not meet."""
    environment = {**os.environ, "PATH": search_path(), "KUBECONFIG": str(cluster.kubeconfig)}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(shlex.split(command), env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    os.write(ours, f"{text}\n".encode())
    shown = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            shown += os.read(ours, 65536)
    except OSError:
        pass  # the other end is closed: it has ended
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return shown.decode()


def _is_busy(pod: Json) -> bool:
    ended = [one["state"].get("terminated") for one in pod["status"].get("ephemeralContainerStatuses", ())]
    return bool(ephemeral_names(pod)) and not (ended and ended[0])


def _containers(pod: Json) -> list[tuple[str, int]]:
    return [(one["containerID"], one["restartCount"]) for one in pod["status"]["containerStatuses"]]
