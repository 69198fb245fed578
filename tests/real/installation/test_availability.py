"""Managers that are exchanged, under load: on three real nodes, installed by the command.

What is shown here is in docs/install.md, with the figures.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.incluster import InCluster, clone_set
from tests.support.realnodes import RealNodes
from tests.support.watchlog import WatchLog
from tests.support.webhook_load import WebhookLoad

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("installation")]

Json = dict[str, Any]
LEASE_SECONDS = 15.0
DEMO = "/api/v1/namespaces/demo"
CLONE_SETS = "/apis/apps.kruise.io/v1beta1/namespaces/demo/clonesets"


@pytest.fixture(scope="module")
def installed(installable: InCluster) -> Iterator[InCluster]:
    # The host's calls to services pass the first node: managers stay on the other two, one of which may then go.
    installable.nodes.kubectl("cordon", "node-1")
    installable.install(installable.push("first"))
    yield installable
    installable.uninstall()
    installable.nodes.kubectl("uncordon", "node-1")


@pytest.fixture
def running(installed: InCluster) -> Iterator[InCluster]:
    """As it was installed, whatever a test before this one has left."""
    installed.install(installed.image)
    installed.nodes.create_namespace("demo")
    yield installed
    installed.nodes.request("DELETE", DEMO)
    installed.wait(lambda: installed.nodes.request("GET", DEMO).status == 404, "the namespace is gone", within=120)


def ready_pods(nodes: RealNodes, app: str) -> list[Json]:
    found = nodes.request("GET", f"{DEMO}/pods?labelSelector=app%3D{app}").ok()["items"]
    return [pod for pod in found if _condition(pod, "Ready") == "True"]


def _condition(pod: Json, kind: str) -> str:
    return next((each["status"] for each in pod["status"].get("conditions", []) if each["type"] == kind), "")


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


def names(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


def test_an_upgrade_under_load_fails_no_call_and_stalls_no_rollout(running: InCluster) -> None:
    nodes = running.nodes
    nodes.request("POST", CLONE_SETS, clone_set("web", replicas=6)).ok()
    running.wait(lambda: len(ready_pods(nodes, "web")) == 6, "six pods are ready", within=120)
    before = names(running.managers())
    second = running.push("second")
    images = itertools.cycle(["nginx:1.26", "nginx:1.25"])
    with WatchLog(nodes, f"{DEMO}/pods") as log, WebhookLoad(nodes, "demo") as load:
        set_image(nodes, "web", next(images))
        began = time.monotonic()
        with ThreadPoolExecutor(1) as background:
            upgrade = background.submit(running.install, second)
            # Some rollout is always under way, until nobody of the old ones answers any more.
            while not upgrade.done() or before & names(running.managers()):
                running.wait(lambda: is_updated(nodes, "web"), "all pods are updated", within=120)
                set_image(nodes, "web", next(images))
            upgrade.result()
        ended = time.monotonic()
        running.wait(lambda: is_updated(nodes, "web"), "all pods are updated", within=120)
        steps = image_steps(log)
    longest = max(later - earlier for earlier, later in itertools.pairwise([began, *steps]))
    print(
        f"{load}; all managers were exchanged after {ended - began:.1f} s; {len(steps)} pods updated meanwhile, "
        f"longest time between two of them {longest:.1f} s"
    )
    assert load.requests > 100
    assert load.failures == []
    assert longest < LEASE_SECONDS
