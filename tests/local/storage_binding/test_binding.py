"""Claims and volumes on virtual time, with the scheduler where a claim waits for its first consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.native.pod import PODS
from kruise.api.native.storage import BIND_COMPLETED, SELECTED_NODE, STORAGE_CLASSES
from kruise.local import scheduler, storage_binding
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.local.storage_binding.objects import CLAIM_PROTECTION, CLAIMS, PROVISIONED_BY, VOLUMES
from kruise.machinery.clock import run_virtual
from tests.local.workloads import bodies
from tests.local.workloads.world import World

Scenario = Callable[[World], Awaitable[None]]


def play(scenario: Scenario) -> None:
    async def main() -> None:
        world = World(scheduler.specs, storage_binding.specs)
        async with world.running():
            await world.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
            await scenario(world)

    run_virtual(main())


def claim(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }


def volume(name: str, size: str = "1Gi", *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp/x"},
            **spec,
        },
    }


def user(name: str, claim_name: str) -> dict[str, Any]:
    source = {"claimName": claim_name}
    return bodies.pod(name, node="", volumes=[{"name": "data", "persistentVolumeClaim": source}])


def test_a_claim_gets_a_volume_of_its_own() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, claim("data", storageClassName="standard"))
        await asyncio.sleep(1)
        found = await world.get(CLAIMS, "data")
        name = f"pvc-{found.metadata.uid}"
        assert (found.spec.volume_name, found.status.phase) == (name, "Bound")
        assert (found.status.capacity, found.status.access_modes) == ({"storage": "1Gi"}, ("ReadWriteOnce",))
        assert found.metadata.annotations[BIND_COMPLETED] == "yes"
        assert CLAIM_PROTECTION in found.metadata.finalizers
        made = await world.get(VOLUMES, name)
        assert (made.status.phase, made.spec.persistent_volume_reclaim_policy) == ("Bound", "Delete")
        assert made.spec.claim_ref.uid == found.metadata.uid
        assert made.metadata.annotations[PROVISIONED_BY] == "kruise.io/local"
        assert await world.messages() == [("ProvisioningSucceeded", f"Successfully provisioned volume {name}")]

    play(scenario)


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, claim("data"))
        await asyncio.sleep(1)
        found = await world.get(CLAIMS, "data")
        assert (found.spec.storage_class_name, found.status.phase) == ("standard", "Bound")

    play(scenario)


def test_a_volume_goes_with_its_claim() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, claim("data", storageClassName="standard"))
        await asyncio.sleep(1)
        await world.delete(CLAIMS, "data")
        await asyncio.sleep(1)
        assert await world.find(CLAIMS, "data") is None
        assert await world.list(VOLUMES) == ()

    play(scenario)


def test_a_claim_in_use_stays_until_its_last_pod_is_gone() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(1)
        await world.create(CLAIMS, claim("data", storageClassName="standard"))
        await world.create(PODS, user("p", "data"))
        await asyncio.sleep(3)
        assert (await world.get(PODS, "p")).spec.node_name == "n0"
        await world.delete(CLAIMS, "data")
        await asyncio.sleep(3)
        assert (await world.get(CLAIMS, "data")).metadata.deletion_timestamp is not None
        await world.delete(PODS, "p")
        await asyncio.sleep(3)
        assert await world.find(CLAIMS, "data") is None

    play(scenario)


def test_the_smallest_volume_that_fits_is_taken_and_kept_afterwards() -> None:
    async def scenario(world: World) -> None:
        for name, size in (("small", "1Gi"), ("middle", "5Gi"), ("large", "10Gi")):
            await world.create(VOLUMES, volume(name, size, storageClassName="manual"))
        await asyncio.sleep(1)
        assert {item.status.phase for item in await world.list(VOLUMES)} == {"Available"}
        await world.create(CLAIMS, claim("data", "3Gi", storageClassName="manual"))
        await asyncio.sleep(1)
        found = await world.get(CLAIMS, "data")
        assert (found.spec.volume_name, found.status.capacity) == ("middle", {"storage": "5Gi"})
        await world.delete(CLAIMS, "data")
        await asyncio.sleep(1)
        assert (await world.get(VOLUMES, "middle")).status.phase == "Released"

    play(scenario)


def test_a_claim_waits_for_a_volume_that_fits_its_selector() -> None:
    async def scenario(world: World) -> None:
        await world.create(VOLUMES, volume("other", storageClassName="manual"))
        selector = {"matchLabels": {"tier": "gold"}}
        await world.create(CLAIMS, claim("data", storageClassName="manual", selector=selector))
        await asyncio.sleep(1)
        assert (await world.get(CLAIMS, "data")).status.phase == "Pending"
        await world.create(VOLUMES, volume("gold", labels={"tier": "gold"}, storageClassName="manual"))
        await asyncio.sleep(1)
        assert (await world.get(CLAIMS, "data")).spec.volume_name == "gold"
        assert ("ProvisioningFailed", 'storageclass.storage.k8s.io "manual" not found') in await world.messages()

    play(scenario)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"resources": {"requests": {"storage": "9Gi"}}}, "requested PV is too small"),
        ({"storageClassName": "other"}, "storageClassName does not match"),
        ({"accessModes": ["ReadWriteMany"]}, "incompatible accessMode"),
    ],
)
def test_a_volume_that_is_asked_for_by_name_must_fit(spec: dict[str, Any], words: str) -> None:
    async def scenario(world: World) -> None:
        await world.create(VOLUMES, volume("mine", storageClassName="manual"))
        body = claim("data", storageClassName="manual", volumeName="mine")
        body["spec"] |= spec
        await world.create(CLAIMS, body)
        await asyncio.sleep(1)
        assert (await world.get(CLAIMS, "data")).status.phase == "Pending"
        assert ("VolumeMismatch", f'Cannot bind to requested volume "mine": {words}') in await world.messages()

    play(scenario)


def test_a_volume_that_is_asked_for_by_name_is_bound() -> None:
    async def scenario(world: World) -> None:
        await world.create(VOLUMES, volume("mine", storageClassName="manual"))
        await world.create(CLAIMS, claim("data", storageClassName="manual", volumeName="mine"))
        await asyncio.sleep(1)
        assert (await world.get(CLAIMS, "data")).status.phase == "Bound"
        assert (await world.get(VOLUMES, "mine")).status.phase == "Bound"

    play(scenario)


def test_a_claim_that_has_lost_its_volume_says_so() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, claim("data", storageClassName="standard"))
        await asyncio.sleep(1)
        name = (await world.get(CLAIMS, "data")).spec.volume_name
        await world.patch(VOLUMES, name, {"metadata": {"finalizers": None}})
        await world.delete(VOLUMES, name)
        assert await world.find(VOLUMES, name) is None
        await asyncio.sleep(1)
        assert (await world.get(CLAIMS, "data")).status.phase == "Lost"
        words = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
        assert ("ClaimLost", words) in await world.messages()

    play(scenario)


def test_a_claim_that_waits_is_bound_where_its_first_pod_goes() -> None:
    async def scenario(world: World) -> None:
        await world.add_nodes(3)
        body = {**DEFAULT_STORAGE_CLASS, "metadata": {"name": "later"}, "volumeBindingMode": "WaitForFirstConsumer"}
        await world.create(STORAGE_CLASSES, body)
        await world.create(CLAIMS, claim("data", storageClassName="later"))
        await asyncio.sleep(1)
        assert (await world.get(CLAIMS, "data")).status.phase == "Pending"
        words = "waiting for first consumer to be created before binding"
        assert ("WaitForFirstConsumer", words) in await world.messages()
        await world.create(PODS, user("p", "data"))
        await asyncio.sleep(3)
        pod, found = await world.get(PODS, "p"), await world.get(CLAIMS, "data")
        assert pod.spec.node_name
        assert found.status.phase == "Bound"
        assert found.metadata.annotations[SELECTED_NODE] == pod.spec.node_name
        made = await world.get(VOLUMES, found.spec.volume_name)
        (term,) = made.spec.node_affinity.required.node_selector_terms
        assert term.match_expressions[0].values == (pod.spec.node_name,)
        await world.create(PODS, user("q", "data"))
        await asyncio.sleep(3)
        assert (await world.get(PODS, "q")).spec.node_name == pod.spec.node_name

    play(scenario)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, claim("data"))
        await world.create(CLAIMS, claim("stuck", storageClassName="none"))
        await world.create(VOLUMES, volume("free"))
        await asyncio.sleep(60)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before

    play(scenario)


def test_a_volume_of_our_own_grows_with_its_claim() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, claim("data", storageClassName="standard"))
        await asyncio.sleep(1)
        more = {"spec": {"resources": {"requests": {"storage": "3Gi"}}}}
        await world.patch(CLAIMS, "data", more)
        await asyncio.sleep(1)
        found = await world.get(CLAIMS, "data")
        assert found.status.capacity == {"storage": "3Gi"}
        assert (await world.get(VOLUMES, found.spec.volume_name)).spec.capacity == {"storage": "3Gi"}
        assert ("VolumeResizeSuccessful", "Resize volume succeeded") in await world.messages()

    play(scenario)
