"""PodUnavailableBudgets: what may be taken away, what is refused, and what the status tells."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.pod import PODS
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.machinery.client.errors import ApiError, ForbiddenError, TooManyRequestsError
from kruise.machinery.client.requests import PatchType
from kruise.protection.podunavailablebudget import keys
from tests.scenarios.failure_budget import BAD, PULLS
from tests.scenarios.podlog import is_serving
from tests.scenarios.stage import ALPHA, BETA, Scenario, Stage, images_of, names, restarts_of, scenario
from tests.support.world import Json

OLD, NEW = "nginx:1.25", "nginx:1.26"
NEGATIVE = 'podunavailablebudget.policy.kruise.io "pub" is forbidden: pub unavailable allowed is negative'
UPDATES = {keys.UPDATE_GATE: True}
SCENARIOS: dict[str, Scenario] = {}
NUMBERS = ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas")


class BudgetStage(Stage):
    """A CloneSet `web`, and a budget `pub` over its pods."""

    async def budget(
        self,
        name: str = "pub",
        *,
        version: str = BETA,
        annotations: Mapping[str, str] | None = None,
        target: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Over the pods with `labels`, or of `target`; those of `web` where neither is given."""
        spec |= {"targetRef": dict(target)} if target else {"selector": {"matchLabels": dict(labels or {"app": "web"})}}
        manifest: Json = {
            "apiVersion": f"{POD_UNAVAILABLE_BUDGETS.group}/{version}",
            "kind": POD_UNAVAILABLE_BUDGETS.kind,
            "metadata": {"name": name, "annotations": dict(annotations or {})},
            "spec": spec,
        }
        await self.world.create(manifest)

    async def numbers(self, name: str = "pub") -> Json:
        found: Json = (await self.world.get(POD_UNAVAILABLE_BUDGETS, name)).get("status", {})
        return found

    async def shows(self, allowed: int, current: int, desired: int, total: int, name: str = "pub") -> Json:
        """Wait until the status has these four numbers."""

        async def there() -> Json:
            status = await self.numbers(name)
            assert tuple(status.get(number) for number in NUMBERS) == (allowed, current, desired, total), status
            return status

        found: Json = await self.until(there)
        return found

    async def guarded(self, replicas: int = 3, *, pod: Mapping[str, Any] | None = None, **spec: Any) -> list[str]:
        """All is well: the pods are there, and the budget knows them; gives their names."""
        await self.start(replicas=replicas, rolling={"maxUnavailable": replicas}, pod=pod)
        await self.budget(**(spec or {"maxUnavailable": 1}))

        async def marked() -> list[str]:
            found = await self.pods()
            assert all(one["metadata"].get("annotations", {}).get(keys.RELATED) == "pub" for one in found)
            status = await self.numbers()
            assert status.get("currentAvailable") == replicas, status
            return names(found)

        found: list[str] = await self.until(marked)
        return found

    async def evict(self, pod: str, *, dry_run: bool = False) -> None:
        await self.client.evict(PODS, pod, self.namespace, dry_run=dry_run)

    async def delete_pod(self, pod: str, **options: Any) -> None:
        await self.client.delete(PODS, pod, self.namespace, **options)

    async def set_image(self, pod: str, image: str) -> None:
        change = [{"op": "replace", "path": "/spec/containers/0/image", "value": image}]
        await self.world.patch(PODS, pod, change, patch_type=PatchType.JSON)

    async def label(self, pod: str, **labels: str | None) -> None:
        marks = {key.replace("__", "/").replace("_", "-"): value for key, value in labels.items()}
        await self.world.patch(PODS, pod, {"metadata": {"labels": marks}})

    async def annotate(self, pod: str, key: str, value: str | None) -> None:
        await self.world.patch(PODS, pod, {"metadata": {"annotations": {key: value}}})


Play = Callable[[Any], Awaitable[None]]


def budget_scenario(
    *rules: str, gates: Mapping[str, bool] | None = None, smoke: bool = False
) -> Callable[[Play], Play]:
    return scenario(*rules, gates=gates or {}, smoke=smoke, into=SCENARIOS, stage=BudgetStage)


