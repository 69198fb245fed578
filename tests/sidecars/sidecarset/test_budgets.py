"""SidecarSets under PodUnavailableBudgets: asked first, so that nothing is tried which admission would refuse."""

from __future__ import annotations

from typing import Any

from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.machinery.codec import evolve
from kruise.machinery.offline import ReadStores
from kruise.machinery.plan import Plan
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.permits import BUDGET_PHASE
from kruise.sidecars.sidecarset.controller import FEATURE
from kruise.sidecars.sidecarset.decide import UPDATE, decide
from kruise.sidecars.sidecarset.situation import Snapshot
from tests.protection.podunavailablebudget.objects import GATES, budget
from tests.support.sidecarsets import NOW, SIDE, made, read, set_image, sidecar_set, stored, until_counts
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
OLD = sidecar_set()
NEW = stored(
    sidecar_set(
        containers=[{**SIDE, "image": "nginx:1.26"}], updateStrategy={"type": "RollingUpdate", "maxUnavailable": 9}
    )
)


def guarded(name: str, namespace: str = "demo") -> Any:
    whole = made(OLD, name)
    metadata = whole["metadata"]
    annotations = {**metadata["annotations"], keys.RELATED: "pub"}
    return read({**whole, "metadata": {**metadata, "namespace": namespace, "annotations": annotations}})


def decided(*budgets: PodUnavailableBudget, pods: tuple[Any, ...]) -> Plan:
    snapshot = Snapshot(
        sidecar_set=NEW, pods=pods, budgets=budgets, own_namespace="kruise-system", gates=dict(GATES), now=NOW
    )
    return decide(snapshot)


def names(plan: Plan, phase: str) -> list[str]:
    return [f"{one.target.namespace}/{one.target.name}" for one in plan.actions() if _is_in(plan, one, phase)]


def _is_in(plan: Plan, action: Any, phase: str) -> bool:
    return any(action in chain for one in plan.phases if one.name == phase for chain in one.chains)


def codes(plan: Plan) -> dict[str, str]:
    return {f"{held.target.namespace}/{held.target.name}": held.causes[0].code for held in plan.held}


def test_what_is_left_of_a_budget_is_taken_before_pods_are_touched() -> None:  # PUB-101
    plan = decided(budget(allowed=1), pods=(guarded("web-1"), guarded("web-2")))
    phases = [phase.name for phase in plan.phases]
    assert phases.index(BUDGET_PHASE) < phases.index(UPDATE)
    assert names(plan, BUDGET_PHASE) == ["demo/pub"]
    assert len(names(plan, UPDATE)) == 1
    (waiting,) = {"demo/web-1", "demo/web-2"} - set(names(plan, UPDATE))
    assert codes(plan)[waiting] == "unavailable-budget"


def test_nothing_is_tried_where_nothing_is_left() -> None:  # PUB-101
    plan = decided(budget(allowed=0, current=3, desired=3), pods=(guarded("web-1"), guarded("web-2")))
    assert names(plan, UPDATE) == []
    assert names(plan, BUDGET_PHASE) == []
    assert set(codes(plan).values()) == {"closed-budget"}


def test_budgets_of_one_name_in_two_namespaces_are_two() -> None:
    here = budget(allowed=1)
    there = evolve(here, metadata=evolve(here.metadata, namespace="other", uid="other"))
    pods = (guarded("web-1"), guarded("web-1", "other"))
    plan = decided(here, there, pods=pods)
    assert sorted(names(plan, UPDATE)) == ["demo/web-1", "other/web-1"]
    assert names(plan, BUDGET_PHASE) == ["demo/pub", "other/pub"]


def test_pods_that_do_not_serve_take_nothing() -> None:
    broken = made(OLD, "web-1", ready=False)
    metadata = broken["metadata"]
    annotations = {**metadata["annotations"], keys.RELATED: "pub"}
    unready = read({**broken, "metadata": {**metadata, "namespace": "demo", "annotations": annotations}})
    plan = decided(budget(allowed=0, current=2, desired=2), pods=(unready,))
    assert names(plan, UPDATE) == ["demo/web-1"]
    assert names(plan, BUDGET_PHASE) == []


BROKEN = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 5,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.24"}]},
        },
    },
}
BUDGET = {
    "apiVersion": "policy.kruise.io/v1beta1",
    "kind": "PodUnavailableBudget",
    "metadata": {"name": "pub"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
}


def test_a_sidecar_that_does_not_start_reaches_one_pod() -> None:  # PUB-101, SCS-130
    async def story(world: LocalWorld) -> None:
        await world.create(sidecar_set(updateStrategy={"type": "RollingUpdate", "maxUnavailable": 5}))
        await world.create(BUDGET)
        await world.create(BROKEN)
        await until_counts(world, 5, 5, 5, 5)
        await set_image(world, "nginx:missing")
        await until_counts(world, 5, 1, 4, 0)
        await world.sleep(60)
        await until_counts(world, 5, 1, 4, 0)
        status = (await world.get(POD_UNAVAILABLE_BUDGETS, "pub"))["status"]
        numbers = ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas")
        assert [status.get(key, 0) for key in numbers] == [0, 4, 4, 5]
        assert await world.events(reason="PubPreventPodDeletion") == []  # nothing was tried that is refused
        await set_image(world, "nginx:1.27")
        await until_counts(world, 5, 5, 5, 5)

    run_local(story, feature_gates=f"{keys.UPDATE_GATE}=true")


def test_a_budget_that_has_more_to_give_wakes_the_sets_of_its_pods() -> None:
    spec = FEATURE.controllers(Options(gates=gates.resolve({keys.UPDATE_GATE: True})))[0]
    source = next(one for one in spec.all_sources if one.resource == POD_UNAVAILABLE_BUDGETS)
    stores = ReadStores(spec, {PODS: (guarded("web-1"),)})
    less, more = budget(allowed=0), budget(allowed=1)
    assert [key.name for key in source.keys(less, more, stores)] == ["logs"]
    assert list(source.keys(more, less, stores)) == []
