"""The way in: the same defaults, the same refusals and the same versions as in a cluster."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kruise.admission.chain import PodStep, StepContext
from kruise.admission.decisions import Change, Deny
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.apps import CONTROLLER_REVISIONS, DEPLOYMENTS
from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.feature import Feature, PodMutation
from kruise.foresight import RefusedError, UnknownKindError, foresee, needed
from kruise.foresight.admitting import Gatekeeper
from kruise.kinds import features
from kruise.machinery import plan as plans
from kruise.machinery.watched import Watched
from kruise.model.world import RefusedWriteError, World
from tests.foresight.scenes import KEY, NOW, Scene, manifest, options, sizes


def test_a_change_that_admission_refuses() -> None:
    scene = Scene.of(manifest(2))
    with pytest.raises(RefusedError) as refused:
        scene.foresee(replicas=-1)
    text = 'admission webhook "vcloneset.kb.io" denied the request: spec.replicas: Invalid value: -1'
    assert str(refused.value).startswith(text)
    assert refused.value.code == 422
    assert [message.partition(":")[0] for message in refused.value.messages] == ["spec.replicas"]


def test_every_field_that_is_wrong_is_named() -> None:
    scene = Scene.of(manifest(2))
    with pytest.raises(RefusedError) as refused:
        scene.foresee(replicas=-1, rolling={"partition": -1})
    assert len(refused.value.messages) == 2


def test_the_selector_cannot_change() -> None:
    document = manifest(2)
    document["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    document["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    with pytest.raises(RefusedError, match="denied the request: spec"):
        Scene.of(manifest(2)).foresee(document)


def test_a_document_of_another_shape() -> None:
    with pytest.raises(RefusedError) as refused:
        Scene.of(manifest(2)).foresee(replicas="many")
    assert refused.value.code == 400
    assert "spec.replicas" in str(refused.value)


def test_defaults_are_no_change() -> None:
    """What the file leaves out and admission fills in is not told as a change."""
    scene = Scene.of(manifest(2))
    document = copy.deepcopy(scene.document)
    del document["spec"]["updateStrategy"]["type"]
    assert scene.foresee(document).changes == ()


def test_the_older_version_says_the_same() -> None:
    scene = Scene.of(manifest(4))
    changed = scene.changed(image="nginx:2")
    older: dict[str, Any] = convert(copy.deepcopy(changed), "v1alpha1") | {"apiVersion": "apps.kruise.io/v1alpha1"}
    assert "podUpdatePolicy" not in older["spec"]["updateStrategy"].get("rollingUpdate", {})
    one, other = scene.foresee(changed), scene.foresee(older)
    assert (sizes(one), one.to_revision, one.is_complete) == (sizes(other), other.to_revision, other.is_complete)
    assert one.waves == other.waves


def test_pods_to_delete_are_looked_up_among_the_pods() -> None:
    """v1alpha1 refuses names that are no pods of the CloneSet."""
    scene = Scene.of(manifest(2))
    changed = scene.changed(scaleStrategy={"podsToDelete": ["web-nobody"]})
    older = convert(changed, "v1alpha1") | {"apiVersion": "apps.kruise.io/v1alpha1"}
    with pytest.raises(RefusedError, match="web-nobody"):
        scene.foresee(older)


def test_a_kind_that_nobody_described() -> None:
    with pytest.raises(UnknownKindError, match="deployments"):
        foresee(DEPLOYMENTS, Key("demo", "web"), {}, {}, features=features(), settings=options(), now=NOW)


def test_what_has_to_be_read() -> None:
    document = manifest(2)
    document["spec"]["selector"]["matchExpressions"] = [{"key": "tier", "operator": "Exists"}]
    needs = {need.resource: need for need in needed(CLONE_SETS, document, features=features(), settings=options())}
    budgets = POD_UNAVAILABLE_BUDGETS
    shaping = {WORKLOAD_SPREADS, PERSISTENT_POD_STATES, SIDECAR_SETS, NAMESPACES}
    assert set(needs) == {PODS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, NODES, budgets, *shaping}
    assert {need.resource for need in needs.values() if need.shapes_pods} == shaping
    assert (needs[WORKLOAD_SPREADS].namespace, needs[SIDECAR_SETS].namespace) == (KEY.namespace, "")
    assert needs[PODS].namespace == KEY.namespace
    assert needs[PODS].selector == "app=web,tier"
    assert needs[PERSISTENT_VOLUME_CLAIMS].selector == "app=web"
    assert (needs[NODES].namespace, needs[NODES].selector) == ("", "")


def test_kinds_that_may_be_missing_are_optional() -> None:
    gate = "PreDownloadImageForInPlaceUpdate=true"
    needs = needed(CLONE_SETS, manifest(2), features=features(), settings=options(gate))
    optional = [need.resource.kind for need in needs if need.optional and not need.shapes_pods]
    assert optional == ["ImagePullJob", "PodUnavailableBudget"]


def test_new_pods_go_through_the_pod_chain() -> None:
    scene = Scene.of(manifest(1))
    gates = [gate.condition_type for gate in scene.pods[0].spec.readiness_gates]
    assert gates == ["InPlaceUpdateReady", "KruisePodReady"]


def test_a_selector_that_cannot_be_read() -> None:
    document = manifest(2)
    document["spec"]["selector"] = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    with pytest.raises(RefusedError, match=r"spec\.selector"):
        needed(CLONE_SETS, document, features=features(), settings=options())


def test_pod_steps_find_objects_by_their_indexes() -> None:
    kind = Watched(CONFIG_MAPS, indexes={"name": lambda found: (found.metadata.name,)})

    def note(pod: dict[str, Any], context: StepContext) -> Change:
        store = context.view.store(CONFIG_MAPS)
        return Change(object={**pod, "found": len(store.by_index("name", "a")), "read": store.synced})

    step = PodMutation(PodStep.SIDECAR_SET, note, needs=(kind,))
    gatekeeper = Gatekeeper([Feature(name="watchful", pod_mutations=lambda settings: [step])], options())
    body = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"containers": []}}
    create = plans.create(PODS, body, reason="missing", owner_uid="u")
    world = World(NOW)
    gatekeeper.enter(world)
    assert gatekeeper.new_object(create, world) == {**body, "found": 0, "read": False}, "nobody read them"
    world.add(CONFIG_MAPS, [ConfigMap(metadata=ObjectMeta(name="a", uid="u", resource_version="1"))])
    assert gatekeeper.new_object(create, world) == {**body, "found": 1, "read": True}


def test_nobody_is_asked_about_pods_of_the_control_plane() -> None:
    """PW-43."""

    def refuse(pod: dict[str, Any], context: StepContext) -> Deny:
        return Deny(message="no")

    step = PodMutation(PodStep.SIDECAR_SET, refuse, needs=())
    gatekeeper = Gatekeeper([Feature(name="strict", pod_mutations=lambda settings: [step])], options())
    body = {"metadata": {"name": "p", "namespace": "kube-system"}, "spec": {"containers": []}}
    assert gatekeeper.new_object(plans.create(PODS, body, reason="missing", owner_uid="u"), World(NOW)) == body
    body = {"metadata": {"name": "p", "namespace": "shop"}, "spec": {"containers": []}}
    with pytest.raises(RefusedWriteError, match="no"):
        gatekeeper.new_object(plans.create(PODS, body, reason="missing", owner_uid="u"), World(NOW))
