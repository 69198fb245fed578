"""Whole behaviours of a StatefulSet on a cluster, written once: played on the local cluster and on a real one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.machinery.client.requests import PatchType
from tests.support.world import Json, World

GATE = {"conditionType": "InPlaceUpdateReady"}
IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible"}
CLAIM: Mapping[str, Any] = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def manifest(
    replicas: int = 3,
    *,
    rolling: Mapping[str, Any] | None = None,
    parallel: bool = False,
    version: str = "v1beta1",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """`annotations` are those of the pods."""
    metadata: Json = {"labels": {"app": "web"}}
    if annotations:
        metadata["annotations"] = dict(annotations)
    pod = {"containers": [{"name": "main", "image": "nginx:1.25"}], "readinessGates": [GATE]}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "StatefulSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "serviceName": "svc",
            "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": metadata, "spec": pod},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": dict(rolling or {})},
            **spec,
        },
    }


def claim_template(size: str = "1Gi", storage_class: str = "") -> Json:
    made = copy.deepcopy(dict(CLAIM))
    made["spec"]["resources"]["requests"]["storage"] = size
    if storage_class:
        made["spec"]["storageClassName"] = storage_class
    return made


def with_claims(given: Json, storage_class: str = "") -> Json:
    made = copy.deepcopy(given)
    made["spec"]["volumeClaimTemplates"] = [claim_template(storage_class=storage_class)]
    mount = {"name": "data", "mountPath": "/data"}
    made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [mount]
    return made


class Stateful:
    """A StatefulSet `web` in a world."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def start(self, given: Json) -> list[Json]:
        await self.world.create(given)
        return await self.complete()

    async def status(self) -> Json:
        found: Json = (await self.world.get(STATEFUL_SETS, "web")).get("status", {})
        return found

    async def reaches(self, **status: Any) -> Json:
        async def is_there() -> Json:
            now = await self.status()
            assert {key: now.get(key) for key in status} == status
            return now

        return await self.world.until(is_there, within=300)

    async def complete(self) -> list[Json]:
        """All pods are there, updated and available."""

        async def is_complete() -> list[Json]:
            found = await self.world.get(STATEFUL_SETS, "web")
            wanted, status = found["spec"]["replicas"], found.get("status", {})
            assert status.get("observedGeneration") == found["metadata"]["generation"]
            assert status["updatedReplicas"] == status["availableReplicas"] == status["replicas"] == wanted
            return await self.pods()

        return await self.world.until(is_complete, within=300)

    async def pods(self) -> list[Json]:
        return await self.world.pods("app=web")

    async def names(self) -> list[str]:
        return [pod["metadata"]["name"] for pod in await self.pods()]

    async def uids(self) -> dict[str, str]:
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in await self.pods()}

    async def claims(self) -> list[Json]:
        return await self.world.list(PERSISTENT_VOLUME_CLAIMS)

    async def change(self, spec: Json) -> None:
        await self.world.patch(STATEFUL_SETS, "web", {"spec": spec})

    async def set_image(self, image: str) -> None:
        change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": image}]
        await self.world.patch(STATEFUL_SETS, "web", change, patch_type=PatchType.JSON)

    async def label(self, pod: str, **labels: str | None) -> None:
        await self.world.patch(PODS, pod, {"metadata": {"labels": labels}})


async def a_life_with_storage(world: World) -> None:
    """In a local world, which has no storage class yet."""
    await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
    await a_life(world)


