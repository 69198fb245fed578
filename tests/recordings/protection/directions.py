"""What each step of the recordings does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from kruise.admission.inventory import PROTECTION_LABEL
from kruise.api.native.config import SECRETS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import AlreadyExistsError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import encode, to_builtins
from tests.recordings.protection.playing import KINDS, Answer, Player
from tests.recordings.spread.playing import Step

Found = re.Match[str]
THINGS = "things.rec3.example.com"


async def _create(player: Player, found: Found, step: Step) -> None:
    await player.create(player.manifest(found[1], found[2]))


# Budgets


async def _evict(player: Player, found: Found, step: Step) -> None:
    pod = await player.pod(found[1])
    await player.client.evict(PODS, pod, player.world.namespace, dry_run="dry run" in step.title)


async def _delete_pod(player: Player, found: Found, step: Step) -> None:
    # One that was recorded as let through, and is there afterwards: it was only tried.
    await player.delete("Pod", await player.pod(found[1]), dry_run="while it is recorded" in step.title)


async def _condition(player: Player, found: Found, step: Step) -> None:
    body = {"status": {"conditions": [{"type": found[1], "status": found[2]}]}}
    await player.client.patch(
        PODS,
        await player.pod(found[3]),
        body,
        player.world.namespace,
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


async def _pod_image(player: Player, found: Found, step: Step) -> None:
    await player.patch("Pod", await player.pod(found[1]), step.body)


def _on_pod(alias: str) -> Answer:
    async def change(player: Player, found: Found, step: Step) -> None:
        await player.patch("Pod", await player.pod(alias), step.body)

    return change


async def _budget(player: Player, found: Found, step: Step) -> None:
    await player.patch("PodUnavailableBudget", "pub", step.body)


async def _workload(player: Player, found: Found, step: Step) -> None:
    kind = next(one["kind"] for one in player.recording.manifests if one["kind"] != "PodUnavailableBudget")
    await player.patch(kind, "web", step.body)


BUDGETS: Mapping[str, Answer] = {
    r"create (\w+) (\w+)": _create,
    r"set condition (\S+)=(\w+) on (pod-\d)": _condition,
    r"evict (pod-\d)": _evict,
    r"delete (?:Pod/|the unready pod )?(pod-\d)": _delete_pod,
    r"image of (?:the unavailable pod )?(pod-\d)": _pod_image,
    r"label and annotation only|(?:add|remove) (?:an|the) unavailable label": _on_pod("pod-3"),
    r"no-protect on the pod": _on_pod("pod-4"),
    r"protect DELETE|default operations": _budget,
    r"(?:CloneSet |set )?image |scale to ": _workload,
}


# Deletion protection


def _label(value: str | None) -> dict[str, Any]:
    return {"metadata": {"labels": {PROTECTION_LABEL: value}}}


async def _both(player: Player, found: Found, step: Step) -> None:
    for manifest in player.recording.manifests:
        await player.create(manifest)


async def _service_unlabelled(player: Player, found: Found, step: Step) -> None:
    await player.patch("Service", "web", _label("Cascading"))
    await player.delete("Service", "web")


async def _namespace_labelled(player: Player, found: Found, step: Step) -> None:
    await player.patch("Namespace", player.world.namespace, _label("Cascading"))
    await player.delete("Namespace", player.world.namespace)


async def _namespace(player: Player, found: Found, step: Step) -> None:
    await player.delete("Namespace", player.world.namespace, dry_run="dry run" in step.title)


async def _collection(player: Player, found: Found, step: Step) -> None:
    await player.client.delete_collection(KINDS["CloneSet"], player.world.namespace)


async def _scaled(player: Player, found: Found, step: Step) -> None:
    await player.patch("CloneSet", "web", {"spec": {"replicas": 0}})
    await player.delete("CloneSet", "web")


async def _definition(player: Player, found: Found, step: Step) -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": THINGS, **_label("Always")["metadata"]},
        "spec": {
            "group": "rec3.example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    await player.create(body)
    await player.trying(player.delete("CustomResourceDefinition", THINGS))
    await player.patch("CustomResourceDefinition", THINGS, _label("Cascading"))
    await player.trying(player.delete("CustomResourceDefinition", THINGS))


async def _definition_unlabelled(player: Player, found: Found, step: Step) -> None:
    await player.patch("CustomResourceDefinition", THINGS, _label(None))
    await player.delete("CustomResourceDefinition", THINGS)


async def _delete(player: Player, found: Found, step: Step) -> None:
    await player.delete(found[1], found[2], propagation="Background")


async def _replica_set(player: Player, found: Found, step: Step) -> None:
    known = await player.world.list(KINDS["ReplicaSet"])
    name = known[0]["metadata"]["name"] if known else "web-rs-1"
    if step.body is None:
        await player.delete("ReplicaSet", name)
    else:
        await player.patch("ReplicaSet", name, step.body)


async def _guarded_service(player: Player, found: Found, step: Step) -> None:
    await player.make_namespace("guard-1", {})
    await player.create(player.manifest("Service"), "guard-1")


async def _service_in_guard(player: Player, found: Found, step: Step) -> None:
    await player.patch("Service", "svc", step.body, "guard-1")


async def _second_guard(player: Player, found: Found, step: Step) -> None:
    await player.make_namespace("guard-2", {PROTECTION_LABEL: "Always"})
    await player.delete("Namespace", "guard-2")


async def _cloneset_in_guard(player: Player, found: Found, step: Step) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}
    head = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "web"}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    await player.create({**head, "spec": spec}, "guard-2")


async def _guard_two(player: Player, found: Found, step: Step) -> None:
    if step.body is None:
        await player.delete("Namespace", "guard-2")
    elif "replicas" in step.body.get("spec", {}):
        await player.patch("CloneSet", "web", step.body, "guard-2")
    else:
        await player.patch("Namespace", "guard-2", step.body)


DELETIONS: Mapping[str, Answer] = {
    r"create CloneSet web \(1\) labelled": _both,
    r"label the Service Cascading": _service_unlabelled,
    r"label the namespace Cascading": _namespace_labelled,
    r"dry run of the same|delete the namespace": _namespace,
    r"delete all CloneSets": _collection,
    r"scale the CloneSet to 0 and delete": _scaled,
    r"CRD labelled": _definition,
    r"remove the label of the CRD": _definition_unlabelled,
    r"create (Deployment) (web)": _create,
    r"(?:remove the label from|delete) the ReplicaSet": _replica_set,
    r"create a protected Service": _guarded_service,
    r"remove the label of the Service": _service_in_guard,
    r"delete namespace guard-2 labelled": _second_guard,
    r"create a CloneSet with 1 replica in guard-2": _cloneset_in_guard,
    r"label Cascading|scale to 0|delete (?:N|n)amespace[/ ]guard-2": _guard_two,
    r"delete (\w+)[/ ](\S+)": _delete,
}


# Distributions


async def _distribution(player: Player, found: Found, step: Step) -> None:
    name = found[1] if found.lastindex else player.manifest("ResourceDistribution")["metadata"]["name"]
    await player.patch("ResourceDistribution", name, step.body)


async def _remove_distribution(player: Player, found: Found, step: Step) -> None:
    await player.delete("ResourceDistribution", found[1], propagation="Background")


async def _orphaned(player: Player, found: Found, step: Step) -> None:
    await player.delete("ResourceDistribution", "rd-all", propagation="Orphan")


async def _own_config(player: Player, found: Found, step: Step) -> None:
    await player.create(player.manifest("ConfigMap"), "conf-1")


async def _copy(player: Player, found: Found, step: Step) -> None:
    await player.patch("ConfigMap", "cfg", step.body, "conf-2" if "conf-2" in step.title else "team-1")


async def _remove_copy(player: Player, found: Found, step: Step) -> None:
    await player.delete("ConfigMap", "cfg", found[1])


async def _two_namespaces(player: Player, found: Found, step: Step) -> None:
    for name in ("demo-a", "demo-b"):
        await player.make_namespace(name, {"rec3-rd": "yes"})


async def _new_namespace(player: Player, found: Found, step: Step) -> None:
    name = "demo-c" if found[1] == "c" else found[1]
    labels = {"group": "test"} if "with labels" in step.title else {}
    for _ in range(100):
        try:
            await player.make_namespace(name, labels)
        except AlreadyExistsError:  # its namesake is on its way out
            await asyncio.sleep(0.5)
        else:
            return


async def _namespace_label(player: Player, found: Found, step: Step) -> None:
    await player.patch("Namespace", found[1], step.body)


async def _remove_namespace(player: Player, found: Found, step: Step) -> None:
    await player.client.delete(NAMESPACES, found[1])


async def _read(player: Player, found: Found, step: Step) -> None:
    await _tell(player, "demo-a", "demo-b", "demo-c")


async def _tell(player: Player, *namespaces: str) -> None:
    for namespace in namespaces:
        copy = to_builtins(await player.client.get(SECRETS, "token", namespace))
        player.said.append(f"{namespace} {encode(copy['data']).decode()}")


async def _drift(player: Player, found: Found, step: Step) -> None:
    await player.patch("Secret", "token", {"data": {"extra": "eA=="}}, "demo-a")
    await player.delete("Secret", "token", "demo-b")
    await asyncio.sleep(3)
    await _tell(player, "demo-a", "demo-b")


async def _disowned(player: Player, found: Found, step: Step) -> None:
    await player.patch("Secret", "token", {"metadata": {"ownerReferences": None}}, "demo-a")
    await player.patch("Secret", "token", {"data": {"extra": "eA=="}}, "demo-a")


DISTRIBUTIONS: Mapping[str, Answer] = {
    r"create (ResourceDistribution) (\S+)": _create,
    r"create ConfigMap cfg in conf-1": _own_config,
    r"create namespaces a and b": _two_namespaces,
    r"create namespace (\S+)": _new_namespace,
    r"(?:un)?label namespace (\S+)": _namespace_label,
    r"delete [Nn]amespace[/ ](\S+)": _remove_namespace,
    r"delete the (?:copy|hand-made ConfigMap) in (\S+)": _remove_copy,
    r"edit |change the from annotation|remove the owner reference": _copy,
    r"delete ResourceDistribution[/ ](\S+)": _remove_distribution,
    r"delete with orphan": _orphaned,
    r"read the copies": _read,
    r"drift": _drift,
    r"remove the controller owner reference": _disowned,
    r"(?:annotate|change data of) (rd-c1)": _distribution,
    r"change |switch |empty |list |exclude ": _distribution,
}
