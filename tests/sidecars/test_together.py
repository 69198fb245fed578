"""Sidecars beside what else is done to pods: the order of start, spread, budgets."""

from __future__ import annotations

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.protection.podunavailablebudget import keys as budget_keys
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from tests.support.sidecarsets import SIDE, pod, sidecar_set, until_counts
from tests.support.world import LocalWorld, run_local


def test_a_sidecar_set_may_order_the_containers() -> None:
    """CLP-9, SCS-46, SCS-131: the annotation that it patches takes effect at once, and places decide the order."""

    async def scenario(world: LocalWorld) -> None:
        ordered = {"apps.kruise.io/container-launch-priority": "Ordered"}
        late = {"name": "late", "image": "nginx:1.25", "podInjectPolicy": "AfterAppContainer"}
        await world.create(
            sidecar_set(
                containers=[SIDE, late],
                patchPodMetadata=[{"annotations": ordered, "patchPolicy": "Overwrite"}],
            )
        )
        await world.create(pod())
        await until_counts(world, 1, 1, 1, 1)
        made = await world.get(PODS, "web-1")
        keys = {
            one["name"]: one["env"][-1]["valueFrom"]["configMapKeyRef"]["key"] for one in made["spec"]["containers"]
        }
        assert keys == {"side": "p_0", "main": "p_-1", "late": "p_-2"}
        began = {one["name"]: one["state"]["running"]["startedAt"] for one in made["status"]["containerStatuses"]}
        assert began["side"] <= began["main"] <= began["late"]

    run_local(scenario, feature_gates="SidecarSetPatchPodMetadataDefaultsAllowed=true")


def test_pods_that_start_in_order_use_up_no_failure_budget() -> None:
    """CLP-8: until it is their turn, kubelets call that an error. Neither the workload's rollout nor that of the
    sidecars stops for it."""

    async def scenario(world: LocalWorld) -> None:
        budget = {"apps.kruise.io/failure-budget": "0"}
        await world.create(sidecar_set(metadata={"annotations": budget}))
        first = {"name": "main", "image": "nginx:1.24", "env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "5"}]}
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [first, {"name": "last", "image": "nginx:1.24"}]},
        }
        whole = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet"}
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        await world.sleep(2)
        await world.create({**whole, "metadata": {"name": "web", "annotations": budget}, "spec": spec})
        await until_counts(world, 2, 2, 2, 2)
        changed = {**template["spec"], "containers": [first, {"name": "last", "image": "nginx:1.25"}]}  # type: ignore[dict-item]
        await world.patch(CLONE_SETS, "web", {"spec": {"template": {**template, "spec": changed}}})

        async def rolled_out() -> None:
            status = (await world.get(CLONE_SETS, "web"))["status"]
            told = {one["type"]: one for one in status.get("conditions", [])}
            assert FAILURE_BUDGET not in told, told[FAILURE_BUDGET]["message"]
            assert (status["observedGeneration"], status["updatedAvailableReplicas"]) == (2, 2)

        await world.until(rolled_out)
        assert await world.events("web", FAILURE_BUDGET) == []
        await until_counts(world, 2, 2, 2, 2)
        assert not (await world.get(SIDECAR_SETS, "logs"))["status"].get("failureBudget")

    run_local(scenario)


def test_labels_of_a_workload_spread_count() -> None:
    """SCS-135: the pod has them before it is asked whose sidecars it gets."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(selector={"matchLabels": {"zone": "far"}}))
        spread = {
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"},
            "subsets": [
                {"name": "near", "maxReplicas": 1},
                {"name": "far", "patch": {"metadata": {"labels": {"zone": "far"}}}},
            ],
        }
        kind = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "WorkloadSpread", "metadata": {"name": "web"}}
        await world.create({**kind, "spec": spread})
        template = {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.24"}]},
        }
        clones = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
        await world.sleep(2)
        whole = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": "web"}}
        await world.create({**whole, "spec": clones})
        await until_counts(world, 2, 2, 2, 2)
        shown = sorted([one["name"] for one in made["spec"]["containers"]] for made in await world.pods("app=web"))
        assert shown == [["main"], ["side", "main"], ["side", "main"]]

    run_local(scenario)


def test_a_budget_holds_the_terminator_up() -> None:
    """JST-20: replacing an image is an update like any other. A pod whose main containers are done serves nobody, so a
    budget asks nothing of it; one of sidecars alone is due while it serves (JST-7)."""

    async def scenario(world: LocalWorld) -> None:
        kind = {"apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget", "metadata": {"name": "pub"}}
        selector = {"matchLabels": {"app": "work"}}
        await world.create({**kind, "spec": {"selector": selector, "minAvailable": 1}})
        ends = {"name": "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE", "value": "nginx:1.26"}
        side = {"name": "side", "image": "nginx:1.25", "env": [ends]}
        spec = {"restartPolicy": "Never", "containers": [side, {**side, "name": "more"}]}
        metadata = {"name": "work", "labels": {"app": "work"}}
        await world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

        async def counted() -> None:
            status = (await world.get(POD_UNAVAILABLE_BUDGETS, "pub")).get("status", {})
            assert (status.get("desiredAvailable"), status.get("currentAvailable")) == (1, 1)

        await world.until(counted)
        for node in await world.list(NODES):  # only there images are replaced (JST-10)
            body = {"metadata": {"labels": {"type": "virtual-kubelet"}}}
            await world.patch(NODES, node["metadata"]["name"], body)
        await world.patch(PODS, "work", {"metadata": {"labels": {"looked": "at"}}})

        async def refused() -> None:
            assert await world.events("work", "PubPreventPodDeletion")

        await world.until(refused)
        await world.sleep(30)
        assert await images(world) == ["nginx:1.25"] * 2
        await world.patch(POD_UNAVAILABLE_BUDGETS, "pub", {"spec": {"minAvailable": 0}})

        async def replaced() -> None:
            assert await images(world) == ["nginx:1.26"] * 2

        await world.until(replaced, within=600)

    run_local(scenario, feature_gates=f"SidecarTerminator=true,{budget_keys.UPDATE_GATE}=true")


async def images(world: LocalWorld) -> list[str]:
    return [one["image"] for one in (await world.get(PODS, "work"))["spec"]["containers"]]
