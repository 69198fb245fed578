"""Managers that are exchanged, lose their node, are gone, and come back: on three real nodes, installed by the command.

What is shown here is in docs/install.md, with the figures.
"""

from __future__ import annotations

import base64
import itertools
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.admission import certificates
from tests.support.incluster import DEPLOYMENT, NAMESPACE, InCluster, clone_set
from tests.support.realnodes import RealNodes
from tests.support.watchlog import WatchLog
from tests.support.webhook_load import WebhookLoad

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("installation")]

Json = dict[str, Any]
LEASE_SECONDS = 15.0
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/kruise-mutating-webhook-configuration"
VALIDATING = f"{CONFIGURATIONS}/validatingwebhookconfigurations/kruise-validating-webhook-configuration"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clonesets.apps.kruise.io"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/kruise-webhook-certs"
DEMO = "/api/v1/namespaces/demo"
CLONE_SETS = "/apis/apps.kruise.io/v1beta1/namespaces/demo/clonesets"


@pytest.fixture
def running(installable: InCluster) -> Iterator[InCluster]:
    # The host's calls to services pass the first node: managers stay on the other two, one of which may then go.
    nodes = installable.nodes
    nodes.kubectl("cordon", "node-1")
    image = installable.push("first")
    installable.install(image)
    nodes.create_namespace("demo")
    yield installable
    nodes.request("DELETE", DEMO)
    installable.uninstall()
    nodes.kubectl("uncordon", "node-1")
    installable.wait(lambda: nodes.request("GET", DEMO).status == 404, "the namespace is gone", within=120)


def ready_pods(nodes: RealNodes, app: str) -> list[Json]:
    found = nodes.request("GET", f"{DEMO}/pods?labelSelector=app%3D{app}").ok()["items"]
    return [pod for pod in found if _condition(pod, "Ready") == "True"]


def _condition(pod: Json, kind: str) -> str:
    return next((each["status"] for each in pod["status"].get("conditions", []) if each["type"] == kind), "")


def set_image(nodes: RealNodes, name: str, image: str) -> None:
    template = clone_set(name, image=image)["spec"]["template"]
    nodes.request("PATCH", f"{CLONE_SETS}/{name}", {"spec": {"template": template}}).ok()


def is_updated(nodes: RealNodes, name: str) -> bool:
    live = nodes.request("GET", f"{CLONE_SETS}/{name}").ok()
    status, count = live.get("status", {}), live["spec"]["replicas"]
    return status.get("observedGeneration") == live["metadata"]["generation"] and (
        status.get("updatedReadyReplicas") == count
    )


def test_an_upgrade_under_load_fails_no_call_and_stalls_no_rollout(running: InCluster) -> None:
    nodes = running.nodes
    nodes.request("POST", CLONE_SETS, clone_set("web", replicas=10)).ok()
    running.wait(lambda: len(ready_pods(nodes, "web")) == 10, "ten pods are ready", within=120)
    before = {pod["metadata"]["name"] for pod in running.managers()}
    second = running.push("second")
    with WatchLog(nodes, f"{DEMO}/pods") as log, WebhookLoad(nodes, "demo") as load:
        set_image(nodes, "web", "nginx:1.26")
        began = time.monotonic()
        running.install(second)
        ended = time.monotonic()
        set_image(nodes, "web", "nginx:mainline")
        running.wait(lambda: is_updated(nodes, "web"), "all pods are updated", within=180)
        # Old managers may still be answering.
        running.wait(lambda: not before & {pod["metadata"]["name"] for pod in running.managers()}, "they are gone")
        steps = image_steps(log)
    longest = max(later - earlier for earlier, later in itertools.pairwise([began, *steps]))
    print(
        f"{load.requests} requests, {len(load.failures)} failed, slowest {load.slowest:.2f} s; upgrade took "
        f"{ended - began:.1f} s; longest time between two pods of the rollout {longest:.1f} s"
    )
    assert load.requests > 100
    assert load.failures == []
    assert longest < LEASE_SECONDS


