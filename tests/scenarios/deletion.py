"""Deletion protection: what a label keeps from being deleted."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from kruise.admission.inventory import PROTECTION_LABEL
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS as KRUISE_STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from kruise.api.native.config import SERVICES
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ForbiddenError, NotFoundError
from tests.scenarios.stage import Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
_GATES = {"ResourcesDeletionProtection": True, "DeletionProtectionForCRDCascadingGate": True}
_scenario = functools.partial(scenario, into=SCENARIOS, gates=_GATES)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True, PartialObject)


async def label(stage: Stage, resource: Resource[Any], name: str, value: str | None) -> None:
    namespace = stage.namespace if resource.namespaced else ""
    await stage.client.patch(resource, name, {"metadata": {"labels": {PROTECTION_LABEL: value}}}, namespace)


async def refused(stage: Stage, resource: Resource[Any], name: str, *, dry_run: bool = False) -> str:
    namespace = stage.namespace if resource.namespaced else ""
    try:
        await stage.client.delete(resource, name, namespace, dry_run=dry_run)
    except ForbiddenError as error:
        text = str(error)
    else:
        raise AssertionError(f"{resource.kind} {name} was deleted")
    assert "forbidden by ResourcesProtectionDeletion" in text
    return text


async def deleted(stage: Stage, resource: Resource[Any], name: str) -> None:
    await stage.client.delete(resource, name, stage.namespace if resource.namespaced else "")


async def scaled(stage: Stage, resource: Resource[Any], name: str, replicas: int) -> None:
    await stage.client.patch(resource, name, {"spec": {"replicas": replicas}}, stage.namespace)


async def is_served(stage: Stage, resource: Resource[Any]) -> bool:
    try:
        await stage.client.list(resource, stage.namespace)
    except NotFoundError:
        return False
    return True


def _workload(resource: Resource[Any], replicas: int) -> Json:
    labels = {"app": "idle"}
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}},
    }
    if resource.kind == "StatefulSet":
        spec["serviceName"] = "idle"
    if resource is UNITED_DEPLOYMENTS:
        inner = {"selector": spec["selector"], "template": spec.pop("template")}
        spec["template"] = {"cloneSetTemplate": {"metadata": {"labels": labels}, "spec": inner}}
        spec["topology"] = {"subsets": [{"name": "one"}]}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "idle"}, "spec": spec}


@_scenario("DP-1", "DP-2", "DP-13", "DP-14", "DP-18", "DP-20", "DP-42", smoke=True)
async def workloads_are_protected_by_their_replicas(stage: Stage) -> None:
    """Always: whatever they have. Cascading: while they shall have pods."""
    for resource in (CLONE_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, KRUISE_STATEFUL_SETS, UNITED_DEPLOYMENTS):
        await stage.client.create(resource, _workload(resource, 0), stage.namespace)
        await label(stage, resource, "idle", "Always")
        text = await refused(stage, resource, "idle")
        assert f"{PROTECTION_LABEL}=Always; to delete it, take the label away: kubectl label" in text
        await refused(stage, resource, "idle", dry_run=True)
        await scaled(stage, resource, "idle", 2)
        await label(stage, resource, "idle", "Cascading")
        assert f"{PROTECTION_LABEL}=Cascading and replicas 2>0; scale it to 0 first" in await refused(
            stage, resource, "idle"
        )
        await scaled(stage, resource, "idle", 0)
        await deleted(stage, resource, "idle")


@_scenario("DP-1", "DP-13", "DP-17", "DP-43")
async def services_and_ingresses_are_protected_always_or_not_at_all(stage: Stage) -> None:
    """They have nothing inside, so Cascading means nothing for them."""
    port = {"port": 80}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}, "spec": {"ports": [port]}}
    backend = {"service": {"name": "front", "port": {"number": 80}}}
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "front"},
        "spec": {"defaultBackend": backend},
    }
    kinds: tuple[tuple[Resource[Any], Json], ...] = ((SERVICES, service), (INGRESSES, ingress))
    for resource, body in kinds:
        if resource is INGRESSES and not await is_served(stage, INGRESSES):
            continue  # the local cluster has no network, and so no Ingress; rules are the same as for a Service
        await stage.client.create(resource, body, stage.namespace)
        await label(stage, resource, "front", "Always")
        await refused(stage, resource, "front")
        await label(stage, resource, "front", None)
        await deleted(stage, resource, "front")
        await stage.client.create(resource, body, stage.namespace)
        await label(stage, resource, "front", "Cascading")
        await deleted(stage, resource, "front")


@_scenario("DP-15", "DP-40", smoke=True)
async def a_namespace_is_protected_by_pods_and_claims(stage: Stage) -> None:
    """Pods on their way out do not count; claims do once nobody is there."""
    name = f"{stage.namespace}-guarded"
    await stage.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await label(stage, NAMESPACES, name, "Always")
    await refused(stage, NAMESPACES, name)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}}
    containers = [{"name": "main", "image": "nginx"}]
    spec = {"containers": containers}

    async def made() -> None:
        """In a new namespace the service account that a pod needs comes a moment later."""
        try:
            await stage.client.create(PODS, {**pod, "spec": spec}, name)
        except ForbiddenError as error:
            raise AssertionError(str(error)) from error

    await stage.until(made)
    await label(stage, NAMESPACES, name, "Cascading")
    assert f"and active pods 1>0; delete its pods first ({name}/one)" in await refused(stage, NAMESPACES, name)
    await stage.client.delete(PODS, "one", name)
    claim = {**stage.claim_template("data"), "apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    await stage.client.create(PERSISTENT_VOLUME_CLAIMS, claim, name)

    async def bound() -> None:
        assert (await stage.client.get(PERSISTENT_VOLUME_CLAIMS, "data", name)).status.phase == "Bound"

    await stage.until(bound)
    assert 'and "Bound" status pvc 1>0; delete its claims first (' in await refused(stage, NAMESPACES, name)
    await stage.client.delete(PERSISTENT_VOLUME_CLAIMS, "data", name)
    await deleted(stage, NAMESPACES, name)


@_scenario("DP-16", "DP-41", "DP-54")
async def a_definition_is_protected_by_its_objects(stage: Stage) -> None:
    """The last object and then the definition can be deleted one right after the other."""
    group = f"{stage.namespace}.example.com"
    name = f"oddities.{group}"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition: Json = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Oddity", "plural": "oddities", "singular": "oddity", "listKind": "OddityList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    oddities: Resource[Any] = Resource(group, "v1", "oddities", "Oddity", True, PartialObject)
    await stage.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)

    async def established() -> None:
        assert await is_served(stage, oddities)

    await stage.until(established)
    await label(stage, CUSTOM_RESOURCE_DEFINITIONS, name, "Always")
    await refused(stage, CUSTOM_RESOURCE_DEFINITIONS, name)
    await label(stage, CUSTOM_RESOURCE_DEFINITIONS, name, "Cascading")
    body = {"apiVersion": f"{group}/v1", "kind": "Oddity", "metadata": {"name": "one"}}
    await stage.client.create(oddities, body, stage.namespace)
    text = await refused(stage, CUSTOM_RESOURCE_DEFINITIONS, name)
    assert f"and active CRs 1>0; delete its objects first ({stage.namespace}/one)" in text
    await deleted(stage, oddities, "one")
    await deleted(stage, CUSTOM_RESOURCE_DEFINITIONS, name)


@_scenario("DP-18", "DP-21", "DP-31", "DP-50", "DP-51", "DP-56")
async def only_what_has_the_label_is_protected(stage: Stage) -> None:
    """Its owner goes, and so do its neighbours; a namespace waits for it, until the label is taken away."""
    name = f"{stage.namespace}-around"
    await stage.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for which, labels in (("kept", {PROTECTION_LABEL: "Always"}), ("free", {})):
        metadata = {"name": which, "labels": labels}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}
        await stage.client.create(SERVICES, body, name)
    with pytest.raises(ForbiddenError) as refusal:
        await stage.client.delete(SERVICES, "kept", name)
    assert 'admission webhook "vservice.kb.io" denied the request: forbidden by' in str(refusal.value)
    await stage.client.delete(NAMESPACES, name)

    async def alone() -> None:
        assert [one.metadata.name for one in (await stage.client.list(SERVICES, name)).items] == ["kept"]

    await stage.until(alone)
    await stage.stays(alone)
    assert [one for one in await stage.world.events() if "protection" in one["reason"].lower()] == []
    await stage.client.patch(SERVICES, "kept", {"metadata": {"labels": {PROTECTION_LABEL: None}}}, name)

    async def gone() -> None:
        assert all(one.metadata.name != name for one in (await stage.client.list(NAMESPACES)).items)

    await stage.until(gone)
