"""What tests of managers that come and go look at: ready pods, a rollout that goes on, what the webhooks have."""

from __future__ import annotations

from typing import Any

from tests.support.incluster import DEPLOYMENT, NAMESPACE, InCluster
from tests.support.realnodes import RealNodes
from tests.support.watchlog import WatchLog

Json = dict[str, Any]

LEASE_SECONDS, RETRY_SECONDS = 15.0, 2.0
BUSY_SECONDS = 10.0
"""What a machine on which much else runs may add to a time that is not ours."""
DEMO = "/api/v1/namespaces/demo"
CLONE_SETS = "/apis/apps.kruise.io/v1beta1/namespaces/demo/clonesets"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/kruise-webhook-certs"
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{_CONFIGURATIONS}/mutatingwebhookconfigurations/kruise-mutating-webhook-configuration"
VALIDATING = f"{_CONFIGURATIONS}/validatingwebhookconfigurations/kruise-validating-webhook-configuration"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io"


def pod(name: str) -> Json:
    spec = {"containers": [{"name": "main", "image": "nginx:1.25"}], "terminationGracePeriodSeconds": 2}
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def ready_pods(nodes: RealNodes, app: str) -> list[Json]:
    return ready(nodes.request("GET", f"{DEMO}/pods?labelSelector=app%3D{app}").ok()["items"])


def ready(pods: list[Json]) -> list[Json]:
    return [each for each in pods if _condition(each, "Ready") == "True"]


def _condition(pod: Json, kind: str) -> str:
    return next((each["status"] for each in pod["status"].get("conditions", []) if each["type"] == kind), "")


def wait_ready_pods(running: InCluster, app: str, count: int) -> None:
    running.wait(lambda: len(ready_pods(running.nodes, app)) == count, f"{count} pods of {app} are ready", within=120)


def names(pods: list[Json]) -> set[str]:
    return {each["metadata"]["name"] for each in pods}


def uids(pods: list[Json]) -> set[str]:
    return {each["metadata"]["uid"] for each in pods}


# Rollouts


def set_image(nodes: RealNodes, name: str, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    nodes.request("PATCH", f"{CLONE_SETS}/{name}", patch, timeout=40.0).ok()


def is_updated(nodes: RealNodes, name: str) -> bool:
    live = nodes.request("GET", f"{CLONE_SETS}/{name}").ok()
    status, count = live.get("status", {}), live["spec"]["replicas"]
    return bool(
        status.get("observedGeneration") == live["metadata"]["generation"]
        and status.get("updatedReadyReplicas") == count
    )


def image_steps(log: WatchLog) -> list[float]:
    """When pods of CloneSet `web` were given another image, one after the other."""
    images: dict[str, str] = {}
    steps = []
    for change in log.changes():
        if change.name.startswith("web-"):
            image = change.object["spec"]["containers"][0]["image"]
            if images.get(change.uid, image) != image:
                steps.append(change.seen)
            images[change.uid] = image
    return steps


# Managers and what they look after


def scale_managers(running: InCluster, count: int) -> None:
    running.nodes.request("PATCH", DEPLOYMENT, {"spec": {"replicas": count}}).ok()
    if count:
        # A configuration that is missed is made again after a minute.
        running.wait_ready(within=180)
    else:
        running.wait(lambda: running.managers() == [], "no manager is left", within=90)


def entries(nodes: RealNodes) -> list[list[Json]]:
    """Both lists of webhooks, without the CA that each trusts."""
    return [
        [{**each, "clientConfig": {**each["clientConfig"], "caBundle": ""}} for each in _entries(nodes, path)]
        for path in (MUTATING, VALIDATING)
    ]


def _entries(nodes: RealNodes, path: str) -> list[Json]:
    answer = nodes.request("GET", path)
    return list(answer.body.get("webhooks") or ()) if answer.status == 200 else []


def conversion(nodes: RealNodes) -> Json:
    """Where CloneSets are converted, without the CA that this trusts."""
    found: Json = nodes.request("GET", DEFINITION).ok()["spec"]["conversion"]
    config = {**found["webhook"]["clientConfig"], "caBundle": ""}
    return {**found, "webhook": {**found["webhook"], "clientConfig": config}}


def bundles(nodes: RealNodes) -> set[str]:
    """What all that calls a webhook trusts."""
    found = [each for path in (MUTATING, VALIDATING) for each in _entries(nodes, path)]
    configs = [each["clientConfig"] for each in found]
    configs.append(nodes.request("GET", DEFINITION).ok()["spec"]["conversion"]["webhook"]["clientConfig"])
    return {config.get("caBundle", "") for config in configs}
