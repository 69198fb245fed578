"""UnitedDeployments: one application over subsets, each a workload of its own."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED_STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.native.apps import CONTROLLER_REVISIONS, DEPLOYMENTS, STATEFUL_SETS
from kruise.api.native.nodes import NODES
from kruise.api.resource import Resource
from kruise.machinery.client.requests import PatchType
from kruise.spread.uniteddeployment import keys
from tests.scenarios.stage import BETA, Scenario, Stage, scenario
from tests.support.world import Json

OLD, NEW = "nginx:1.25", "nginx:1.26"
SCENARIOS: dict[str, Scenario] = {}
MEMBERS: Mapping[str, Resource[Any]] = {
    "deploymentTemplate": DEPLOYMENTS,
    "statefulSetTemplate": STATEFUL_SETS,
    "cloneSetTemplate": CLONE_SETS,
    "advancedStatefulSetTemplate": ADVANCED_STATEFUL_SETS,
}
CLONES, DEPLOYED, STATEFUL, ADVANCED = (
    "cloneSetTemplate",
    "deploymentTemplate",
    "statefulSetTemplate",
    "advancedStatefulSetTemplate",
)
NOWHERE = "nowhere"


class UnitedStage(Stage):
    """A UnitedDeployment `web` over subsets that are named after their zones: nodes have a label of this scenario's
    own, in turn a, b and c."""

    resource: Resource[Any] = UNITED_DEPLOYMENTS

    @property
    def zone(self) -> str:
        return f"example.com/zone-{self.namespace}"

    async def label_nodes(self, zones: Sequence[str] = ("a", "b", "c")) -> None:
        names = sorted(node.metadata.name for node in (await self.client.list(NODES)).items)
        for place, name in enumerate(names):
            await self.client.patch(NODES, name, {"metadata": {"labels": {self.zone: zones[place % len(zones)]}}})

    def subset(self, name: str, *, zone: str | None = None, **more: Any) -> Json:
        expression = {"key": self.zone, "operator": "In", "values": [name if zone is None else zone]}
        return {"name": name, "nodeSelectorTerm": {"matchExpressions": [expression]}, **more}

    def manifest(  # type: ignore[override]
        self,
        name: str = "web",
        *,
        subsets: Sequence[Json],
        member: str = CLONES,
        version: str = BETA,
        replicas: int | None = 6,
        image: str = OLD,
        child: Mapping[str, Any] | None = None,
        schedule: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Json:
        """`child` goes into the spec of the children."""
        labels = {"app": name}
        inner: Json = {
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}},
            **copy.deepcopy(dict(child or {})),
        }
        if member in (CLONES, ADVANCED):
            inner["selector"] = {"matchLabels": labels}
        topology: Json = {"subsets": list(subsets)}
        if schedule is not None:
            topology["scheduleStrategy"] = dict(schedule)
        made: Json = {
            "apiVersion": f"{UNITED_DEPLOYMENTS.group}/{version}",
            "kind": UNITED_DEPLOYMENTS.kind,
            "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {member: {"metadata": {"labels": labels}, "spec": inner}},
                "topology": topology,
                **spec,
            },
        }
        if replicas is not None:
            made["spec"]["replicas"] = replicas
        return made

    async def image(self, image: str, member: str = CLONES, name: str = "web") -> None:
        path = f"/spec/template/{member}/spec/template/spec/containers/0/image"
        body = [{"op": "replace", "path": path, "value": image}]
        await self.world.patch(self.resource, name, body, patch_type=PatchType.JSON)

    async def children(self, member: str = CLONES, name: str = "web") -> dict[str, Json]:
        """By subset."""
        found = await self.world.list(MEMBERS[member], f"app={name},{keys.SUBSET}")
        children = {item["metadata"]["labels"][keys.SUBSET]: item for item in found}
        assert len(children) == len(found), "a subset has two workloads"
        return children

    async def pods(self, name: str = "web") -> list[Json]:
        return await self.world.pods(f"app={name},{keys.SUBSET}")

    async def by_subset(self, name: str = "web") -> dict[str, int]:
        """How many pods each subset has."""
        found: dict[str, int] = {}
        for pod in await self.pods(name):
            subset = pod["metadata"]["labels"][keys.SUBSET]
            found[subset] = found.get(subset, 0) + 1
        return found

    async def settles(self, pods: Mapping[str, int], *, ready: int | None = None, within: float | None = None) -> Json:
        """Wait until the subsets have so many pods, and the status tells so (UD-86)."""

        async def there() -> Json:
            subject = await self.subject()
            status: Json = subject.get("status", {})
            assert status.get("observedGeneration") == subject["metadata"]["generation"], f"not noticed: {status}"
            found = await self.by_subset()
            assert found == {name: count for name, count in pods.items() if count}, f"{found}: {status}"
            told = {
                one["name"]: one.get("allocatedReplicas", one.get("replicas", 0)) for one in status["subsetStatuses"]
            }
            assert told == dict(pods), status
            wanted = sum(pods.values()) if ready is None else ready
            assert status.get("readyReplicas", 0) == wanted, status
            return status

        found: Json = await self.until(there, within=within)
        return found

    async def is_updated(self, pods: int, *, image: str = NEW) -> Json:
        async def there() -> Json:
            status = await self.status()
            assert (status["updatedReplicas"], status.get("updatedReadyReplicas", 0)) == (pods, pods), status
            shown = [pod["spec"]["containers"][0]["image"] for pod in await self.pods()]
            assert shown.count(image) == pods, shown
            return status

        found: Json = await self.until(there)
        return found

    async def subset_condition(self, subset: str) -> Json:
        for one in (await self.status()).get("subsetStatuses", []):
            if one["name"] == subset:
                return next(iter(one.get("conditions", [])), {})
        raise AssertionError(f"nothing is told of subset {subset}")


united = functools.partial(scenario, into=SCENARIOS, stage=UnitedStage)


async def _three_subsets(stage: UnitedStage, member: str) -> None:
    """A number, a percentage and the rest; scaled, updated subset by subset, a subset removed."""
    await stage.label_nodes()
    subsets = [stage.subset("a", replicas=1), stage.subset("b", replicas="50%"), stage.subset("c")]
    await stage.create(subsets=subsets, member=member)
    status = await stage.settles({"a": 1, "b": 3, "c": 2})
    assert (status["replicas"], status["labelSelector"]) == (6, "app=web")
    first = status["updatedRevision"]
    assert status["currentRevision"] == first
    children = await stage.children(member)
    for name, child in children.items():
        metadata = child["metadata"]
        assert metadata["name"].startswith(f"web-{name}-")
        assert metadata["labels"] == {"app": "web", keys.SUBSET: name, keys.REVISION: first}
        assert metadata["annotations"][keys.PATCH] == ""
        owner = metadata["ownerReferences"][0]
        assert (owner["apiVersion"], owner["kind"]) == ("apps.kruise.io/v1beta1", "UnitedDeployment")
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, True)
        assert child["spec"]["selector"]["matchLabels"] == {"app": "web", keys.SUBSET: name}
    for pod in await stage.pods():
        terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        values = terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"]
        assert values == [pod["metadata"]["labels"][keys.SUBSET]]
    await stage.scale(4)
    await stage.settles({"a": 1, "b": 2, "c": 1})
    await stage.change({"updateStrategy": {"manualUpdate": {"partitions": {"b": 1, "a": 9}}}})
    await stage.image(NEW, member)
    expected = 4 if member == DEPLOYED else 2
    status = await stage.is_updated(expected)
    if member != DEPLOYED:
        condition = await stage.condition("UnitedDeploymentUpdated")
        assert (condition["status"], condition["reason"]) == ("False", "UnitedDeploymentRevisionUpdating")
        assert {one["name"]: one.get("partition", 0) for one in status["subsetStatuses"]} == {"a": 1, "b": 1, "c": 0}
    await stage.change({"updateStrategy": {"manualUpdate": {"partitions": None}}})
    await stage.is_updated(4)

    async def is_current() -> None:
        status = await stage.status()
        assert status["currentRevision"] == status["updatedRevision"] != first
        assert (await stage.condition("UnitedDeploymentUpdated"))["status"] == "True"

    await stage.until(is_current)
    revisions = await stage.world.list(CONTROLLER_REVISIONS, "app=web")
    ours = [one for one in revisions if one["metadata"]["ownerReferences"][0]["kind"] == "UnitedDeployment"]
    assert sorted(one["revision"] for one in ours) == [1, 2]
    await stage.world.patch(
        stage.resource, "web", [{"op": "remove", "path": "/spec/topology/subsets/0"}], patch_type=PatchType.JSON
    )
    await stage.settles({"b": 2, "c": 2})
    await stage.has_event("SuccessfulUpdateSubset", "Create 3 Subset")
    await stage.has_event("SuccessfulUpdateSubset", "Delete 1 Subset")
    await stage.world.delete(stage.resource, "web")

    async def is_gone() -> None:
        assert not await stage.children(member)
        assert not await stage.pods()

    await stage.until(is_gone)


@united(
    "UD-43",
    "UD-47",
    "UD-50",
    "UD-51",
    "UD-52",
    "UD-55",
    "UD-56",
    "UD-57",
    "UD-75",
    "UD-78",
    "UD-81",
    "UD-83",
    smoke=True,
)
async def clone_sets_as_subsets(stage: UnitedStage) -> None:
    """Sizes, updates and partitions with CloneSets (CS-151)."""
    await _three_subsets(stage, CLONES)


@united("UD-43", "UD-49", "UD-56", "UD-78", "UD-81")
async def deployments_as_subsets(stage: UnitedStage) -> None:
    """The same with Deployments, which have no partition."""
    await _three_subsets(stage, DEPLOYED)


@united("UD-43", "UD-49", "UD-56", "UD-78", "UD-81")
async def stateful_sets_as_subsets(stage: UnitedStage) -> None:
    """The same with StatefulSets of Kubernetes."""
    await _three_subsets(stage, STATEFUL)


@united("UD-43", "UD-49", "UD-56", "UD-78", "UD-81")
async def advanced_stateful_sets_as_subsets(stage: UnitedStage) -> None:
    """The same with advanced StatefulSets (ST-112)."""
    await _three_subsets(stage, ADVANCED)


GUESTBOOK = {"app.kubernetes.io/name": "guestbook-kruise", "app.kubernetes.io/instance": "demo"}


async def play_guestbook(stage: UnitedStage, image: str, policy: str = "Always") -> None:
    """Ten pods of a StatefulSet over three zones: two, half of them, and the rest. The manifest as it was published, in
    v1alpha1, without selector, replicas and serviceName inside."""
    names = sorted(node.metadata.name for node in (await stage.client.list(NODES)).items)
    for place, name in enumerate(names):
        await stage.client.patch(NODES, name, {"metadata": {"labels": {"test-zone": f"zone-{'abc'[place % 3]}"}}})
    container = {
        "name": "guestbook-kruise",
        "image": image,
        "imagePullPolicy": policy,
        "ports": [{"name": "http-server", "containerPort": 3000}],
    }
    subsets = [
        {
            "name": f"subset-{zone}",
            **({} if size is None else {"replicas": size}),
            "nodeSelectorTerm": {
                "matchExpressions": [{"key": "test-zone", "operator": "In", "values": [f"zone-{zone}"]}]
            },
        }
        for zone, size in (("a", 2), ("b", "50%"), ("c", None))
    ]
    template = {"metadata": {"labels": GUESTBOOK}, "spec": {"containers": [container]}}
    await stage.world.create(
        {
            "apiVersion": "apps.kruise.io/v1alpha1",
            "kind": "UnitedDeployment",
            "metadata": {"name": "demo-guestbook-kruise", "labels": GUESTBOOK},
            "spec": {
                "replicas": 10,
                "revisionHistoryLimit": 10,
                "selector": {"matchLabels": GUESTBOOK},
                "template": {
                    "statefulSetTemplate": {"metadata": {"labels": GUESTBOOK}, "spec": {"template": template}}
                },
                "topology": {"subsets": subsets},
            },
        }
    )

    async def there() -> None:
        united = await stage.world.get(UNITED_DEPLOYMENTS, "demo-guestbook-kruise")
        status = united.get("status", {})
        assert (status.get("replicas"), status.get("readyReplicas")) == (10, 10), status
        children = await stage.world.list(STATEFUL_SETS, "app.kubernetes.io/name=guestbook-kruise")
        sizes = {one["metadata"]["labels"][keys.SUBSET]: one["spec"]["replicas"] for one in children}
        assert sizes == {"subset-a": 2, "subset-b": 5, "subset-c": 3}
        assert all(
            one["metadata"]["name"].startswith(f"demo-guestbook-kruise-{one['metadata']['labels'][keys.SUBSET]}-")
            for one in children
        )

    await stage.until(there)
    zones = {name: f"subset-{'abc'[place % 3]}" for place, name in enumerate(names)}
    pods = await stage.world.pods("app.kubernetes.io/name=guestbook-kruise")
    assert [zones[pod["spec"]["nodeName"]] for pod in pods] == [pod["metadata"]["labels"][keys.SUBSET] for pod in pods]


@united("UD-30", "UD-43", "UD-51", "UD-57")
async def the_guestbook_in_three_zones(stage: UnitedStage) -> None:
    """2, 5 and 3 pods, each where its zone is."""
    await play_guestbook(stage, "openkruise/guestbook:v1")


async def _adaptive(stage: UnitedStage, member: str) -> None:
    await stage.label_nodes(("a", "b", "c"))
    subsets = [
        stage.subset("a", maxReplicas=2),
        stage.subset("b", zone=NOWHERE, maxReplicas=2),
        stage.subset("c"),
    ]
    # Long enough to be seen on a busy machine: a subset that recovers before the next step gets pods again.
    window = 10 + 3 * round(stage.pace.slack)
    adaptive = {"rescheduleCriticalSeconds": 10, "unschedulableDuration": window}
    await stage.create(subsets=subsets, member=member, replicas=3, schedule={"type": "Adaptive", "adaptive": adaptive})
    began = stage.world.clock.monotonic()
    await stage.settles({"a": 2, "b": 0, "c": 1})
    took = stage.world.clock.monotonic() - began
    assert 10 <= took <= 10 + 4 * stage.pace.slack, took
    told = await stage.subset_condition("b")
    assert (told["status"], told["reason"], told["message"]) == ("False", "reschedule", "timeout pending pods found")
    await stage.scale(5)
    await stage.settles({"a": 2, "b": 0, "c": 3})

    async def recovered() -> None:
        told = await stage.subset_condition("b")
        assert (told["status"], told["reason"]) == ("True", "recover"), told
        assert told["message"] == f"unschedulable subset recovered after {window}.000000 seconds"

    await stage.until(recovered)
    await stage.settles({"a": 2, "b": 0, "c": 3})
    await stage.scale(6)
    await stage.settles({"a": 2, "b": 1, "c": 3}, ready=5)
    await stage.scale(4)
    await stage.settles({"a": 2, "b": 0, "c": 2})


@united("UD-61", "UD-62", "UD-63", "UD-64", "UD-66", "UD-11", "UD-12")
async def pods_move_on_from_a_subset_without_nodes(stage: UnitedStage) -> None:
    """Pods that find no node go to later subsets; the subset is tried again later."""
    await _adaptive(stage, CLONES)


@united("UD-61", "UD-62")
async def pods_move_on_with_stateful_sets(stage: UnitedStage) -> None:
    """The same with StatefulSets, whose first pod holds up the others."""
    await _adaptive(stage, STATEFUL)


@united("UD-67", "UD-68", "UD-69", "UD-70", "UD-73", "UD-74", "UD-87", smoke=True)
async def stuck_pods_stay_beside_their_replacements(stage: UnitedStage) -> None:
    """Reserved pods wait where they are; when their nodes come, the replacements go."""
    await stage.label_nodes(("c", "x", "y"))
    subsets = [stage.subset("a"), stage.subset("b"), stage.subset("c")]
    adaptive = {"rescheduleCriticalSeconds": 20, "unschedulableDuration": 1, "reserveUnschedulablePods": True}
    await stage.create(subsets=subsets, replicas=2, schedule={"type": "Adaptive", "adaptive": adaptive})

    async def settled(pods: Mapping[str, int], reserved: int, replicas: int) -> Json:
        async def there() -> Json:
            status, found = await stage.status(), await stage.by_subset()
            assert found == {name: count for name, count in pods.items() if count}, f"{found}: {status}"
            shown = (status["replicas"], status.get("readyReplicas", 0), status.get("reservedPods", 0))
            assert shown == (replicas, replicas, reserved), status
            return status

        found: Json = await stage.until(there)
        return found

    status = await settled({"a": 2, "b": 2, "c": 2}, 4, 2)
    assert status["labelSelector"] == f"app=web,{keys.RESERVED}=false"
    await stage.scale(4)
    await settled({"a": 2, "b": 2, "c": 4}, 4, 4)
    labels = [pod["metadata"]["labels"].get(keys.RESERVED) for pod in await stage.pods()]
    assert sorted(str(label) for label in labels) == ["false"] * 4 + ["true"] * 4
    await stage.image(NEW)

    async def all_new() -> None:
        assert {pod["spec"]["containers"][0]["image"] for pod in await stage.pods()} == {NEW}

    await stage.until(all_new)
    await settled({"a": 2, "b": 2, "c": 4}, 4, 4)
    await stage.label_nodes(("c", "a", "y"))
    await settled({"a": 4, "b": 0, "c": 0}, 0, 4)
    assert (await stage.subset_condition("a"))["status"] == "True"
    await stage.scale(5)
    await settled({"a": 5, "b": 0, "c": 0}, 0, 5)


@united("UD-69", "UD-73")
async def an_update_gets_past_stuck_pods(stage: UnitedStage) -> None:
    """A subset of which one pod is stuck and the others serve: all get the new template, and never more of the others
    are down than the template allows."""
    nodes = (await stage.client.list(NODES)).items
    await stage.label_nodes(("a",) * (len(nodes) - 1) + ("b",))
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
    inner = {
        "containers": [{"name": "main", "image": OLD}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "terminationGracePeriodSeconds": 0,
    }
    child = {
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": inner},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
    }
    adaptive = {"rescheduleCriticalSeconds": 3, "unschedulableDuration": 1, "reserveUnschedulablePods": True}
    schedule = {"type": "Adaptive", "adaptive": adaptive}
    await stage.create(
        subsets=[stage.subset("a"), stage.subset("b")], replicas=len(nodes), child=child, schedule=schedule
    )

    async def there() -> None:
        status, found = await stage.status(), await stage.by_subset()
        assert found == {"a": len(nodes), "b": 1}, f"{found}: {status}"
        assert (status.get("readyReplicas", 0), status.get("reservedPods", 0)) == (len(nodes), 1), status

    await stage.until(there)
    await stage.image(NEW)

    async def all_new() -> None:
        pods = await stage.pods()
        limits = (await stage.children())["a"]["spec"]["updateStrategy"]["rollingUpdate"]
        assert limits["maxUnavailable"] <= 2, limits
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {NEW}, [pod["status"] for pod in pods]

    await stage.until(all_new)
    await stage.until(there)


@united("UD-79", "UD-54", "UD-9")
async def a_refused_child_is_quoted(stage: UnitedStage) -> None:
    """What the API says about a child stands in a condition, with the subset, and nothing is called updated."""
    broken = {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}}
    await stage.create(subsets=[stage.subset("a"), stage.subset("b")], child=broken)

    async def quoted() -> None:
        told = await stage.condition("SubsetProvisioned")
        assert (told["status"], told["reason"]) == ("False", "Error")
        assert told["message"].startswith("subset a (CloneSet web-a-"), told
        assert "containers" in told["message"]
        assert (await stage.condition("UnitedDeploymentUpdated"))["status"] == "False"

    await stage.until(quoted)
    await stage.has_event("FailedUpdateSubset", "containers", type="Warning")
    good = {"containers": [{"name": "main", "image": OLD}]}
    await stage.change({"template": {CLONES: {"spec": {"template": {"spec": good}}}}})
    await stage.label_nodes()
    await stage.settles({"a": 3, "b": 3})
    assert (await stage.condition("SubsetProvisioned"))["status"] == "True"
    await stage.until(functools.partial(_is_true, stage, "UnitedDeploymentUpdated"))


async def _is_true(stage: UnitedStage, kind: str) -> None:
    assert (await stage.condition(kind))["status"] == "True"


@united("UD-53", "UD-48", "UD-47")
async def another_kind_and_children_of_nobody(stage: UnitedStage) -> None:
    """A template of another kind replaces the children; orphans of a subset are adopted, second ones deleted."""
    await stage.label_nodes()
    manifest = stage.manifest(subsets=[stage.subset("a"), stage.subset("b")], replicas=2)
    await stage.world.create(manifest)
    await stage.settles({"a": 1, "b": 1})
    before = await stage.children()
    orphan = before["a"]["metadata"]["name"]
    await stage.world.patch(CLONE_SETS, orphan, {"metadata": {"ownerReferences": None}})

    async def adopted() -> None:
        found = await stage.children()
        assert found["a"]["metadata"]["name"] == orphan
        assert found["a"]["metadata"].get("ownerReferences"), "nobody has adopted it"

    await stage.until(adopted)
    template = copy.deepcopy(manifest["spec"]["template"][CLONES])
    del template["spec"]["selector"]
    await stage.change({"template": {CLONES: None, DEPLOYED: template}})

    async def replaced() -> None:
        assert not await stage.children(CLONES)
        assert sorted(await stage.children(DEPLOYED)) == ["a", "b"]

    await stage.until(replaced)
    await stage.settles({"a": 1, "b": 1})


@united("UD-59", "UD-60", "UD-80", "UD-58")
async def patches_and_what_others_wrote(stage: UnitedStage) -> None:
    """A subset's patch changes its child alone, and makes no revision; what others wrote on a child stays, what the
    template says no more goes."""
    await stage.label_nodes()
    patch = {"spec": {"containers": [{"name": "main", "env": [{"name": "ZONE", "value": "a"}]}]}}
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    await stage.create(
        subsets=[stage.subset("a", patch=patch), stage.subset("b", tolerations=tolerations)],
        replicas=2,
        child={"minReadySeconds": 3},
    )
    status = await stage.settles({"a": 1, "b": 1})
    children = await stage.children()
    name = children["a"]["metadata"]["name"]
    assert children["a"]["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "ZONE", "value": "a"}]
    assert children["b"]["spec"]["template"]["spec"]["tolerations"] == tolerations
    assert children["a"]["spec"]["minReadySeconds"] == 3
    others = {"metadata": {"annotations": {"example.com/who": "somebody"}}, "spec": {"progressDeadlineSeconds": 77}}
    await stage.world.patch(CLONE_SETS, name, others)
    generation = (await stage.world.get(CLONE_SETS, children["b"]["metadata"]["name"]))["metadata"]["generation"]
    patch["spec"]["containers"][0]["env"][0]["value"] = "aa"
    body = [{"op": "add", "path": "/spec/topology/subsets/0/patch", "value": patch}]
    await stage.world.patch(stage.resource, "web", body, patch_type=PatchType.JSON)

    async def changed() -> Json:
        found = (await stage.children())["a"]
        assert found["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "aa"
        return found

    found = await stage.until(changed)
    assert found["metadata"]["annotations"]["example.com/who"] == "somebody"
    assert found["spec"]["progressDeadlineSeconds"] == 77
    assert (await stage.status())["updatedRevision"] == status["updatedRevision"]
    assert (await stage.children())["b"]["metadata"]["generation"] == generation
    await stage.change({"template": {CLONES: {"spec": {"minReadySeconds": None}}}})

    async def dropped() -> None:
        for child in (await stage.children()).values():
            assert child["spec"].get("minReadySeconds", 0) == 0
            assert child["metadata"]["labels"][keys.REVISION] != status["updatedRevision"]
        assert (await stage.children())["a"]["spec"]["progressDeadlineSeconds"] == 77

    await stage.until(dropped)


@united("UD-1", "UD-45", "UD-87")
async def sizes_that_do_not_add_up(stage: UnitedStage) -> None:
    """Reached through the scale subresource: nothing is changed, and it is told."""
    await stage.label_nodes()
    await stage.create(subsets=[stage.subset("a", replicas=1), stage.subset("b", replicas=1)], replicas=2)
    await stage.settles({"a": 1, "b": 1})
    await stage.world.patch(stage.resource, "web", {"spec": {"replicas": 5}}, subresource="scale")
    await stage.has_event("Failed SpecifySubsetReplicas", "Specified subset replicas is ineffective: ", type="Warning")

    async def told() -> None:
        condition = await stage.condition("SubsetProvisioned")
        assert condition["status"] == "False"
        assert "they must come to 5" in condition["message"]

    await stage.until(told)
    assert await stage.by_subset() == {"a": 1, "b": 1}
    await stage.world.patch(stage.resource, "web", {"spec": {"replicas": 2}}, subresource="scale")
    await stage.until(functools.partial(_is_true, stage, "SubsetProvisioned"))


@united("UD-86", "UD-87")
async def as_an_autoscaler_does(stage: UnitedStage) -> None:
    """It reads the scale in either version, counts the pods that the selector names, and writes another number."""
    await stage.label_nodes()
    await stage.create(subsets=[stage.subset("a", replicas="50%"), stage.subset("b")], replicas=2)
    await stage.settles({"a": 1, "b": 1})
    for replicas, expected in (
        (5, {"a": 3, "b": 2}),
        (1, {"a": 1, "b": 0}),
        (0, {"a": 0, "b": 0}),
        (3, {"a": 2, "b": 1}),
    ):
        for version in ("v1alpha1", BETA):
            served = dataclasses.replace(stage.resource, version=version)
            scale = await stage.client.get_scale(served, "web", stage.namespace)
            counted = await stage.world.pods(scale.status.selector)
            assert (scale.spec.replicas, scale.status.replicas) == (len(counted), len(counted))
        served = dataclasses.replace(stage.resource, version="v1alpha1" if replicas % 2 else BETA)
        await stage.client.patch(served, "web", {"spec": {"replicas": replicas}}, stage.namespace, subresource="scale")
        await stage.settles(expected)


@united("UD-82")
async def a_broken_pod_does_not_hold_up_a_stateful_set(stage: UnitedStage) -> None:
    """Pods of an old template that never get ready are deleted, since a StatefulSet would wait for them."""
    await stage.label_nodes()
    await stage.create(subsets=[stage.subset("a"), stage.subset("b")], replicas=2, member=STATEFUL, image="broken/")
    await stage.until(functools.partial(_has_pods, stage, 2))
    await stage.image(OLD, STATEFUL)
    await stage.settles({"a": 1, "b": 1})


async def _has_pods(stage: UnitedStage, count: int) -> None:
    assert len(await stage.pods()) == count