def image_steps(log: WatchLog) -> list[float]:
    """When pods of the CloneSet were given another image, one after the other."""
    images: dict[str, str] = {}
    steps = []
    for change in log.changes():
        if change.name.startswith("web-"):
            image = change.object["spec"]["containers"][0]["image"]
            if images.get(change.uid, image) != image:
                steps.append(change.seen)
            images[change.uid] = image
    return steps


def test_managers_that_are_deleted_at_once_are_missed_by_nobody(running: InCluster) -> None:
    nodes = running.nodes
    with WebhookLoad(nodes, "demo") as load:
        before = {pod["metadata"]["name"] for pod in running.managers()}
        for name in before:
            nodes.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}").ok()
        running.wait(lambda: not before & {pod["metadata"]["name"] for pod in running.managers()}, "they are gone")
        running.wait_ready()
    print(f"{load.requests} requests, {len(load.failures)} failed, slowest {load.slowest:.2f} s")
    assert load.failures == []


def scale_managers(running: InCluster, count: int) -> None:
    running.nodes.request("PATCH", DEPLOYMENT, {"spec": {"replicas": count}}).ok()
    if count:
        running.wait_ready()
    else:
        running.wait(lambda: running.managers() == [], "no manager is left")


def pod(name: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}


def test_who_comes_back_repairs_everything(running: InCluster) -> None:  # MGR-81, PW-50, PW-52
    nodes = running.nodes

    def entries(path: str) -> int:
        return len(nodes.request("GET", path).ok().get("webhooks", []))

    def bundles() -> set[str]:
        found = [each for path in (MUTATING, VALIDATING) for each in nodes.request("GET", path).ok()["webhooks"]]
        configs = [each["clientConfig"] for each in found]
        configs.append(nodes.request("GET", DEFINITION).ok()["spec"]["conversion"]["webhook"]["clientConfig"])
        return {config.get("caBundle", "") for config in configs}

    installed = [entries(path) for path in (MUTATING, VALIDATING)]
    first = nodes.request("GET", SECRET).ok()["data"]

    # The Secret, deleted by hand while nobody is there.
    scale_managers(running, 0)
    nodes.request("DELETE", SECRET).ok()
    scale_managers(running, 2)
    second = nodes.request("GET", SECRET).ok()["data"]
    assert second["ca-cert.pem"] != first["ca-cert.pem"]
    assert [entries(path) for path in (MUTATING, VALIDATING)] == installed

    # The entries of a configuration and the bundle of a definition, emptied.
    scale_managers(running, 0)
    nodes.request("PATCH", MUTATING, {"webhooks": []}).ok()
    config = {"webhook": {"clientConfig": {"caBundle": None}}}
    nodes.request("PATCH", DEFINITION, {"spec": {"conversion": config}}).ok()
    scale_managers(running, 2)
    assert [entries(path) for path in (MUTATING, VALIDATING)] == installed
    assert "" not in bundles()

    # A CA whose time is over.
    scale_managers(running, 0)
    past = datetime.now(UTC) - timedelta(days=3700)
    service = f"kruise-webhook-service.{NAMESPACE}.svc"
    old = {name: base64.b64encode(text).decode() for name, text in certificates.issue(service, past).to_data().items()}
    nodes.request("PATCH", SECRET, {"data": old}).ok()
    scale_managers(running, 2)
    third = nodes.request("GET", SECRET).ok()["data"]
    assert third["ca-cert.pem"] not in (old["ca-cert.pem"], second["ca-cert.pem"])
    assert len(bundles()) == 1

    # While all is at work: a configuration that is taken away is asked for, and filled in when it is back.
    nodes.request("DELETE", MUTATING).ok()
    running.wait(lambda: "waiting for MutatingWebhookConfiguration" in logs(running), "they say what is missing")
    running.install(running.push("first"))
    running.wait(lambda: entries(MUTATING) == installed[0], "the entries are back")
    nodes.request("DELETE", SECRET).ok()
    running.wait(lambda: nodes.request("GET", SECRET).status == 200, "the Secret is back")
    running.wait_ready()
    nodes.request("POST", f"{DEMO}/pods", pod("alive")).ok()


def logs(running: InCluster) -> str:
    return "".join(running.log(each["metadata"]["name"]) for each in running.managers())
