"""PodDisruptionBudgets on the local cluster: what they allow, and evictions under them."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.apps import DAEMON_SETS, DEPLOYMENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.machinery.client.errors import TooManyRequestsError
from tests.support.world import Json, LocalWorld, run_local

LABELS = {"app": "web"}


async def deploy(world: LocalWorld, replicas: int, **template: Any) -> None:
    body: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], **template},
            },
        },
    }
    await world.client.create(DEPLOYMENTS, body, world.namespace)


async def budget(world: LocalWorld, **spec: Any) -> None:
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }
    await world.client.create(POD_DISRUPTION_BUDGETS, body, world.namespace)


async def shows(world: LocalWorld, allowed: int, healthy: int, desired: int, expected: int) -> Json:
    async def there() -> Json:
        status = (await world.get(POD_DISRUPTION_BUDGETS, "web")).get("status", {})
        names = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
        assert tuple(status.get(name) for name in names) == (allowed, healthy, desired, expected), status
        return status

    return await world.until(there)


@pytest.mark.parametrize(
    ("spec", "numbers"),
    [
        ({"maxUnavailable": 1}, (1, 3, 2, 3)),
        ({"maxUnavailable": "50%"}, (2, 3, 1, 3)),
        ({"minAvailable": 2}, (1, 3, 2, 3)),
        ({"minAvailable": "100%"}, (0, 3, 3, 3)),
    ],
)
def test_what_a_budget_allows(spec: Json, numbers: tuple[int, int, int, int]) -> None:
    async def scenario(world: LocalWorld) -> None:
        await deploy(world, 3)
        await budget(world, **spec)
        status = await shows(world, *numbers)
        [condition] = status["conditions"]
        assert condition["reason"] == ("SufficientPods" if numbers[0] else "InsufficientPods")
        assert status["observedGeneration"] == 1

    run_local(scenario, features=(), start=False)


def test_evictions_are_granted_as_far_as_the_budget_goes() -> None:
    async def scenario(world: LocalWorld) -> None:
        await deploy(world, 3)
        await budget(world, maxUnavailable=1)
        await shows(world, 1, 3, 2, 3)
        first, second, _ = [pod["metadata"]["name"] for pod in await world.pods("app=web")]
        await world.client.evict(PODS, first, world.namespace)
        with pytest.raises(TooManyRequestsError, match="disruption budget"):
            await world.client.evict(PODS, second, world.namespace)
        await shows(world, 1, 3, 2, 3)
        await world.client.evict(PODS, second, world.namespace)

    run_local(scenario, features=(), start=False)


@pytest.mark.parametrize(("policy", "is_free"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
def test_pods_that_are_down(policy: str, is_free: bool) -> None:
    """AlwaysAllow lets them go whatever else is down; IfHealthyBudget only while enough others are healthy."""

    async def scenario(world: LocalWorld) -> None:
        await deploy(world, 2, readinessGates=[{"conditionType": "example.com/ok"}])
        await budget(world, minAvailable=1, unhealthyPodEvictionPolicy=policy)
        await shows(world, 0, 0, 1, 2)

        async def running() -> list[Json]:
            found = await world.pods("app=web")
            assert [pod["status"].get("phase") for pod in found] == ["Running", "Running"]
            return found

        first = (await world.until(running))[0]["metadata"]["name"]
        if is_free:
            await world.client.evict(PODS, first, world.namespace)
        else:
            with pytest.raises(TooManyRequestsError):
                await world.client.evict(PODS, first, world.namespace)

    run_local(scenario, features=(), start=False)


def test_a_drain_ends() -> None:
    """Cordon, then evict what is there until nothing is left: as `kubectl drain` does it."""

    async def scenario(world: LocalWorld) -> None:
        await deploy(world, 4)
        await budget(world, maxUnavailable=1)
        await shows(world, 1, 4, 3, 4)
        node = (await world.pods("app=web"))[0]["spec"]["nodeName"]
        await world.client.patch(NODES, node, {"spec": {"unschedulable": True}})

        async def empty() -> None:
            left = [pod for pod in await world.pods("app=web") if pod["spec"].get("nodeName") == node]
            for pod in left:
                try:
                    await world.client.evict(PODS, pod["metadata"]["name"], world.namespace)
                except TooManyRequestsError:
                    continue
            assert left == []

        await world.until(empty, within=120, every=5)
        await shows(world, 1, 4, 3, 4)

    run_local(scenario, features=(), start=False, nodes=2)


def test_nobody_knows_how_many_there_should_be() -> None:
    """Then nothing is allowed, and the condition says why."""

    async def scenario(world: LocalWorld) -> None:
        body = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "agent"},
            "spec": {
                "selector": {"matchLabels": LABELS},
                "template": {
                    "metadata": {"labels": LABELS},
                    "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
                },
            },
        }
        await world.client.create(DAEMON_SETS, body, world.namespace)
        await budget(world, maxUnavailable=1)

        async def told() -> None:
            status = (await world.get(POD_DISRUPTION_BUDGETS, "web")).get("status", {})
            assert [one["reason"] for one in status.get("conditions", ())] == ["SyncFailed"]
            assert status["disruptionsAllowed"] == 0

        await world.until(told, within=5)

    run_local(scenario, features=(), start=False)