@budget_scenario("PUB-40", "PUB-51", "PUB-61", "PUB-62", "PUB-90", "PUB-91", smoke=True)
async def one_goes_and_the_next_is_refused(stage: BudgetStage) -> None:
    """Evicted once; then both an eviction (429) and a delete (403) are refused until the replacement is ready."""
    first, second, _ = await stage.guarded()
    await stage.shows(1, 3, 2, 3)
    await stage.evict(first)
    with pytest.raises(TooManyRequestsError) as evicted:
        await stage.evict(second)
    assert NEGATIVE in str(evicted.value)
    with pytest.raises(ForbiddenError) as deleted:
        await stage.delete_pod(second)
    assert NEGATIVE in str(deleted.value)
    told = await stage.has_event("PubPreventPodDeletion", "openkruise pub prevents", name=second, type="Warning")
    assert "pub" in told["message"]
    assert told["source"]["component"] == "pub-controller"
    await stage.shows(1, 3, 2, 3)
    await stage.delete_pod(second)
    await stage.shows(1, 3, 2, 3)
    assert "disruptedPods" not in await stage.numbers()


@budget_scenario("PUB-57", "PUB-55", "PW-21", "PW-22")
async def new_pods_know_their_budget_from_the_start(stage: BudgetStage) -> None:
    """By selector and by targetRef, without a later write."""
    await stage.budget(
        target={"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": "web"}, maxUnavailable=1
    )
    await stage.shows(0, 0, 0, 0)
    created = await stage.start(replicas=2)
    assert all(pod["metadata"]["annotations"][keys.RELATED] == "pub" for pod in created)
    await stage.shows(1, 2, 1, 2)
    await stage.scale(4)
    await stage.shows(1, 4, 3, 4)


@budget_scenario("PUB-61", "PUB-122", "PW-45")
async def a_pod_that_is_down_may_always_go(stage: BudgetStage) -> None:
    """It serves nobody, and its deletion costs nothing."""
    first, second, third = await stage.guarded()
    await stage.label(first, **{"unavailable-pod.kruise.io__repair": "1"})
    await stage.shows(0, 2, 2, 3)
    with pytest.raises(ForbiddenError):
        await stage.delete_pod(second)
    await stage.delete_pod(first)
    await stage.shows(1, 3, 2, 3)
    assert third in names(await stage.pods())


@budget_scenario("PUB-62", "PUB-72")
async def a_dry_run_takes_nothing(stage: BudgetStage) -> None:
    """Neither of a delete nor of an eviction, in either of its spellings; a refusal is one all the same."""
    first, second, _ = await stage.guarded()
    await stage.evict(first, dry_run=True)
    await stage.delete_pod(first, dry_run=True)
    assert "disruptedPods" not in await stage.numbers()
    await stage.shows(1, 3, 2, 3)
    await stage.label(first, **{"unavailable-pod.kruise.io__repair": "1"})
    await stage.shows(0, 2, 2, 3)
    with pytest.raises(TooManyRequestsError):
        await stage.evict(second, dry_run=True)


@budget_scenario("PUB-61", "PUB-127")
async def an_exempt_pod_may_go(stage: BudgetStage) -> None:
    """By annotation with the text `true`, and by ignoredPodSelector."""
    first, second, third = await stage.guarded(maxUnavailable=0, ignoredPodSelector={"matchLabels": {"tier": "batch"}})
    await stage.shows(0, 3, 3, 3)
    await stage.annotate(first, keys.NO_PROTECT, "1")
    with pytest.raises(ForbiddenError):
        await stage.delete_pod(first)
    await stage.annotate(first, keys.NO_PROTECT, "true")
    await stage.evict(first)
    await stage.label(second, tier="batch")
    await stage.evict(second)
    with pytest.raises(TooManyRequestsError):
        await stage.evict(third)


@budget_scenario("PUB-56", "PUB-104", "PUB-125")
async def scaling_down_and_deleting_the_workload_are_let_through(stage: BudgetStage) -> None:
    """The floor drops with the replicas, and with the workload."""
    await stage.guarded(4, maxUnavailable=1)
    await stage.shows(1, 4, 3, 4)
    await stage.scale(2)
    await stage.shows(1, 2, 1, 2)
    await stage.world.delete(CLONE_SETS, "web")
    await stage.shows(0, 0, 0, 0)


