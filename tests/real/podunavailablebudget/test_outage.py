"""A real API server whose manager is gone: what is guarded waits, what is not goes on, as docs/podunavailablebudget.md
says. And what is not guarded causes no call while the manager is there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.machinery.client.errors import ApiError, TooManyRequestsError
from tests.scenarios.budgets import BudgetStage
from tests.scenarios.stage import Pace, names
from tests.support.kruisecluster import KruiseCluster
from tests.support.realcluster import ClusterError

PACE = Pace(seconds=3, calm=3.0, within=60.0, every=0.2, slack=10.0)
Story = Callable[[BudgetStage], Awaitable[None]]


@pytest.fixture(scope="module")
def kruise() -> Iterator[KruiseCluster]:
    with KruiseCluster() as cluster:
        yield cluster


def play(kruise: KruiseCluster, namespace: str, story: Story) -> None:
    async def main() -> None:
        async with kruise.world(namespace) as world:
            await story(BudgetStage(world, gates={}, pace=PACE))

    if namespace != "kube-system":
        kruise.plane.create_namespace(namespace)
    asyncio.run(main())


def bare(name: str, app: str) -> dict[str, object]:
    spec = {"containers": [{"name": "main", "image": "nginx"}], "terminationGracePeriodSeconds": 0}
    metadata = {"name": name, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def unanswered(attempt: Awaitable[None], entry: str) -> None:
    with pytest.raises(ApiError) as refused:
        await attempt
    assert f'failed calling webhook "{entry}"' in str(refused.value)


def calls(kruise: KruiseCluster, entry: str) -> int:
    """How often the API server has called an entry, as it counts itself."""
    found = re.findall(
        rf'^apiserver_admission_webhook_request_total{{[^}}]*name="{re.escape(entry)}"[^}}]*}} (\S+)$',
        kruise.plane.kubectl("get", "--raw", "/metrics"),
        re.MULTILINE,
    )
    return sum(int(float(count)) for count in found)


def test_pods_without_a_budget_cause_no_validating_call(kruise: KruiseCluster) -> None:
    async def story(stage: BudgetStage) -> None:
        first, _, _ = await stage.guarded()
        for name in ("one", "two"):
            await stage.world.create(bare(name, "other"))
        before = calls(kruise, "vpod.kb.io")
        await stage.label("one", x="y")
        await stage.set_image("one", "nginx:2")
        await stage.delete_pod("one")
        await stage.delete_pod("two")
        assert calls(kruise, "vpod.kb.io") == before
        await stage.delete_pod(first)
        assert calls(kruise, "vpod.kb.io") > before

    play(kruise, "no-calls", story)


def test_other_kinds_are_counted_by_their_scale(kruise: KruiseCluster) -> None:  # PUB-30, PUB-31
    """A ReplicationController, alone and beside a CloneSet."""
    controller = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "old", "namespace": "scales"},
        "spec": {
            "replicas": 2,
            "selector": {"app": "web"},
            "template": {
                "metadata": {"labels": {"app": "web", "by": "rc"}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    }

    async def story(stage: BudgetStage) -> None:
        path = "/api/v1/namespaces/scales/replicationcontrollers"
        await asyncio.to_thread(lambda: kruise.plane.request("POST", path, controller).ok())
        about = {"apiVersion": "v1", "kind": "ReplicationController", "name": "old"}
        await stage.budget("named", target=about, maxUnavailable=1)
        await stage.shows(1, 2, 1, 2, name="named")
        one, other = names(await stage.world.pods("by=rc"))
        await stage.evict(one)
        with pytest.raises(TooManyRequestsError):
            await stage.evict(other)
        await stage.start("web", replicas=3)
        await stage.budget(labels={"app": "web"}, maxUnavailable=1)
        await stage.shows(1, 5, 4, 5)

    play(kruise, "scales", story)


@pytest.mark.smoke
def test_while_the_manager_is_gone(kruise: KruiseCluster) -> None:
    """PUB section 11, DP-3: guarded pods stay, all evictions fail, other pods may be deleted, and so may the budget."""

    async def story(stage: BudgetStage) -> None:
        first, second, _ = await stage.guarded()
        for name in ("free", "evicted"):
            await stage.world.create(bare(name, "other"))
        node = (await stage.world.get(PODS, "evicted"))["spec"].get("nodeName", "")
        await asyncio.to_thread(kruise.kill_manager)
        try:
            await unanswered(stage.delete_pod(first), "vpod.kb.io")
            await unanswered(stage.evict(first), "vpodeviction.kb.io")
            await unanswered(stage.evict("evicted"), "vpodeviction.kb.io")
            await stage.delete_pod("free")
            if node:
                with pytest.raises(ClusterError, match="failed calling webhook"):
                    await asyncio.to_thread(_drain, kruise, node)
            await stage.world.delete(POD_UNAVAILABLE_BUDGETS, "pub")
        finally:
            await asyncio.to_thread(kruise.start_manager)
        assert {first, second} <= set(names(await stage.pods()))
        await stage.delete_pod(first)  # its budget is gone

    play(kruise, "outage", story)


def _drain(kruise: KruiseCluster, node: str) -> None:
    try:
        kruise.plane.kubectl("drain", node, "--force", "--ignore-daemonsets", "--timeout=10s")
    finally:
        kruise.plane.kubectl("uncordon", node)


def test_the_control_plane_is_never_blocked(kruise: KruiseCluster) -> None:
    """Not even where somebody put a budget there: nobody is asked about kube-system."""

    async def story(stage: BudgetStage) -> None:
        for name in ("dns-a", "dns-b"):
            await stage.world.create(bare(name, "dns"))
        await stage.budget(labels={"app": "dns"}, minAvailable=2)
        await stage.shows(0, 2, 2, 0)
        await asyncio.to_thread(kruise.kill_manager)
        try:
            await stage.delete_pod("dns-a")
            await stage.evict("dns-b")
        finally:
            await asyncio.to_thread(kruise.start_manager)
            await stage.world.delete(POD_UNAVAILABLE_BUDGETS, "pub")

    play(kruise, "kube-system", story)