async def a_life(world: World) -> None:
    """Made in order, updated in place, scaled, updated by deletion, deleted with its claims."""
    web = Stateful(world)
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    await web.start(with_claims(manifest(3, rolling=IN_PLACE, persistentVolumeClaimRetentionPolicy=policy)))
    assert await web.names() == ["web-0", "web-1", "web-2"]
    before = await web.uids()
    await web.set_image("nginx:1.26")
    await web.complete()
    assert await web.uids() == before
    await web.change({"replicas": 2})
    await web.complete()

    async def claims_went() -> None:
        assert [claim["metadata"]["name"] for claim in await web.claims()] == ["data-web-0", "data-web-1"]

    await world.until(claims_went, within=60)
    await web.change({"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "ReCreate"}}})
    await web.set_image("nginx:mainline")
    await web.complete()
    after = await web.uids()
    assert not set(after.values()) & set(before.values())
    await world.delete(STATEFUL_SETS, "web")

    async def all_gone() -> None:
        assert await world.list(PODS) == []
        assert await web.claims() == []

    await world.until(all_gone, within=120)


async def in_place_and_back(world: World) -> None:
    """One after the other from the highest on, and back again, without a pod being made anew."""
    web = Stateful(world)
    await web.start(manifest(3, rolling=IN_PLACE))
    before = await web.uids()
    first = (await web.status())["updateRevision"]
    for image in ("nginx:1.26", "nginx:1.25"):
        await web.set_image(image)
        await web.complete()
        assert await web.uids() == before
    status = await web.status()
    assert (status["updateRevision"], status["currentRevision"]) == (first, first)


async def parallel_with_a_partition(world: World) -> None:
    """The highest pod first, and the others when the partition lets them."""
    web = Stateful(world)
    await web.start(manifest(5, parallel=True, rolling={"maxUnavailable": 3, "partition": 4}))
    before = await web.uids()
    await web.set_image("nginx:1.26")
    await web.reaches(updatedReplicas=1, availableReplicas=5)
    after = await web.uids()
    assert {name for name in before if before[name] != after[name]} == {"web-4"}
    await web.change({"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    await web.complete()


async def ordinals_move(world: World) -> None:
    """A reserved ordinal is left, and its pod has a successor at the end."""
    web = Stateful(world)
    await web.start(manifest(3))
    await web.change({"reserveOrdinals": [1]})

    async def moved() -> None:
        assert await web.names() == ["web-0", "web-2", "web-3"]

    await world.until(moved, within=300)
    await web.complete()


async def orphans_are_adopted(world: World) -> None:
    """Pods outlive the set that made them, and belong to the next one of its name."""
    web = Stateful(world)
    await web.start(manifest(2))
    before = await web.uids()
    await world.delete(STATEFUL_SETS, "web", propagation="Orphan")

    async def alone() -> None:
        assert not any(pod["metadata"].get("ownerReferences") for pod in await web.pods())
        assert await world.list(STATEFUL_SETS) == []

    await world.until(alone)
    await world.create(manifest(2))
    await web.complete()
    assert await web.uids() == before


async def a_bad_image_is_repaired(world: World) -> None:
    """With OrderedReady, a pod that never becomes ready does not keep the next template from reaching it."""
    web = Stateful(world)
    await web.start(manifest(2, annotations={"example.com/round": "1"}))
    never = [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "example.com/never"}]
    await web.change({"template": {"spec": {"readinessGates": never}}})
    await web.reaches(updatedReplicas=1, readyReplicas=1)
    await web.change({"template": {"spec": {"readinessGates": [GATE]}}})
    await web.complete()
    assert await web.names() == ["web-0", "web-1"]


async def claims_grow(world: World, storage_class: str = "") -> None:
    """One after the other, before their pods get the new image, and no pod is made anew (ST-94, ST-96, ST-98). It takes
    gate StatefulSetAutoResizePVCGate."""
    web = Stateful(world)
    grows = {"type": "OnPodRollingUpdate"}
    await web.start(with_claims(manifest(2, rolling=IN_PLACE, volumeClaimUpdateStrategy=grows), storage_class))
    before = await web.uids()
    await web.change({"volumeClaimTemplates": [claim_template("2Gi", storage_class)]})
    await web.set_image("nginx:1.26")

    async def grown() -> None:
        assert [claim["status"]["capacity"]["storage"] for claim in await web.claims()] == ["2Gi", "2Gi"]
        [counted] = (await web.status())["volumeClaims"]
        assert (counted["compatibleReplicas"], counted["compatibleReadyReplicas"]) == (2, 2)

    await world.until(grown, within=120)
    await web.complete()
    assert await web.uids() == before


async def a_class_that_does_not_let_claims_grow(world: World, storage_class: str) -> None:
    """It is said, no pod is touched, and as soon as the class allows it all goes on by itself (ST-94)."""
    web = Stateful(world)
    grows = {"type": "OnPodRollingUpdate"}
    await web.start(with_claims(manifest(2, rolling=IN_PLACE, volumeClaimUpdateStrategy=grows), storage_class))
    # Admission refuses the change while it can see that it cannot be; an object from before may still ask for it.
    await world.patch(STORAGE_CLASSES, storage_class, {"allowVolumeExpansion": True})
    await web.change({"updateStrategy": {"rollingUpdate": {"paused": True}}})
    await web.change({"volumeClaimTemplates": [claim_template("2Gi", storage_class)]})
    await world.patch(STORAGE_CLASSES, storage_class, {"allowVolumeExpansion": False})
    await web.change({"updateStrategy": {"rollingUpdate": {"paused": False}}})

    async def is_said() -> None:
        found = {one["type"]: one["message"] for one in (await web.status()).get("conditions", [])}
        assert f"StorageClass {storage_class} does not set allowVolumeExpansion" in found.get("Waiting", "")
        assert await world.events("web", "FailedUpdatePVC")

    await world.until(is_said, within=60)
    await world.patch(STORAGE_CLASSES, storage_class, {"allowVolumeExpansion": True})

    async def grown() -> None:
        assert [claim["status"]["capacity"]["storage"] for claim in await web.claims()] == ["2Gi", "2Gi"]

    await world.until(grown, within=120)
    await web.complete()


STORIES = (in_place_and_back, parallel_with_a_partition, ordinals_move, orphans_are_adopted, a_bad_image_is_repaired)
