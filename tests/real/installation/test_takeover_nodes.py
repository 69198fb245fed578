"""Taking over from OpenKruise on three real nodes, with this tree's image: containers run on, are updated in place
afterwards, and run on when it is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.native.config import CONFIG_MAPS
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import PatchType
from tests.support.incluster import InCluster
from tests.support.openkruise import IMAGES, LATEST, NAMESPACE, STAND_IN
from tests.support.openkruise_census import census, changes, installed
from tests.support.openkruise_filled import filled
from tests.support.openkruise_objects import DEMO, kind
from tests.support.realnodes import RealNodes
from tests.support.realnodes_images import idle_image

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("takeover")]

Json = dict[str, Any]
ZONES = ("a", "b", "a")
WORKLOADS = ("clonesets web", "statefulsets db", "daemonsets agent", "sidecarsets side-injection")
QUIET_SECONDS = 30
"""In which each controller has seen all of its objects, and each daemon its node."""


@pytest.fixture
def kruise() -> Iterator[InCluster]:
    """Nodes as OpenKruise's objects want them, and images of all that runs in them."""
    with RealNodes(nodes=3, audit=True) as nodes:
        nodes.push_image(IMAGES[LATEST], contents=STAND_IN)
        for version in ("1", "2"):
            nodes.registry.push(f"envoy:{version}", idle_image(f"envoy {version}"))
        for node, zone in zip(nodes.nodes, ZONES, strict=True):
            labels = {"topology.kubernetes.io/zone": zone, "disk": "ssd"}
            nodes.request("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}}).ok()
        yield InCluster(nodes)


def test_containers_run_on_there_and_back(kruise: InCluster) -> None:
    async def story() -> None:
        image = await asyncio.to_thread(kruise.push, "taking-over")
        async with filled(kruise.nodes.kubeconfig, nodes=3, sockets="/var/run") as client:
            objects, before = await census(client), await installed(client)
            said = await asyncio.to_thread(kruise.kruise, "install", "--takeover", f"--image={image}")
            assert "taken over; configmap/kruise-takeover" in said
            await asyncio.to_thread(kruise.wait_ready)
            assert len(kruise.daemons()) == 3
            # It ends what was under way.
            await has(kruise, "clonesets", "web", updatedReadyReplicas=5)
            await asyncio.sleep(QUIET_SECONDS)
            assert changes(objects, await census(client)) == {}
            objects = await everything_is_updated_in_place(kruise, client, objects)

            said = await asyncio.to_thread(kruise.kruise, "install", "--takeover", "--undo")
            assert "OpenKruise is back, as it was before" in said
            await asyncio.sleep(QUIET_SECONDS)
            assert changes(before, await installed(client)) == {}
            assert changes(objects, await census(client)) == {}
            with pytest.raises(NotFoundError):
                await client.get(CONFIG_MAPS, "kruise-takeover", NAMESPACE)

    asyncio.run(story())


async def everything_is_updated_in_place(kruise: InCluster, client: Client, before: Json) -> Json:
    """One container of each pod of four workloads is another one; all else is as it was. Returns the census of it."""

    async def change(plural: str, name: str, path: str, value: object) -> None:
        resource = kind(plural, "v1beta1")
        patch = [{"op": "replace", "path": path, "value": value}]
        await client.patch(resource, name, patch, DEMO * resource.namespaced, patch_type=PatchType.JSON)

    image = "/spec/template/spec/containers/0/image"
    await change("clonesets", "web", image, "nginx:mainline")
    await change("statefulsets", "db", "/spec/updateStrategy/rollingUpdate/partition", 0)
    await change("daemonsets", "agent", image, "nginx:mainline")
    await change("sidecarsets", "side-injection", "/spec/containers/1/image", "envoy:2")
    await has(kruise, "clonesets", "web", updatedReadyReplicas=5)
    await has(kruise, "statefulsets", "db", updatedReadyReplicas=4)
    await has(kruise, "daemonsets", "agent", updatedNumberScheduled=2, numberReady=2)
    await has(kruise, "sidecarsets", "side-injection", updatedReadyPods=1)

    after = await census(client)
    changed = changes(before, after)
    moved = {name: one for name, one in changed.items() if name.startswith("pod ")}
    assert sorted(moved) == sorted(
        name for name in before if name.startswith(("pod web-", "pod agent-", "pod db-0", "pod db-1", "pod p1"))
    )
    for name, (was, now) in moved.items():
        assert now["uid"] == was["uid"]
        restarted = {"s-after"} if name == "pod p1" else {"main"}
        assert {each for each in was["containers"] if was["containers"][each] != now["containers"][each]} == restarted
        assert now["restarts"] == {each: count + (each in restarted) for each, count in was["restarts"].items()}
    for name in WORKLOADS:
        was, now = changed[name]
        assert (was["uid"], was["generation"] + 1) == (now["uid"], now["generation"])
    others = set(changed) - set(moved) - set(WORKLOADS)
    revisions = {name.rpartition("-")[0] for name in others}
    assert revisions == {"revision web", "revision agent", "revision side-injection"}
    assert all(changed[name][0] is None for name in others), "they are new, and no older one has changed"
    return after


async def has(kruise: InCluster, plural: str, name: str, **counts: int) -> None:
    """Our manager has seen the object as it is now, and says so of its pods."""
    resource = kind(plural, "v1beta1")
    namespace = f"namespaces/{DEMO}/" if resource.namespaced else ""

    def is_so() -> bool:
        live = kruise.nodes.request("GET", f"/apis/apps.kruise.io/v1beta1/{namespace}{plural}/{name}").ok()
        wanted = counts | {"observedGeneration": live["metadata"]["generation"]}
        return bool(live["status"].items() >= wanted.items())

    await asyncio.to_thread(kruise.wait, is_so, f"{plural}/{name} has {counts}", within=120)
