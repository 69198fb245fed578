"""Claims in the world get volumes as in a cluster, and tie their pods to the nodes that these reach."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kruise.machinery.codec import convert, evolve
from kruise.model.nodes import Nodes
from kruise.model.room import NodeRoom
from kruise.model.times import Times
from kruise.model.volumes import Volumes
from kruise.model.world import World
from tests.foresight.scenes import NOW
from tests.scheduling.builders import make_node, make_pod

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
ZONES = tuple(make_node(f"node-{zone}", labels={ZONE: zone}) for zone in "abc")


def volume(name: str, zone: str, *, size: str = "1Gi", storage_class: str = "disks", claim: Json | None = None) -> Any:
    here = {"key": ZONE, "operator": "In", "values": [zone]}
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        "claimRef": claim,
    }
    phase = "Bound" if claim else "Available"
    return convert({"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}, PersistentVolume)


def claim(name: str, *, storage_class: str | None = "disks", bound_to: str = "", size: str = "1Gi") -> Any:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
        "storageClassName": storage_class,
        "volumeName": bound_to,
    }
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound_to else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations}
    body = {"metadata": metadata, "spec": spec, "status": {"phase": "Bound" if bound_to else "Pending"}}
    return convert(body, PersistentVolumeClaim)


def storage_class(name: str, provisioner: str, mode: str, *, is_default: bool = False) -> StorageClass:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if is_default else {}
    metadata = {"name": name, "annotations": annotations}
    return convert({"metadata": metadata, "provisioner": provisioner, "volumeBindingMode": mode}, StorageClass)


LOCAL = storage_class("disks", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
CLOUD = storage_class("cloud", "example.com/disks", "Immediate", is_default=True)
LATE = storage_class("late", "example.com/disks", "WaitForFirstConsumer")


class Site:
    def __init__(self, *volumes: Any, are_known: bool = True) -> None:
        self.world = world = World(NOW)
        for resource, objects in (
            (NODES, ZONES),
            (PERSISTENT_VOLUMES, volumes),
            (STORAGE_CLASSES, (LOCAL, CLOUD, LATE)),
        ):
            world.add(resource, objects)  # type: ignore[arg-type]
        world.add(PODS)
        world.add(PERSISTENT_VOLUME_CLAIMS)
        known = Volumes(world, are_known=are_known)
        room = NodeRoom(ZONES, claims_of=known.claims_of)
        self.nodes = Nodes(world, Times(), failure_of=lambda pod: "", reports=False, room=room, volumes=known)
        self.nodes.begin()

    def mount(self, name: str, *claims: Any, names: tuple[str, ...] = ()) -> None:
        self.world.add(PERSISTENT_VOLUME_CLAIMS, claims)
        mounted = [one.metadata.name for one in claims] + list(names)
        volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in mounted]
        self.world.add(PODS, (make_pod(name, volumes=volumes),))

    def place(self) -> dict[str, str]:
        """The nodes of the pods, or why they have none."""
        self.world.settle()
        while (moment := self.world.next_moment) is not None:
            self.world.now = moment
            self.world.settle()
        return {
            pod.metadata.name: pod.spec.node_name
            or next((item.message for item in pod.status.conditions if item.type == "PodScheduled"), "")
            for pod in self.world.store(PODS).list()
        }

    def claim(self, name: str) -> PersistentVolumeClaim:
        found = self.world.store(PERSISTENT_VOLUME_CLAIMS).get("default", name)
        assert found is not None
        return found


def test_a_bound_claim_ties_its_pod_to_the_zone() -> None:
    site = Site(volume("pv-b", "b", claim={"namespace": "default", "name": "data", "uid": "uid-data"}))
    site.mount("one", claim("data", bound_to="pv-b"))
    site.mount("gone", claim("lost", bound_to="pv-x"))
    found = site.place()
    assert found["one"] == "node-b"
    assert "3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)" in found["gone"]


def test_volumes_that_are_there_go_to_the_first_pods_that_want_them() -> None:
    site = Site(volume("pv-a", "a"), volume("pv-c", "c", size="2Gi"))
    for name, size in (("small", "1Gi"), ("large", "2Gi"), ("late", "1Gi")):
        site.mount(name, claim(f"data-{name}", size=size))
    found = site.place()
    assert (found["small"], found["large"]) == ("node-a", "node-c")
    assert "3 node(s) didn't find available persistent volumes to bind" in found["late"]
    assert site.claim("data-small").spec.volume_name == "pv-a"
    assert site.claim("data-late").status.phase == "Pending"
    assert site.claim("data-large").status.capacity == {"storage": "2Gi"}


@pytest.mark.parametrize("name", ["cloud", "late", None])
def test_a_provisioner_makes_what_is_missing(name: str | None) -> None:
    site = Site()
    site.mount("one", claim("data", storage_class=name))
    assert site.place()["one"].startswith("node-")
    made = site.claim("data")
    assert (made.status.phase, made.spec.storage_class_name) == ("Bound", name or "cloud")
    assert site.world.store(PERSISTENT_VOLUMES).get("", made.spec.volume_name) is not None


def test_claims_that_nobody_serves_hold_their_pods() -> None:
    site = Site()
    site.mount("one", claim("data", storage_class="nobody"))
    assert "pod has unbound immediate PersistentVolumeClaims" in site.place()["one"]


def test_a_pod_goes_on_when_its_claim_is_bound() -> None:
    site = Site()
    site.mount("one", claim("data", storage_class="nobody"))
    site.place()
    site.world.put(PERSISTENT_VOLUMES, volume("pv-c", "c"))
    site.world.put(PERSISTENT_VOLUME_CLAIMS, evolve(claim("data", bound_to="pv-c"), api_version="v1"))
    assert site.place()["one"] == "node-c"


def test_what_was_not_read_ties_nobody() -> None:
    site = Site(are_known=False)
    site.mount("one", claim("data", bound_to="pv-x"), claim("other", storage_class="nobody"))
    assert site.place()["one"].startswith("node-")
    assert site.claim("other").status.phase == "Bound"
    # A claim that is still to come is told of in a note.
    site = Site()
    site.mount("two", names=("to-come",))
    assert site.place()["two"].startswith("node-")
