"""What must not change when a cluster is taken over, and what must be as it was after the way back."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.config import SECRETS
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import decode
from tests.support.openkruise import LATEST, NAMESPACE, Json, definitions
from tests.support.openkruise_objects import DEMO, kind
from tests.support.patients import DAEMON_SETS, DEPLOYMENTS

BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False, PartialObject
)


async def documents(client: Client, resource: Resource[Any], namespace: str = "") -> list[Json]:
    answer = await client.send(Request(Verb.LIST, resource, namespace))
    found: list[Json] = decode(answer.body, dict[str, Any])["items"]
    return found


def changes(before: Json, after: Json) -> Json:
    """By name: what it was, and what it is. None: it was not there, or is not there any more."""
    names = dict.fromkeys((*before, *after))
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


async def census(client: Client, release: str = LATEST) -> Json:
    """Pods, revisions and custom resources."""
    found: Json = {}
    for pod in await documents(client, PODS, DEMO):
        about, status = pod["metadata"], pod["status"]
        found[f"pod {about['name']}"] = {
            "uid": about["uid"],
            "generation": about.get("generation"),
            "restarts": {one["name"]: one["restartCount"] for one in status.get("containerStatuses", ())},
            "containers": {one["name"]: one["containerID"] for one in status.get("containerStatuses", ())},
            "hash": about["labels"].get("controller-revision-hash"),
            "state": about.get("annotations", {}).get("apps.kruise.io/inplace-update-state"),
            "sidecars": about.get("annotations", {}).get("kruise.io/sidecarset-hash"),
            "spec": pod["spec"],
        }
    for namespace in (DEMO, NAMESPACE):
        for revision in await documents(client, CONTROLLER_REVISIONS, namespace):
            about = revision["metadata"]
            if namespace == DEMO or "kruise.io/sidecarset-name" in about["labels"]:
                found[f"revision {about['name']}"] = (about["uid"], revision["revision"], revision["data"])
    for definition in definitions(release):
        resource = kind(definition["spec"]["names"]["plural"], definition["spec"]["versions"][-1]["name"])
        for item in await documents(client, resource):
            about = item["metadata"]
            marks = {key: value for key, value in about.get("annotations", {}).items() if "hash" in key}
            found[f"{resource.plural} {about['name']}"] = {
                "uid": about["uid"],
                "generation": about["generation"],
                "hashes": marks,
                "spec": item.get("spec"),
            }
    return found


async def installed(client: Client) -> Json:
    """What an installation consists of, without what an API server writes itself."""
    found: Json = {}
    for resource in (
        CUSTOM_RESOURCE_DEFINITIONS,
        MUTATING_WEBHOOK_CONFIGURATIONS,
        VALIDATING_WEBHOOK_CONFIGURATIONS,
        DEPLOYMENTS,
        DAEMON_SETS,
        SECRETS,
        BINDINGS,
    ):
        namespace = NAMESPACE if resource.namespaced else ""
        for item in await documents(client, resource, namespace):
            about = item["metadata"]
            kept = {key: about.get(key) for key in ("name", "labels", "annotations")}
            if resource is BINDINGS and not about["name"].startswith("kruise-"):
                continue
            body = {key: item[key] for key in ("spec", "webhooks", "data", "roleRef", "subjects") if key in item}
            stored = item.get("status", {}).get("storedVersions")
            found[f"{resource.kind} {about['name']}"] = {**kept, **body, "storedVersions": stored}
    return found
