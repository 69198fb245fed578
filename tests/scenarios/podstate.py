"""PersistentPodStates: pods of a StatefulSet that are made again come back to their nodes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import pytest

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.native.apps import STATEFUL_SETS
from kruise.api.native.nodes import NODES
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType
from kruise.spread.persistentpodstate import keys
from tests.scenarios.stage import BETA, Scenario, Stage, scenario
from tests.support.world import Json

OLD, NEW = "nginx:1.25", "nginx:1.26"
HOST, OS = "kubernetes.io/hostname", "kubernetes.io/os"
SCENARIOS: dict[str, Scenario] = {}
AUTO = {keys.AUTO: "true", keys.REQUIRED: OS, keys.PREFERRED: HOST}


class PodStateStage(Stage):
    """A StatefulSet `web`, and PersistentPodStates about it."""

    resource: Resource[Any] = PERSISTENT_POD_STATES
    workload: Resource[Any] = STATEFUL_SETS

    def workload_manifest(self, *, replicas: int = 3, annotations: Mapping[str, str] | None = None) -> Json:
        return {
            "apiVersion": self.workload.api_version,
            "kind": "StatefulSet",
            "metadata": {"name": "web", "annotations": dict(annotations or {})},
            "spec": {
                "replicas": replicas,
                "serviceName": "",
                "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "main", "image": OLD}], "terminationGracePeriodSeconds": 1},
                },
            },
        }

    async def make(self, **options: Any) -> None:
        await self.client.create(self.workload, {**self.workload_manifest(**options)}, self.namespace)

    def manifest(self, name: str = "where", *, version: str = BETA, **spec: Any) -> Json:  # type: ignore[override]
        return {
            "apiVersion": f"{PERSISTENT_POD_STATES.group}/{version}",
            "kind": PERSISTENT_POD_STATES.kind,
            "metadata": {"name": name},
            "spec": {
                "targetRef": {"apiVersion": self.workload.api_version, "kind": "StatefulSet", "name": "web"},
                **spec,
            },
        }

    async def scaled(self, replicas: int) -> None:
        await self.client.patch(self.workload, "web", {"spec": {"replicas": replicas}}, self.namespace)

    async def annotated(self, annotations: Mapping[str, str | None]) -> None:
        await self.client.patch(self.workload, "web", {"metadata": {"annotations": dict(annotations)}}, self.namespace)

    async def pods(self, name: str = "web") -> list[Json]:
        return await self.world.pods("app=web")

    async def places(self) -> dict[str, str]:
        """The nodes of the pods, all of them ready."""
        found = {}
        for pod in await self.pods():
            ready = [one for one in pod.get("status", {}).get("conditions", []) if one["type"] == "Ready"]
            assert [one["status"] for one in ready] == ["True"], f"{pod['metadata']['name']} is not ready"
            found[pod["metadata"]["name"]] = str(pod["spec"]["nodeName"])
        return found

    async def records(self, name: str, pods: int, labels: set[str]) -> dict[str, Json]:
        """Wait until so many pods are recorded, with these labels."""

        async def there() -> dict[str, Json]:
            found = await self.list_of(name)
            assert found, f"there is no {name}"
            states: dict[str, Json] = found[0].get("status", {}).get("podStates", {})
            assert len(states) == pods, states
            assert all(set(state["nodeTopologyLabels"]) == labels for state in states.values()), states
            return states

        found: dict[str, Json] = await self.until(there)
        return found

    async def list_of(self, name: str) -> list[Json]:
        return [item for item in await self.world.list(self.resource) if item["metadata"]["name"] == name]

    async def are_ready(self, pods: int) -> dict[str, str]:
        async def there() -> dict[str, str]:
            found = await self.places()
            assert len(found) == pods, found
            return found

        found: dict[str, str] = await self.until(there)
        return found


class AdvancedStage(PodStateStage):
    workload = ADVANCED


podstates = functools.partial(scenario, into=SCENARIOS, stage=PodStateStage)


async def _recreated(stage: PodStateStage) -> None:
    """Deleted pods come back to their nodes; states follow scaling; the object outlives the workload, its states do
    not."""
    await stage.make()
    before = await stage.are_ready(3)
    await stage.create(
        "where",
        requiredPersistentTopology={"keys": [HOST]},
        preferredPersistentTopology=[{"weight": 10, "preference": {"keys": [OS]}}],
    )
    states = await stage.records("where", 3, {HOST, OS})
    assert {name: state["nodeName"] for name, state in states.items()} == before
    await stage.delete_pod("web-0")

    async def back() -> Json:
        pod = {pod["metadata"]["name"]: pod for pod in await stage.pods()}.get("web-0", {"metadata": {}, "spec": {}})
        assert pod["metadata"].get("annotations", {}).get(keys.INJECTED) == "where"
        assert pod["spec"]["nodeSelector"] == {HOST: before["web-0"]}
        return pod

    pod = await stage.until(back)
    terms = pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    expression = {"key": OS, "operator": "In", "values": ["linux"]}
    assert terms == [{"weight": 10, "preference": {"matchExpressions": [expression]}}]
    assert await stage.are_ready(3) == before
    assert await stage.records("where", 3, {HOST, OS}) == states
    await stage.scaled(1)
    await stage.records("where", 1, {HOST, OS})
    await stage.change({"persistentPodStateRetentionPolicy": "WhenDeleted"}, "where")
    await stage.scaled(3)
    kept = await stage.records("where", 3, {HOST, OS})
    places = await stage.are_ready(3)
    await stage.scaled(1)
    await stage.until(functools.partial(_has_pods, stage, 1))
    assert await stage.records("where", 3, {HOST, OS}) == kept
    await stage.scaled(3)
    assert await stage.are_ready(3) == places
    await stage.change({"requiredPersistentTopology": None}, "where")
    await stage.records("where", 3, {OS})
    await stage.client.delete(stage.workload, "web", stage.namespace)
    await stage.records("where", 0, set())


async def _has_pods(stage: PodStateStage, count: int) -> None:
    assert len(await stage.pods()) == count


@podstates("PPS-16", "PPS-17", "PPS-20", "PPS-21", "PPS-23", "PPS-25", "PPS-30", "PPS-31", "PPS-32", smoke=True)
async def pods_come_back_to_their_nodes(stage: PodStateStage) -> None:
    """A StatefulSet of Kubernetes."""
    await _recreated(stage)


@scenario("PPS-3", "PPS-20", "PPS-29", into=SCENARIOS, stage=AdvancedStage)
async def pods_of_advanced_stateful_sets_come_back(stage: PodStateStage) -> None:
    """The same with an advanced one."""
    await _recreated(stage)


@podstates("PPS-12", "PPS-13", "PPS-14", "PPS-15", "PPS-24", "PPS-27", "PPS-28", "PPS-35", "PPS-9", smoke=True)
async def made_for_annotations(stage: PodStateStage) -> None:
    """The object comes and goes with annotations of its workload; what users change in it stays until these change."""
    await stage.make(annotations=AUTO)
    states = await stage.records("web", 3, {HOST, OS})
    [made] = await stage.list_of("web")
    owner = made["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"], owner.get("blockOwnerDeletion")) == ("StatefulSet", True, None)
    assert made["spec"] == {
        "targetRef": {"apiVersion": stage.workload.api_version, "kind": "StatefulSet", "name": "web"},
        "requiredPersistentTopology": {"keys": [OS]},
        "preferredPersistentTopology": [{"weight": 100, "preference": {"keys": [HOST]}}],
    }
    places = await stage.are_ready(3)
    template = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": NEW}]
    await stage.client.patch(stage.workload, "web", template, stage.namespace, patch_type=PatchType.JSON)

    async def renewed() -> None:
        for pod in await stage.pods():
            assert pod["spec"]["containers"][0]["image"] == NEW
            assert pod["metadata"].get("annotations", {}).get(keys.INJECTED) == "web"

    await stage.until(renewed)
    assert await stage.are_ready(3) == places
    assert await stage.records("web", 3, {HOST, OS}) == states
    await stage.change({"persistentPodStateRetentionPolicy": "WhenDeleted"}, "web")
    await stage.scaled(1)
    await stage.until(functools.partial(_has_pods, stage, 1))
    [made] = await stage.list_of("web")
    assert made["spec"]["persistentPodStateRetentionPolicy"] == "WhenDeleted"
    await stage.records("web", 3, {HOST, OS})
    await stage.annotated({keys.REQUIRED: None})
    await stage.records("web", 1, {HOST})
    await stage.annotated({keys.AUTO: None})

    async def gone() -> None:
        assert not await stage.list_of("web")

    await stage.until(gone)
    await stage.annotated({keys.AUTO: "true"})
    await stage.records("web", 1, {HOST})
    refused = stage.manifest("other", requiredPersistentTopology={"keys": [HOST]})
    with pytest.raises(ApiError, match="in conflict with other PersistentPodState web") as refusal:
        await stage.world.create(refused)
    assert refusal.value.code == 400
    await stage.client.delete(stage.workload, "web", stage.namespace)
    await stage.until(gone)


@podstates("PPS-36", "PPS-2", "PPS-22", "PPS-33")
async def both_versions_and_annotations_of_pods(stage: PodStateStage) -> None:
    """Made through v1alpha1, changed through v1beta1; annotations of pods are remembered, and follow."""
    await stage.make(replicas=1)
    await stage.are_ready(1)
    older = {"requiredPersistentTopology": {"nodeTopologyKeys": [OS]}}
    await stage.world.create(
        stage.manifest("where", version="v1alpha1", persistentPodAnnotations=[{"key": "name"}], **older)
    )
    await stage.records("where", 1, {OS})
    await stage.change({"requiredPersistentTopology": {"keys": [HOST, OS]}}, "where")
    await stage.records("where", 1, {HOST, OS})
    await stage.annotate("web-0", {"name": "zero"})
    await stage.world.patch(PERSISTENT_POD_STATES, "where", {"metadata": {"annotations": {"touch": "1"}}})

    async def remembered() -> None:
        [state] = await stage.list_of("where")
        assert state["status"]["podStates"]["web-0"].get("annotations") == {"name": "zero"}

    await stage.until(remembered)


@podstates("PPS-20", "PPS-29")
async def a_node_that_left(stage: PodStateStage) -> None:
    """A pod whose place is gone waits, for it is required; without its record it goes anywhere."""
    own = f"example.com/place-{stage.namespace}"
    await stage.make(replicas=1)
    place = (await stage.are_ready(1))["web-0"]
    await stage.client.patch(NODES, place, {"metadata": {"labels": {own: "here"}}})
    await stage.create("where", requiredPersistentTopology={"keys": [own]})
    await stage.records("where", 1, {own})
    await stage.client.patch(NODES, place, {"metadata": {"labels": {own: None}}})
    await stage.delete_pod("web-0")

    async def waits() -> None:
        pod = next(iter(await stage.pods()), None)
        assert pod is not None
        assert not pod["spec"].get("nodeName")
        assert pod["spec"]["nodeSelector"] == {own: "here"}

    await stage.until(waits)
    await stage.world.delete(PERSISTENT_POD_STATES, "where")
    await stage.delete_pod("web-0")
    await stage.are_ready(1)
