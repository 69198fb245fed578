"""The claims of a StatefulSet's pods: made, kept, owned, grown."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from kruise.api.native.storage import (
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    PersistentVolumeClaim,
    StorageClass,
)
from kruise.machinery import codec
from kruise.model.world import Json
from tests.workloads.statefulset.modelled import CLAIM, IN_PLACE, ModelledStatefulSet, document, writes

GROWS = {"StatefulSetAutoResizePVCGate": True}


def _policy(deleted: str = "Retain", scaled: str = "Retain") -> dict[str, str]:
    return {"whenDeleted": deleted, "whenScaled": scaled}


def _settled(given: Json, gates: dict[str, bool] | None = None) -> ModelledStatefulSet:
    model = ModelledStatefulSet(given, gates=gates)
    model.settle()
    return model


def _with_claims(replicas: int = 2, policy: Mapping[str, str] | None = None, **spec: Any) -> Json:
    if policy is not None:
        spec["persistentVolumeClaimRetentionPolicy"] = policy
    return document(replicas, volumeClaimTemplates=[CLAIM], **spec)


def _owners(model: ModelledStatefulSet) -> dict[str, list[str]]:
    return {claim.metadata.name: sorted(ref.kind for ref in claim.metadata.owner_references) for claim in model.claims}


def _scale(model: ModelledStatefulSet, replicas: int) -> None:
    model.edit_spec(lambda spec: spec.update(replicas=replicas))


def test_each_pod_has_its_claim_and_comes_back_to_it() -> None:  # ST-38, ST-81, ST-132
    model = _settled(_with_claims())
    assert [claim.metadata.name for claim in model.claims] == ["data-web-0", "data-web-1"]
    assert model.claims[0].metadata.labels == {"app": "web"}
    pod = model.pod("web-1")
    assert pod is not None
    assert [volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.name == "data"] == [  # type: ignore[union-attr]
        "data-web-1"
    ]
    before = {claim.metadata.name: claim.metadata.uid for claim in model.claims}
    _scale(model, 0)
    model.settle()
    assert model.names == []
    _scale(model, 2)
    model.settle()
    assert {claim.metadata.name: claim.metadata.uid for claim in model.claims} == before


def test_a_claim_is_made_before_its_pod() -> None:  # ST-81
    plan = ModelledStatefulSet(_with_claims(1)).reconcile()
    assert [action.target.name for action in plan.actions() if action.verb.value == "create"][-2:] == [
        "data-web-0",
        "web-0",
    ]


@pytest.mark.parametrize(
    ("deleted", "scaled", "stays", "goes"),
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", ["StatefulSet"], ["StatefulSet"]),
        ("Retain", "Delete", [], ["Pod"]),
        ("Delete", "Delete", ["StatefulSet"], ["Pod"]),
    ],
)
def test_who_owns_the_claims(deleted: str, scaled: str, stays: list[str], goes: list[str]) -> None:  # ST-82, ST-143
    model = _settled(_with_claims(2, _policy(deleted, scaled)))
    assert _owners(model) == {"data-web-0": stays, "data-web-1": stays}
    _scale(model, 1)
    assert writes(model.reconcile()) == ["delete web-1"]
    assert _owners(model) == {"data-web-0": stays, "data-web-1": goes}


def test_references_are_plain() -> None:  # ST-82
    model = _settled(_with_claims(1, _policy("Delete")))
    [reference] = model.claims[0].metadata.owner_references
    assert (reference.api_version, reference.kind) == ("apps.kruise.io/v1beta1", "StatefulSet")
    assert not reference.controller
    assert not reference.block_owner_deletion


def test_owners_of_others_are_kept() -> None:  # ST-82
    model = _settled(_with_claims(1))
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    model.change(
        PERSISTENT_VOLUME_CLAIMS, "data-web-0", lambda made: made["metadata"].update(ownerReferences=[foreign])
    )
    model.edit_spec(lambda spec: spec.update(persistentVolumeClaimRetentionPolicy=_policy("Delete")))
    model.settle(2)
    assert _owners(model) == {"data-web-0": ["ConfigMap", "StatefulSet"]}
    model.edit_spec(lambda spec: spec.update(persistentVolumeClaimRetentionPolicy=_policy()))  # ST-89
    model.settle(2)
    assert _owners(model) == {"data-web-0": ["ConfigMap"]}


def test_without_the_gate_nobody_owns_claims() -> None:  # ST-82
    model = _settled(_with_claims(1, _policy("Delete", "Delete")), {"StatefulSetAutoDeletePVC": False})
    assert _owners(model) == {"data-web-0": []}


def test_only_claims_of_ordinals_that_go_are_deleted() -> None:  # ST-83, ST-124
    model = _settled(_with_claims(3, _policy(scaled="Delete"), reserveOrdinals=[0, "2-5"]))
    assert model.names == ["web-1", "web-6", "web-7"]
    _scale(model, 1)
    model.settle()
    assert [claim.metadata.name for claim in model.claims] == ["data-web-1"]


def test_a_pod_waits_until_the_claim_of_its_predecessor_is_gone() -> None:  # ST-88
    model = _settled(_with_claims(1, _policy(scaled="Delete")))
    earlier = {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "earlier"}
    metadata = {"name": "data-web-1", "namespace": "demo", "uid": "old", "ownerReferences": [earlier]}
    claim = codec.convert({"metadata": metadata, "spec": CLAIM["spec"]}, PersistentVolumeClaim)
    model.world.add(PERSISTENT_VOLUME_CLAIMS, [claim])
    _scale(model, 2)
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web") == ["claim-leaving"]
    model.world.remove(PERSISTENT_VOLUME_CLAIMS, claim)
    assert model.settle() == ["create web-1"]


def test_a_pod_waits_until_a_terminating_claim_is_gone() -> None:  # ST-81
    model = ModelledStatefulSet(_with_claims(1))
    metadata = {"name": "data-web-0", "namespace": "demo", "uid": "old", "deletionTimestamp": "2030-01-01T12:00:00Z"}
    claim = codec.convert({"metadata": metadata, "spec": CLAIM["spec"]}, PersistentVolumeClaim)
    model.world.add(PERSISTENT_VOLUME_CLAIMS, [claim])
    plan = model.reconcile()
    assert writes(plan) == []
    assert model.causes(plan, "web") == ["claim-leaving"]


def test_claims_that_are_kept_again_lose_the_owner_that_would_take_them_along() -> None:  # ST-89
    model = _settled(_with_claims(2, _policy(scaled="Delete")))
    _scale(model, 1)
    model.reconcile()
    assert _owners(model)["data-web-1"] == ["Pod"]
    model.edit_spec(lambda spec: spec.update(replicas=2, persistentVolumeClaimRetentionPolicy=_policy()))
    model.reconcile()
    assert _owners(model)["data-web-1"] == []
    model.settle()
    assert [claim.metadata.name for claim in model.claims] == ["data-web-0", "data-web-1"]


def test_a_claim_that_vanished_under_a_pending_pod_is_made_again() -> None:  # ST-84
    model = ModelledStatefulSet(_with_claims(1))
    model.reconcile()
    [made] = model.claims
    model.world.remove(PERSISTENT_VOLUME_CLAIMS, made)
    pod = model.pod("web-0")
    assert pod is not None
    assert pod.status.phase == "Pending"
    model.reconcile()
    assert [claim.metadata.name for claim in model.claims] == ["data-web-0"]


def test_a_new_claim_template_blocks_nothing() -> None:  # ST-126, ST-130
    model = _settled(_with_claims(2))
    more = copy.deepcopy(dict(CLAIM))
    more["metadata"] = {"name": "logs"}
    model.edit_spec(lambda spec: spec.update(volumeClaimTemplates=[CLAIM, more], replicas=3))
    assert model.settle() == ["create web-2"]
    assert [claim.metadata.name for claim in model.claims] == [
        "data-web-0",
        "data-web-1",
        "data-web-2",
        "logs-web-2",
    ]
    model.set_image("nginx:2")
    model.settle()
    assert "logs-web-0" in {claim.metadata.name for claim in model.claims}
    assert set(model.images.values()) == {"nginx:2"}


# Growth


def _growing(size: str = "1Gi", **spec: Any) -> ModelledStatefulSet:
    given = _with_claims(3, parallel=True, volumeClaimUpdateStrategy={"type": "OnPodRollingUpdate"}, **spec)
    model = ModelledStatefulSet(given, gates=GROWS)
    classes = [{"metadata": {"name": "manual"}, "allowVolumeExpansion": True}, {"metadata": {"name": "fixed"}}]
    model.world.add(STORAGE_CLASSES, [codec.convert(item, StorageClass) for item in classes])
    model.settle()
    for name in ("data-web-0", "data-web-1", "data-web-2"):
        _capacity(model, name, size)
    model.settle(3)
    return model


def _capacity(model: ModelledStatefulSet, name: str, size: str, *conditions: Json) -> None:
    status = {"phase": "Bound", "capacity": {"storage": size}, "conditions": list(conditions)}
    model.change(PERSISTENT_VOLUME_CLAIMS, name, lambda made: made.update(status=status))


def _template(model: ModelledStatefulSet, size: str, **spec: Any) -> None:
    wanted = copy.deepcopy(dict(CLAIM))
    wanted["spec"] = {**wanted["spec"], "resources": {"requests": {"storage": size}}, **spec}
    model.edit_spec(lambda given: given.update(volumeClaimTemplates=[wanted]))


def _sizes(model: ModelledStatefulSet) -> list[str]:
    return [claim.spec.resources.requests["storage"] for claim in model.claims]


def test_claims_grow_one_after_the_other_and_pods_stay() -> None:  # ST-70, ST-91, ST-94, ST-96
    model = _growing()
    _template(model, "2Gi")
    assert model.settle(3) == []
    assert _sizes(model) == ["1Gi", "1Gi", "2Gi"]
    assert model.claims[2].metadata.annotations["apps.kruise.io/owned-by-asts"] == "web"
    plan = model.reconcile()
    assert model.causes(plan, "web-2") == ["claim-growing"]
    assert model.causes(plan, "web-1") == ["max-unavailable"]
    _capacity(model, "data-web-2", "2Gi")
    model.settle(2)
    assert _sizes(model) == ["1Gi", "2Gi", "2Gi"]
    status = model.statefulset.status.volume_claims[0]  # ST-95
    assert (status.compatible_replicas, status.compatible_ready_replicas) == (2, 1)


def test_a_volume_that_only_a_mount_can_finish_lets_its_pod_go_on() -> None:  # ST-93
    model = _growing(rolling={"maxUnavailable": 1, "partition": 2})
    _template(model, "2Gi")
    model.set_image("nginx:2")
    assert model.settle(2) == []
    _capacity(model, "data-web-2", "1Gi", {"type": "FileSystemResizePending", "status": "True"})
    assert model.settle(3)[:1] == ["delete web-2"]
    assert _sizes(model) == ["1Gi", "1Gi", "2Gi"]  # ST-97


def test_claims_grow_before_updates_in_place_as_well() -> None:  # ST-98
    model = _growing(rolling=IN_PLACE)
    _template(model, "2Gi")
    model.set_image("nginx:2")
    assert model.settle(2) == []
    assert (_sizes(model)[2], model.images["web-2"]) == ("2Gi", "nginx:1")
    _capacity(model, "data-web-2", "2Gi")
    model.settle(5)
    assert model.images["web-2"] == "nginx:2"


def test_nothing_shrinks_and_on_delete_grows_nothing() -> None:  # ST-91, ST-97
    model = _growing()
    _template(model, "512Mi")
    model.settle(3)
    assert _sizes(model) == ["1Gi"] * 3
    assert model.statefulset.status.volume_claims[0].compatible_replicas == 3
    model.edit_spec(lambda spec: spec.update(volumeClaimUpdateStrategy={"type": "OnDelete"}))
    _template(model, "5Gi")
    model.set_image("nginx:2")
    model.settle()
    assert _sizes(model) == ["1Gi"] * 3
    assert len(model.updated) == 3
    assert model.statefulset.status.volume_claims[0].compatible_replicas == 0


@pytest.mark.parametrize(
    ("size", "change"), [("1Gi", {"accessModes": ["ReadWriteMany"]}), ("2Gi", {"storageClassName": "fixed"})]
)
def test_a_claim_that_cannot_follow_is_said(size: str, change: dict[str, Any]) -> None:  # ST-94
    model = _growing()
    _template(model, size, **change)
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    assert model.causes(done.plan, "web-2") == ["claim-differs"]
    assert [note.reason for note in done.conclusion.events] == ["FailedUpdatePVC"]
    assert _sizes(model) == ["1Gi"] * 3


def test_a_class_that_does_not_grow_is_said() -> None:  # ST-94
    model = _growing()
    store = model.world.store(STORAGE_CLASSES)
    found = store.get("", "manual")
    assert found is not None
    model.world.put(STORAGE_CLASSES, codec.evolve(found, allow_volume_expansion=False))
    _template(model, "2Gi")
    plan = model.reconcile()
    assert model.causes(plan, "web-2") == ["claim-differs"]
    assert _sizes(model) == ["1Gi"] * 3
    [remedy] = {cause.remedy for held in plan.held for cause in held.causes if cause.code == "claim-differs"}
    assert remedy.startswith("let the StorageClass allow expansion, or delete the claim")


def test_growth_without_its_gate_is_said() -> None:  # ST-10, ST-91
    given = _with_claims(1, volumeClaimUpdateStrategy={"type": "OnPodRollingUpdate"})
    model = _settled(given)
    assert model.causes(model.reconcile(), "web") == []
    _template(model, "2Gi")
    model.settle(2)
    plan = model.reconcile()
    assert model.causes(plan, "web") == ["gate-off"]
    [waiting] = [item for item in model.statefulset.status.conditions if item.type == "Waiting"]
    assert "claims do not grow: data-web-0: the manager runs without feature gate StatefulSetAutoResizePVCGate" in (
        waiting.message
    )