@budget_scenario("PUB-111", "PUB-35", "PUB-126")
async def numbers_follow_the_spec(stage: BudgetStage) -> None:
    """Percentages are rounded up, minAvailable may ask for more than there is, and nothing matches nothing."""
    await stage.guarded(5, maxUnavailable="25%")
    await stage.shows(2, 5, 3, 5)
    await stage.world.patch(POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"maxUnavailable": None, "minAvailable": 100}})
    await stage.shows(0, 5, 100, 5)
    await stage.world.patch(POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"minAvailable": "50%"}})
    await stage.shows(2, 5, 3, 5)
    await stage.budget("other", labels={"app": "nothing"}, maxUnavailable=1)
    await stage.shows(0, 0, 0, 0, name="other")
    await stage.has_event("NoPods", name="other")


@budget_scenario("PUB-33", "PUB-123", "PW-42")
async def pods_of_nobody_are_guarded_where_the_budget_tells_their_number(stage: BudgetStage) -> None:
    """Without a workload nobody tells how many there should be, and nothing is refused."""
    for name in ("one", "two"):
        pod = {"containers": [{"name": "main", "image": OLD}]}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "bare"}},
            "spec": pod,
        }
        await stage.world.create(manifest)
    await stage.budget(labels={"app": "bare"}, maxUnavailable=1)
    await stage.shows(2, 2, 0, 0)
    await stage.world.patch(POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"protectTotalReplicas": 2}})
    await stage.shows(1, 2, 1, 2)
    await stage.evict("one")
    with pytest.raises(TooManyRequestsError):
        await stage.evict("two")


@budget_scenario("PUB-70", "PUB-60", "PUB-110", gates=UPDATES, smoke=True)
async def images_and_marks_are_guarded(stage: BudgetStage) -> None:
    """With the gate: an image change and a first `unavailable` label take a unit; what else is changed is free."""
    first, second, _ = await stage.guarded()
    await stage.set_image(first, "nginx:u1")
    status = await stage.numbers()
    assert set(status["unavailablePods"]) == {first}
    assert status["unavailableAllowed"] == 0
    with pytest.raises(ForbiddenError) as refused:
        await stage.set_image(second, "nginx:u1")
    assert NEGATIVE in str(refused.value)
    await stage.set_image(first, "nginx:u2")  # PUB-61.7
    await stage.label(second, x="y")
    await stage.annotate(second, "x", "y")
    with pytest.raises(ForbiddenError):
        await stage.label(second, **{"unavailable-pod.kruise.io__repair": "1"})
    await stage.shows(1, 3, 2, 3)
    assert "unavailablePods" not in await stage.numbers()
    await stage.label(second, **{"unavailable-pod.kruise.io__repair": "1"})
    with pytest.raises(ForbiddenError):
        await stage.set_image(first, "nginx:u3")
    await stage.world.patch(POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"protectOperations": ["DELETE"]}})

    async def is_free() -> None:
        try:
            await stage.set_image(first, "nginx:u3")
        except ForbiddenError as error:
            raise AssertionError(str(error)) from None

    await stage.until(is_free)


@budget_scenario("PUB-5", "PUB-60", "PUB-3")
async def annotations_of_the_older_version_count(stage: BudgetStage) -> None:
    """A manifest of v1alpha1 says by annotation what is guarded, and how many pods there are."""
    first, second, _ = await stage.guarded(
        version=ALPHA,
        annotations={"kruise.io/pub-protect-operations": "DELETE", "pub.kruise.io/protect-total-replicas": "3"},
        maxUnavailable=0,
    )
    shown = await stage.world.get(POD_UNAVAILABLE_BUDGETS, "pub")
    assert shown["spec"]["protectOperations"] == ["DELETE"]
    assert shown["spec"]["protectTotalReplicas"] == 3
    with pytest.raises(ForbiddenError):
        await stage.delete_pod(first)
    await stage.evict(second)


@budget_scenario("PUB-62", "PUB-63", "PUB-120")
async def of_many_at_once_as_many_pass_as_may(stage: BudgetStage) -> None:
    """Thirty clients delete and evict thirty pods at the same moment."""
    pods = await stage.guarded(30, maxUnavailable=7)
    async with stage.watching() as log:
        answers = await asyncio.gather(
            *(stage.evict(pod) if place % 2 else stage.delete_pod(pod) for place, pod in enumerate(pods)),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, ApiError)]
        # On a slow machine the first ones are replaced before the last ones ask.
        codes = Counter(error.code for error in refused)
        assert len(answers) - len(refused) >= 7, codes
        assert set(codes) <= {403, 429}, codes
        await stage.shows(7, 30, 23, 30)
    assert log.lowest(is_serving) >= 23


