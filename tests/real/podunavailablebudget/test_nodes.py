"""Budgets on three real nodes: a drain by real kubectl, held to the budget, and ending as it was planned."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable

import pytest

from kruise.machinery.client.errors import TooManyRequestsError
from tests.scenarios.budgets import BudgetStage
from tests.scenarios.podlog import is_serving
from tests.scenarios.stage import Pace, images_of, names
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.spread]
PACE = Pace(seconds=3, calm=3.0, within=180.0, every=0.3, slack=10.0)
QUICK = {"terminationGracePeriodSeconds": 1}
Story = Callable[[BudgetStage], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture
def play(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str) -> Play:
    def run(story: Story) -> None:
        async def main() -> None:
            async with kruise_on_nodes.world(nodes_namespace) as world:
                await story(BudgetStage(world, gates={}, pace=PACE))

        asyncio.run(main())

    return run


async def _kubectl(cluster: KruiseCluster, *words: str) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        ["kubectl", f"--kubeconfig={cluster.kubeconfig}", *words],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.together("drains")
def test_a_drain_is_held_to_the_budget_and_ends(play: Play, kruise_on_nodes: KruiseCluster) -> None:
    """PUB-91, PUB-104: by labels of its own pods, so that no other test loses any."""

    async def story(stage: BudgetStage) -> None:
        await stage.guarded(6, pod=QUICK, maxUnavailable=1)
        node = (await stage.pods())[0]["spec"]["nodeName"]
        try:
            async with stage.watching() as log:
                await _drain(kruise_on_nodes, stage, node)
            assert log.lowest(is_serving) >= 5
            await stage.shows(1, 6, 5, 6)
            assert all(pod["spec"]["nodeName"] != node for pod in await stage.pods())
        finally:
            await _kubectl(kruise_on_nodes, "uncordon", node)

    play(story)


async def _drain(cluster: KruiseCluster, stage: BudgetStage, node: str) -> None:
    """`kubectl drain` has no namespace: a label that only these pods have stands for it."""
    for pod in await stage.pods():
        await stage.label(pod["metadata"]["name"], drained=stage.namespace)
    await _kubectl(
        cluster,
        "drain",
        node,
        f"--pod-selector=drained={stage.namespace}",
        "--ignore-daemonsets",
        "--timeout=150s",
    )


@pytest.mark.smoke
def test_an_eviction_takes_from_the_budget_until_the_successor_is_ready(play: Play) -> None:
    """PUB-40, PUB-62, PUB-91: with a real kubelet."""

    async def story(stage: BudgetStage) -> None:
        first, second, _ = await stage.guarded(pod=QUICK, maxUnavailable=1)
        await stage.evict(first)
        with pytest.raises(TooManyRequestsError):
            await stage.evict(second)
        await stage.shows(1, 3, 2, 3)
        found = await stage.pods()
        assert first not in names(found)
        assert len({images_of(pod)["main"] for pod in found}) == 1

    play(story)
