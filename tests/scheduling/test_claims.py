"""What a pod's claims mean for its place."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.storage import StorageClass
from kruise.local.storage_binding.objects import Claim, Volume
from kruise.machinery.codec import convert
from kruise.scheduling.claims import Storage
from kruise.scheduling.placing import Placement, place
from tests.scheduling.builders import make_node, make_pod, where, why


def storage(claim: dict[str, Any] | None, *volumes: dict[str, Any], mode: str = "WaitForFirstConsumer") -> Storage:
    classes = {"fast": StorageClass(metadata=ObjectMeta(name="fast"), provisioner="x/y", volume_binding_mode=mode)}
    claims = {}
    if claim is not None:
        metadata = {"name": "data", "namespace": "default", **claim.get("metadata", {})}
        body = {**claim, "metadata": metadata}
        claims[Key("default", "data")] = convert(body, Claim)
    return Storage(claims, {item["metadata"]["name"]: convert(item, Volume) for item in volumes}, classes)


def with_claim() -> Any:
    return make_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])


def test_claims_that_stop_a_pod() -> None:
    node = make_node("n")
    start = "0/1 nodes are available: "
    assert why(with_claim(), node, claims_of=storage(None).claims_of).startswith(
        start + 'persistentvolumeclaim "data" not found. not found'
    )
    immediate = storage({"spec": {"storageClassName": "fast"}}, mode="Immediate")
    assert why(with_claim(), node, claims_of=immediate.claims_of) == (
        start + "pod has unbound immediate PersistentVolumeClaims. not found"
    )
    going = storage({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})
    assert "is being deleted" in why(with_claim(), node, claims_of=going.claims_of)


def test_a_bound_claim_ties_a_pod_to_its_volume() -> None:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    volume = {"metadata": {"name": "pv"}, "spec": {"nodeAffinity": affinity}}
    bound = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv", "storageClassName": "fast"},
    }
    nodes = [make_node("a"), make_node("b")]
    assert where(with_claim(), *nodes, claims_of=storage(bound, volume).claims_of) == "b"
    assert "1 node(s) didn't match PersistentVolume's node affinity" in why(
        with_claim(), nodes[0], claims_of=storage(bound, volume).claims_of
    )


def test_a_volume_stays_in_its_zone() -> None:
    """Several zones have two underscores between them; a node without any is everywhere."""
    zone = "topology.kubernetes.io/zone"
    volume = {"metadata": {"name": "pv", "labels": {zone: "b__c"}}, "spec": {}}
    bound = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "pv", "storageClassName": "fast"},
    }
    claims_of = storage(bound, volume).claims_of
    nodes = [make_node("a", labels={zone: "a"}), make_node("c", labels={zone: "c"})]
    assert where(with_claim(), *nodes, claims_of=claims_of) == "c"
    assert where(with_claim(), make_node("x"), claims_of=claims_of) == "x"
    assert "1 node(s) had no available volume zone" in why(with_claim(), nodes[0], claims_of=claims_of)


def test_a_waiting_claim_goes_with_its_pod() -> None:
    result = place(
        with_claim(), [make_node("a")], {}, claims_of=storage({"spec": {"storageClassName": "fast"}}).claims_of
    )
    assert result == Placement("a", ("data",))
    chosen = {
        "metadata": {"annotations": {"volume.kubernetes.io/selected-node": "b"}},
        "spec": {"storageClassName": "fast"},
    }
    result = place(with_claim(), [make_node("a"), make_node("b")], {}, claims_of=storage(chosen).claims_of)
    assert result == Placement("b", ("data",))
