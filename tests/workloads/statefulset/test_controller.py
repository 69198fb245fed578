"""What makes a StatefulSet be looked at, and what a pass reads."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, PersistentVolumeClaim, StorageClass
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.manager.options import Options
from kruise.workloads.shared.claims import ClaimTemplate
from kruise.workloads.statefulset.controller import controllers
from kruise.workloads.statefulset.volumes import is_compatible
from tests.workloads.statefulset.modelled import CLAIM, IN_PLACE, ModelledStatefulSet, document, template, writes

MINE = [Key("demo", "web")]


def _keys(model: ModelledStatefulSet, resource: Any, obj: Any, *, gone: bool = False) -> list[Key]:
    [source] = [one for one in model.loop.controllers[0].spec.all_sources if one.resource == resource]
    return list(dict.fromkeys(source.keys(obj, None if gone else obj, model.world)))


def _pod(name: str, labels: dict[str, str] | None = None) -> Pod:
    return codec.convert({"metadata": {"name": name, "namespace": "demo", "uid": "x", "labels": labels or {}}}, Pod)


def test_its_pods_and_its_claims_are_watched() -> None:  # ST-46, ST-84
    model = ModelledStatefulSet(document(1, volumeClaimTemplates=[CLAIM]))
    model.settle()
    assert _keys(model, PODS, model.pods[0]) == MINE
    assert _keys(model, PERSISTENT_VOLUME_CLAIMS, model.claims[0]) == MINE
    assert _keys(model, PERSISTENT_VOLUME_CLAIMS, model.claims[0], gone=True) == MINE


@pytest.mark.parametrize(
    ("name", "is_watched"),
    [("data-web-0", True), ("data-web-12", True), ("data-web", False), ("data-web-x", False), ("logs-web-0", False)],
)
def test_claims_of_others_are_none_of_its_business(name: str, is_watched: bool) -> None:  # ST-46
    model = ModelledStatefulSet(document(1, volumeClaimTemplates=[CLAIM]))
    claim = codec.convert({"metadata": {"name": name, "namespace": "demo"}}, PersistentVolumeClaim)
    assert _keys(model, PERSISTENT_VOLUME_CLAIMS, claim) == (MINE if is_watched else [])


def test_pods_of_nobody_and_pods_in_its_way_are_watched() -> None:  # ST-49, ST-50
    model = ModelledStatefulSet(document(1))
    assert _keys(model, PODS, _pod("anything", {"app": "web"})) == MINE
    assert _keys(model, PODS, _pod("web-0")) == MINE
    assert _keys(model, PODS, _pod("web-0"), gone=True) == MINE
    assert _keys(model, PODS, _pod("web-x")) == []
    assert _keys(model, PODS, _pod("webb-0")) == []


def test_a_class_that_lets_claims_grow_makes_their_sets_try_again() -> None:  # ST-94
    model = ModelledStatefulSet(document(1, volumeClaimTemplates=[CLAIM]), gates={"StatefulSetAutoResizePVCGate": True})
    model.settle()
    [source] = [one for one in model.loop.controllers[0].spec.all_sources if one.resource == STORAGE_CLASSES]

    def keys_of(before: bool | None, after: bool | None, name: str = "manual") -> list[Key]:
        was, now = (
            None if allows is None else StorageClass(metadata=ObjectMeta(name=name), allow_volume_expansion=allows)
            for allows in (before, after)
        )
        return list(source.keys(was, now, model.world))

    assert keys_of(False, True) == keys_of(None, True) == keys_of(True, None) == MINE
    assert keys_of(False, False) == keys_of(None, False) == keys_of(False, True, "another") == []


def test_a_set_that_is_gone_is_not_looked_at() -> None:  # ST-48
    model = ModelledStatefulSet(document(1))
    model.world.remove(STATEFUL_SETS, model.statefulset)
    assert model.snapshot() is None


def test_a_selector_that_takes_every_pod_is_not_followed() -> None:
    model = ModelledStatefulSet(document(1))
    model.edit_spec(lambda spec: spec.update(selector={}))
    assert model.snapshot() is None


def test_the_flag_sets_the_number_of_workers() -> None:  # ST-46
    [usual] = controllers(Options())
    assert usual.name == "statefulset-controller"
    assert usual.workers == 30


def test_the_current_revision_is_the_one_that_the_status_names() -> None:  # ST-53
    model = ModelledStatefulSet(document(2, rolling={"partition": 2}))
    model.settle()
    first = model.statefulset.status.current_revision
    for number in (2, 3):
        model.set_image(f"nginx:{number}")
        model.settle(5)
    assert model.statefulset.status.current_revision == first


def test_a_pod_that_is_prepared_counts_as_updated_with_its_gate() -> None:  # ST-45
    """With a partition of 1 of 2 and no order, a missing pod is made old unless another one is old."""
    hooks = {"inPlaceUpdate": {"labelsHandler": {"example.com/hold": "true"}}}
    given = document(
        2,
        parallel=True,
        rolling={**IN_PLACE, "partition": 1, "unorderedUpdate": {}},
        lifecycle=hooks,
        template=template(labels={"example.com/hold": "true"}),
    )
    for gate, image in ((True, "nginx:1"), (False, "nginx:2")):
        model = ModelledStatefulSet(given, gates={"PreparingUpdateAsUpdate": gate})
        model.settle()
        model.set_image("nginx:2")
        model.settle(3)
        assert model.pod("web-1").metadata.labels[keys.STATE_LABEL] == "PreparingUpdate"  # type: ignore[union-attr]
        model.delete_pod("web-0")
        model.kubelet("web-0")
        model.reconcile()
        assert model.images["web-0"] == image, gate


@pytest.mark.parametrize(
    ("spec", "is_alike"),
    [
        ({}, True),
        ({"resources": {"requests": {"storage": "1Gi"}}}, True),
        ({"resources": {"requests": {"storage": "1025Mi"}}}, False),
        ({"storageClassName": "other"}, False),
        ({"storageClassName": None}, True),
        ({"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}, False),
    ],
)
def test_when_a_claim_is_as_its_template_wants(spec: dict[str, Any], is_alike: bool) -> None:  # ST-92
    claim = codec.convert({"metadata": {"name": "data-web-0"}, "spec": CLAIM["spec"]}, PersistentVolumeClaim)
    wanted = ClaimTemplate(name="data", labels={}, annotations={}, spec={**CLAIM["spec"], **spec})
    assert is_compatible(claim, wanted) is is_alike


def test_a_pod_that_is_written_to_counts_as_moved_and_as_down() -> None:  # ST-66
    """The next one does not begin before the write has ended, whatever the store shows."""
    model = ModelledStatefulSet(document(2, rolling=IN_PLACE))
    model.settle()
    model.set_image("nginx:2")
    model.reconcile(die_at=1)  # the revision alone
    controller = model.loop.controllers[0].spec
    snapshot = model.snapshot()
    pending = codec.evolve(snapshot.pending, marks={"demo/web-1": model.statefulset.status.update_revision or "web-2"})
    plan = controller.decide(codec.evolve(snapshot, pending=pending))
    assert not [phase for phase in plan.phases if phase.name == "update"]
    assert writes(plan) == []
    assert model.causes(plan, "web-0") == ["max-unavailable"]