@budget_scenario("PUB-100", "IPU-160", gates=UPDATES, smoke=True)
async def a_rollout_in_place_is_as_fast_as_the_budget(stage: BudgetStage) -> None:
    """maxUnavailable 6 of the workload, 2 of the budget: never more than two pods are down, and all arrive."""
    await stage.guarded(6, maxUnavailable=2)
    async with stage.watching() as log:
        await stage.edit_template({"spec": {"containers": [{"name": "main", "image": NEW}]}})
        updated = await stage.complete()
    assert log.lowest(is_serving) >= 4
    assert {image for pod in updated for image in images_of(pod).values()} == {NEW}
    assert all(count == 1 for pod in updated for count in restarts_of(pod).values())
    await stage.shows(2, 6, 4, 6)


@budget_scenario("PUB-100", "PUB-104")
async def a_rollout_by_recreation_is_held_to_the_budget(stage: BudgetStage) -> None:
    """Pods are deleted one at a time, though the workload would take all three; no failure is shown."""
    await stage.start(replicas=3, policy="ReCreate", rolling={"maxUnavailable": 3})
    await stage.budget(maxUnavailable=1)
    await stage.shows(1, 3, 2, 3)
    async with stage.watching() as log:
        await stage.edit_template({"spec": {"containers": [{"name": "main", "image": NEW}]}})
        await stage.complete()
    assert log.lowest(is_serving) >= 2
    conditions = (await stage.subject()).get("status", {}).get("conditions", [])
    assert [one for one in conditions if one["type"].startswith("Failed") and one["status"] == "True"] == []


@budget_scenario("PUB-102", "PUB-31", gates=UPDATES)
async def two_workloads_share_a_budget(stage: BudgetStage) -> None:
    """A bad image reaches two of ten pods in all; a good one reaches all."""
    for name in ("web", "api"):
        await stage.start(name, replicas=5, rolling={"maxUnavailable": 5}, labels={"part": "of-one"}, annotations=PULLS)
    await stage.budget(labels={"part": "of-one"}, maxUnavailable="20%")
    await stage.shows(2, 10, 8, 10)
    bad = {"spec": {"containers": [{"name": "main", "image": BAD}]}}
    for name in ("web", "api"):
        await stage.edit_template(bad, name)
    await stage.shows(0, 8, 8, 10)

    async def two_are_down() -> None:
        pods = await stage.world.pods("part=of-one")
        assert sum(BAD in images_of(pod).values() for pod in pods) == 2

    await stage.until(two_are_down)
    await stage.stays(two_are_down)
    for name in ("web", "api"):
        await stage.edit_template({"spec": {"containers": [{"name": "main", "image": NEW}]}}, name)
    for name in ("web", "api"):
        await stage.complete(name)
    await stage.shows(2, 10, 8, 10)


@budget_scenario("PUB-30", "PUB-32", "PUB-110", "PUB-104")
async def a_deployment_is_guarded_through_its_replica_sets(stage: BudgetStage) -> None:
    """From creation over a broken rollout to its deletion."""
    deployment: Json = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": dict(PULLS)},
                "spec": {"containers": [{"name": "main", "image": OLD}]},
            },
        },
    }
    await stage.budget(target={"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, maxUnavailable=1)
    await stage.shows(0, 0, 0, 0)
    await stage.client.create(DEPLOYMENTS, deployment, stage.namespace)
    await stage.shows(1, 2, 1, 2)

    async def roll(image: str) -> None:
        change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
        await stage.client.patch(DEPLOYMENTS, "web", change, stage.namespace, patch_type=PatchType.STRATEGIC)

    await roll(BAD)
    await stage.shows(0, 1, 1, 2)
    serving = [pod for pod in await stage.world.pods("app=web") if images_of(pod)["main"] == OLD]
    with pytest.raises(TooManyRequestsError):
        await stage.evict(names(serving)[0])
    await roll(NEW)
    await stage.shows(1, 2, 1, 2)
    await stage.client.delete(DEPLOYMENTS, "web", stage.namespace)
    await stage.shows(0, 0, 0, 0)


@budget_scenario("PUB-103")
async def a_native_budget_must_agree_too(stage: BudgetStage) -> None:
    """An eviction that ours would let through is refused by Kubernetes' own, and the other way round."""
    first, second, _ = await stage.guarded(maxUnavailable=2)
    body = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "native"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
    }
    await stage.client.create(POD_DISRUPTION_BUDGETS, body, stage.namespace)

    async def is_open() -> None:
        found = await stage.client.get(POD_DISRUPTION_BUDGETS, "native", stage.namespace)
        assert found.status.disruptions_allowed == 1

    tries = itertools.count()

    async def is_open_when_looked_at() -> None:
        touched = {"metadata": {"annotations": {"try": str(next(tries))}}}
        await stage.world.patch(POD_DISRUPTION_BUDGETS, "native", touched)
        await is_open()

    # Kubernetes' controller asks for kinds every 30 s. Each look at a pod whose kind it does not know yet doubles the
    # time to its next try, up to a quarter of an hour; a change makes it look at once.
    await stage.until(is_open_when_looked_at, within=60)
    await stage.evict(first)
    with pytest.raises(TooManyRequestsError, match="violate the pod's disruption budget"):
        await stage.evict(second)
    await stage.until(is_open)
    await stage.world.patch(POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"maxUnavailable": 0}})
    await stage.shows(0, 3, 3, 3)
    with pytest.raises(TooManyRequestsError, match="podunavailablebudget"):
        await stage.evict(second)


