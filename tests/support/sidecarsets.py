"""SidecarSets and pods for tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import codec
from kruise.machinery.patches import merge
from kruise.sidecars.sidecarset.building import injected
from kruise.sidecars.sidecarset.content import Content, content_of
from kruise.sidecars.sidecarset.defaults import defaulted
from tests.support.world import World

Json = dict[str, Any]
NOW = datetime(2030, 1, 1, tzinfo=UTC)
SIDE = {"name": "side", "image": "nginx:1.25"}


def sidecar_set(name: str = "logs", *, version: str = "v1beta1", metadata: Json | None = None, **spec: Any) -> Json:
    """A small sound SidecarSet for pods with `app: web`."""
    base = {"selector": {"matchLabels": {"app": "web"}}, "containers": [dict(SIDE)]}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "SidecarSet",
        "metadata": {"name": name, **(metadata or {})},
        "spec": merge.apply(base, spec),
    }


def stored(manifest: Json, *, latest_revision: str = "") -> SidecarSet:
    """As the store has it after admission."""
    whole = defaulted(manifest, version="v1beta1", gates={})
    metadata = {**whole["metadata"], "uid": f"uid-{manifest['metadata']['name']}", "resourceVersion": "7"}
    status = {"latestRevision": latest_revision} if latest_revision else {}
    return codec.decode(json.dumps({**whole, "metadata": metadata, "status": status}).encode(), SidecarSet)


def content(name: str = "logs", **spec: Any) -> Content:
    return content_of(stored(sidecar_set(name, **spec)))


def pod(name: str = "web-1", *, labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name, "labels": {"app": "web", **(labels or {})}}
    if annotations:
        metadata["annotations"] = annotations
    base = {"containers": [{"name": "main", "image": "nginx:1.24"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": merge.apply(base, spec)}


def with_sidecars(submitted: Json, *contents: Content, sorts_by_name: bool = False) -> Json:
    return injected(submitted, contents, NOW, sorts_by_name=sorts_by_name)


def running(whole: Json, *, ready: bool = True, images: Json | None = None, node: str = "n") -> Json:
    """The pod as a node reports it; `images` are those that other images run than the spec asks for."""
    ran = {item["name"]: (images or {}).get(item["name"], item["image"]) for item in whole["spec"]["containers"]}
    statuses = [
        {"name": name, "image": image, "imageID": f"id-{image}", "containerID": f"c-{name}", "ready": ready}
        for name, image in ran.items()
    ]
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    namespace, name = whole["metadata"].get("namespace", "default"), whole["metadata"]["name"]
    metadata = {**whole["metadata"], "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    return {
        **whole,
        "metadata": {**metadata, "resourceVersion": "9", "creationTimestamp": "2029-12-31T00:00:00Z"},
        "spec": {**whole["spec"], "nodeName": node},
        "status": {"phase": "Running", "conditions": conditions, "containerStatuses": statuses},
    }


def read(whole: Json) -> Pod:
    return codec.decode(json.dumps(whole).encode(), Pod)


def made(manifest: Json, name: str = "web-1", labels: Json | None = None, **state: Any) -> Json:
    """A running pod with the sidecars of a SidecarSet."""
    return running(with_sidecars(pod(name, labels=labels), content_of(stored(manifest))), **state)


def names(containers: list[Json]) -> list[str]:
    return [str(container["name"]) for container in containers]


def container(whole: Json, name: str, kind: str = "containers") -> Json:
    return next(item for item in whole["spec"][kind] if item["name"] == name)


def image(whole: Json, name: str = "side") -> str:
    return str(container(whole, name)["image"])


# In a world


async def status(world: World, name: str = "logs") -> Json:
    found: Json = (await world.get(SIDECAR_SETS, name)).get("status", {})
    return found


async def until_counts(world: World, *counts: int, name: str = "logs", within: float = 120.0) -> None:
    """Matched, updated, ready and updated-ready pods, and nothing is left to observe."""

    async def check() -> None:
        whole = await world.get(SIDECAR_SETS, name)
        told = whole.get("status", {})
        found = tuple(told.get(key, 0) for key in ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods"))
        assert (found, told.get("observedGeneration")) == (counts, whole["metadata"]["generation"])

    await world.until(check, within=within)


async def set_image(world: World, new: str, name: str = "logs", sidecar: str = "side") -> None:
    whole = await world.get(SIDECAR_SETS, name)
    changed = [{**item, "image": new} if item["name"] == sidecar else item for item in whole["spec"]["containers"]]
    await world.patch(SIDECAR_SETS, name, {"spec": {"containers": changed}})


async def images(world: World, sidecar: str = "side") -> dict[str, str]:
    return {item["metadata"]["name"]: image(item, sidecar) for item in await world.list(PODS)}