@budget_scenario("PUB-30", "PUB-57")
async def a_united_deployment_is_guarded_by_its_scale(stage: BudgetStage) -> None:
    """Nobody watches its kind for budgets: it is asked. Its pods know the budget from the start."""
    inner: Json = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": OLD}]},
        },
    }
    manifest: Json = {
        "apiVersion": UNITED_DEPLOYMENTS.api_version,
        "kind": UNITED_DEPLOYMENTS.kind,
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"cloneSetTemplate": {"metadata": {"labels": {"app": "web"}}, "spec": inner}},
            "topology": {"subsets": [{"name": "one"}, {"name": "two"}]},
        },
    }
    about = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "UnitedDeployment", "name": "web"}
    await stage.budget(target=about, maxUnavailable=1)
    await stage.shows(0, 0, 0, 0)
    await stage.client.create(UNITED_DEPLOYMENTS, manifest, stage.namespace)
    await stage.shows(1, 4, 3, 4)
    pods = await stage.world.pods("app=web")
    assert {pod["metadata"]["annotations"][keys.RELATED] for pod in pods} == {"pub"}
    await stage.evict(names(pods)[0])
    with pytest.raises(TooManyRequestsError):
        await stage.evict(names(pods)[1])
    await stage.shows(1, 4, 3, 4)
    await stage.client.patch(UNITED_DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, stage.namespace)
    await stage.shows(1, 2, 1, 2)
    await stage.client.delete(UNITED_DEPLOYMENTS, "web", stage.namespace)
    await stage.shows(0, 0, 0, 0)


@budget_scenario("PUB-101", gates=UPDATES)
async def sidecars_are_upgraded_as_the_budget_lets_them(stage: BudgetStage) -> None:
    """A bad image reaches one pod of five, though the SidecarSet would take all; a good one reaches every pod."""
    sidecars: Json = {
        "apiVersion": SIDECAR_SETS.api_version,
        "kind": SIDECAR_SETS.kind,
        "metadata": {"name": stage.namespace},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": stage.namespace}},
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [{"name": "log", "image": OLD}],
            "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": 5},
        },
    }
    await stage.client.create(SIDECAR_SETS, sidecars)
    await stage.start("web", replicas=5, annotations=PULLS)
    await stage.budget(maxUnavailable=1)
    await stage.shows(1, 5, 4, 5)

    async def reached(image: str, count: int) -> None:
        pods = await stage.pods()
        assert sum(images_of(pod)["log"] == image for pod in pods) == count

    async def upgrade(image: str) -> None:
        change = {"spec": {"containers": [{"name": "log", "image": image}]}}
        await stage.client.patch(SIDECAR_SETS, stage.namespace, change)

    await upgrade(BAD)
    await stage.shows(0, 4, 4, 5)
    await stage.until(lambda: reached(BAD, 1))
    await stage.stays(lambda: reached(BAD, 1))
    await upgrade(NEW)
    await stage.until(lambda: reached(NEW, 5))
    await stage.shows(1, 5, 4, 5)
    await stage.client.delete(SIDECAR_SETS, stage.namespace)
