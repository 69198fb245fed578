"""What a forecast says about the ways in which a CloneSet is rolled out, one feature at a time."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.foresight.forecast import How
from kruise.inplace.keys import CONTAINERS_META_ANNOTATION
from kruise.machinery import codec
from tests.foresight.scenes import Scene, codes, hows, labelled, manifest, sizes


def test_an_image_goes_in_place_in_waves_of_max_unavailable() -> None:
    scene = Scene.of(manifest(5))
    forecast = scene.foresee(image="nginx:2")
    assert sizes(forecast) == [2, 2, 1]
    assert {move.how for move in forecast.moves} == {How.IN_PLACE}
    assert {move.why for move in forecast.moves} == {"image of main changes"}
    assert sorted(move.pod for move in forecast.moves) == scene.names
    # The last wave begins when the first pod of the one before is there, and the second one is not yet.
    assert [wave.fewest_available for wave in forecast.waves] == [3, 3, 3]
    assert (forecast.available_before, forecast.fewest_available, forecast.fewest_allowed) == (5, 3, 3)
    assert (forecast.most_pods, forecast.most_allowed) == (5, 5)
    assert forecast.by_revision == {forecast.to_revision: 5}
    assert forecast.from_revision != forecast.to_revision
    assert forecast.is_complete
    assert not forecast.is_cut
    assert not (forecast.stops)
    assert not (forecast.staying)
    assert not (forecast.warnings)
    assert [change.path for change in forecast.changes] == ["spec.template.spec.containers[main].image"]
    assert (forecast.changes[0].before, forecast.changes[0].after) == ('"nginx:1"', '"nginx:2"')


def test_a_wave_begins_when_the_one_before_serves() -> None:
    forecast = Scene.of(manifest(3, rolling={"maxUnavailable": 1})).foresee(image="nginx:2")
    begins = [wave.begins for wave in forecast.waves]
    took = [move.until_available or 0.0 for move in forecast.moves]
    assert begins == [0.0, pytest.approx(took[0]), pytest.approx(took[0] + took[1])]
    assert forecast.seconds == pytest.approx(sum(took))


def test_nothing_changes() -> None:
    forecast = Scene.of(manifest(3)).foresee()
    assert (forecast.changes, forecast.waves, forecast.stops, forecast.seconds) == ((), (), (), 0.0)
    assert forecast.is_complete
    assert forecast.from_revision == forecast.to_revision


def test_a_change_of_the_strategy_alone_moves_nobody() -> None:
    forecast = Scene.of(manifest(3)).foresee(rolling={"maxUnavailable": 1})
    assert [change.path for change in forecast.changes] == ["spec.updateStrategy.rollingUpdate.maxUnavailable"]
    assert not forecast.waves


def test_pods_are_rebuilt_by_policy() -> None:
    scene = Scene.of(manifest(5, rolling={"podUpdatePolicy": "ReCreate"}))
    forecast = scene.foresee(image="nginx:2")
    assert sizes(forecast) == [2, 2, 1]
    assert {(move.how, move.why) for move in forecast.moves} == {(How.RECREATE, "the update policy is ReCreate")}
    assert sorted(move.pod for move in forecast.moves) == scene.names
    assert {move.revision for move in forecast.moves} == {forecast.to_revision}
    assert forecast.fewest_available == 3
    assert forecast.is_complete
    assert not forecast.warnings  # nobody expected anything else


def test_pods_are_rebuilt_where_a_field_cannot_change_in_place() -> None:
    scene = Scene.of(manifest(4))
    document = scene.changed()
    document["spec"]["template"]["spec"]["containers"][0]["args"] = ["--verbose"]
    forecast = scene.foresee(document)
    assert {move.how for move in forecast.moves} == {How.RECREATE}
    assert all("args" in move.why for move in forecast.moves)
    assert codes(forecast.warnings) == ["recreate"]
    assert "4 pods are rebuilt although the policy is InPlaceIfPossible" in forecast.warnings[0].message


def test_a_partition_stops_the_rollout() -> None:
    forecast = Scene.of(manifest(5)).foresee(image="nginx:2", rolling={"partition": 3})
    assert sizes(forecast) == [2]
    assert codes(forecast.stops) == ["partition"]
    assert forecast.stops[0].is_last
    assert len(forecast.stops[0].pods) == 3
    assert {pod.code for pod in forecast.staying} == {"partition"}
    assert forecast.by_revision == {forecast.from_revision: 3, forecast.to_revision: 2}
    assert not forecast.is_complete
    assert forecast.available_after == 5


def test_a_partition_that_keeps_everybody_is_worth_a_warning() -> None:
    forecast = Scene.of(manifest(5)).foresee(image="nginx:2", rolling={"partition": "100%"})
    assert not forecast.waves
    assert codes(forecast.warnings) == ["partition"]


def test_a_surge_brings_pods_before_others_go() -> None:
    scene = Scene.of(manifest(4, rolling={"podUpdatePolicy": "ReCreate", "maxUnavailable": 0, "maxSurge": 2}))
    forecast = scene.foresee(image="nginx:2")
    assert Counter(move.how for move in forecast.moves) == {How.RECREATE: 4}
    assert sizes(forecast) == [2, 1, 1]  # pods come one after the other, and each lets one go
    assert forecast.waves[0].begins > 0  # the first pods have to come before anybody goes
    assert {move.until_available for move in forecast.moves} == {0.0}
    assert (forecast.fewest_available, forecast.fewest_allowed) == (4, 4)
    assert (forecast.most_pods, forecast.most_allowed) == (6, 6)
    assert forecast.is_complete


def test_a_surge_beside_updates_in_place_is_worth_a_warning() -> None:
    forecast = Scene.of(manifest(4, rolling={"maxUnavailable": 1, "maxSurge": 1})).foresee(image="nginx:2")
    assert "surge" in codes(forecast.warnings)
    assert forecast.is_complete
    assert forecast.most_pods == 5


def test_the_order_of_priorities() -> None:
    """The highest weight goes first, whoever has it."""
    terms = [{"weight": 50, "matchSelector": {"matchLabels": {"tier": "gold"}}}]
    rolling = {"maxUnavailable": 1, "priorityStrategy": {"weightPriority": terms}}
    scene = Scene.of(manifest(4, rolling=rolling))
    scene = scene.with_pods(lambda pod, place: labelled(pod, tier="gold") if place == 2 else pod)
    assert scene.foresee(image="nginx:2").moves[0].pod == scene.names[2]


def test_scattered_pods_do_not_go_all_at_once() -> None:
    rolling = {"maxUnavailable": 1, "scatterStrategy": [{"key": "tier", "value": "gold"}]}
    scene = Scene.of(manifest(6, rolling=rolling))
    scene = scene.with_pods(lambda pod, place: labelled(pod, tier="gold") if place < 3 else pod)
    golden = [move.pod in scene.names[:3] for move in scene.foresee(image="nginx:2").moves]
    assert sum(golden) == 3
    assert golden not in ([True] * 3 + [False] * 3, [False] * 3 + [True] * 3)


def test_paused() -> None:
    forecast = Scene.of(manifest(3)).foresee(image="nginx:2", rolling={"paused": True})
    assert not forecast.waves
    assert codes(forecast.stops) == ["paused"]
    assert codes(forecast.warnings) == ["paused"]
    assert not forecast.is_complete


def test_on_delete() -> None:
    forecast = Scene.of(manifest(3)).foresee(image="nginx:2", updateStrategy={"type": "OnDelete"})
    assert not forecast.waves
    assert codes(forecast.stops) == ["on-delete"]
    assert codes(forecast.warnings) == ["on-delete"]


def test_in_place_only_refuses() -> None:
    scene = Scene.of(manifest(3, rolling={"podUpdatePolicy": "InPlaceOnly"}))
    document = scene.changed()
    document["spec"]["template"]["spec"]["containers"][0]["args"] = ["--verbose"]
    forecast = scene.foresee(document)
    assert not forecast.waves
    assert "in-place-only" in codes(forecast.stops)
    assert "in-place-only" in codes(forecast.warnings)
    assert forecast.by_revision == {forecast.from_revision: 3}


def test_more_pods() -> None:
    forecast = Scene.of(manifest(3)).foresee(replicas=5)
    assert sizes(forecast) == [2]
    assert {(move.how, move.why) for move in forecast.moves} == {(How.CREATE, "3 of 5 pods are there")}
    assert forecast.by_revision == {forecast.to_revision: 5}
    assert (forecast.fewest_available, forecast.available_after) == (3, 5)
    assert forecast.most_pods == forecast.most_allowed == 5


def test_more_pods_a_few_at_a_time() -> None:
    forecast = Scene.of(manifest(2)).foresee(replicas=6, scaleStrategy={"maxUnavailable": 2})
    assert sizes(forecast) == [2, 2]
    assert forecast.is_complete


def test_fewer_pods() -> None:
    forecast = Scene.of(manifest(5)).foresee(replicas=3)
    assert Counter(move.how for move in forecast.moves) == {How.DELETE: 2}
    assert {move.until_available for move in forecast.moves} == {None}
    assert forecast.available_after == 3
    assert forecast.is_complete
    assert forecast.most_allowed == 5


def test_fewer_pods_and_another_template() -> None:
    """Pods that are too many go for good; the others are rebuilt."""
    scene = Scene.of(manifest(6, rolling={"podUpdatePolicy": "ReCreate"}))
    forecast = scene.foresee(image="nginx:2", replicas=4)
    assert Counter(move.how for move in forecast.moves) == {How.DELETE: 2, How.RECREATE: 4}
    assert forecast.by_revision == {forecast.to_revision: 4}


def test_more_pods_and_another_template() -> None:
    scene = Scene.of(manifest(3, rolling={"podUpdatePolicy": "ReCreate", "maxUnavailable": 1}))
    forecast = scene.foresee(image="nginx:2", replicas=5)
    assert Counter(move.how for move in forecast.moves) == {How.CREATE: 2, How.RECREATE: 3}
    assert sorted(move.pod for move in forecast.moves if move.how is How.RECREATE) == scene.names


def test_named_pods_are_replaced() -> None:
    scene = Scene.of(manifest(4))
    forecast = scene.foresee(scaleStrategy={"podsToDelete": [scene.names[1]]})
    assert hows(forecast) == [[(How.RECREATE, scene.names[1])]]
    assert forecast.moves[0].why == "its deletion was asked for"
    assert forecast.is_complete


def test_named_pods_go_first_when_there_are_to_be_fewer() -> None:
    scene = Scene.of(manifest(4))
    forecast = scene.foresee(replicas=3, scaleStrategy={"podsToDelete": [scene.names[2]]})
    assert hows(forecast) == [[(How.DELETE, scene.names[2])]]


def test_min_ready_seconds_pass_between_waves() -> None:
    plain = Scene.of(manifest(2, rolling={"maxUnavailable": 1})).foresee(image="nginx:2")
    slow = Scene.of(manifest(2, rolling={"maxUnavailable": 1}, minReadySeconds=30)).foresee(image="nginx:2")
    assert sizes(slow) == [1, 1]
    assert 30 <= slow.waves[1].begins - plain.waves[1].begins <= 32
    assert slow.is_complete


def test_a_grace_period_passes_before_containers_restart() -> None:
    rolling = {"maxUnavailable": 1}
    plain = Scene.of(manifest(2, rolling=rolling)).foresee(image="nginx:2")
    graceful = {**rolling, "inPlaceUpdateStrategy": {"gracePeriodSeconds": 20}}
    slow = Scene.of(manifest(2, rolling=graceful)).foresee(image="nginx:2")
    assert sizes(slow) == [1, 1]
    assert 20 <= slow.moves[0].until_available - plain.moves[0].until_available <= 22
    assert slow.is_complete
    assert slow.fewest_available == 1


CLAIMS: list[dict[str, Any]] = [
    {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
]


def test_claims_come_and_go_with_their_pods() -> None:
    scene = Scene.of(manifest(3, rolling={"podUpdatePolicy": "ReCreate"}, volumeClaimTemplates=CLAIMS))
    assert len(scene.objects[PERSISTENT_VOLUME_CLAIMS]) == 3
    forecast = scene.foresee(image="nginx:2")
    assert forecast.is_complete
    assert sizes(forecast) == [2, 1]
    after = scene.after(scene.changed(image="nginx:2"))
    claims = {claim.metadata.name for claim in after.objects[PERSISTENT_VOLUME_CLAIMS]}
    assert claims == {f"data-{name}" for name in after.names}


def test_a_change_of_claim_templates_reaches_new_pods_only() -> None:
    scene = Scene.of(manifest(2, volumeClaimTemplates=CLAIMS))
    larger = [{**CLAIMS[0], "spec": {**CLAIMS[0]["spec"], "resources": {"requests": {"storage": "2Gi"}}}}]
    forecast = scene.foresee(volumeClaimTemplates=larger)
    assert not forecast.waves
    assert codes(forecast.warnings) == ["claims"]


def test_a_new_object() -> None:
    scene = Scene.of(manifest(2))
    document = manifest(3)
    forecast = Scene(document, {}, scene.now, scene.options).foresee()
    assert sizes(forecast) == [3]
    assert {move.how for move in forecast.moves} == {How.CREATE}
    assert forecast.from_revision == ""
    assert forecast.available_before == 0
    assert forecast.is_complete
    assert any(change.path == "spec" or change.path.startswith("spec.") for change in forecast.changes)


def test_a_rollout_under_way_goes_on() -> None:
    """Half of the pods are at the new revision, and one is being changed."""
    scene = Scene.of(manifest(6, rolling={"maxUnavailable": 1}))
    document = scene.changed(image="nginx:2")
    whole = scene.foresee(image="nginx:2")
    halfway = scene.after(document, until=timedelta(seconds=whole.seconds * 0.51))
    labels = Counter(pod.metadata.labels["controller-revision-hash"] for pod in halfway.pods)
    assert len(labels) == 2
    rest = halfway.foresee(document)
    assert not rest.changes
    assert rest.is_complete
    assert len(rest.moves) == labels[whole.from_revision]
    assert rest.from_revision == rest.to_revision == whole.to_revision


def test_going_back_is_a_rollout_to_the_old_revision() -> None:
    scene = Scene.of(manifest(3))
    forward = scene.foresee(image="nginx:2")
    back = scene.after(scene.changed(image="nginx:2")).foresee(scene.document)
    assert (back.from_revision, back.to_revision) == (forward.to_revision, forward.from_revision)
    assert back.is_complete
    assert len(back.moves) == 3


def test_an_environment_from_labels_needs_somebody_on_the_nodes() -> None:
    """The agent on the node restarts the container and tells of it; without one the update never ends."""
    document = manifest(2, rolling={"maxUnavailable": 1})
    source = {"fieldRef": {"fieldPath": "metadata.annotations['example.com/level']"}}
    template = document["spec"]["template"]
    template["metadata"]["annotations"] = {"example.com/level": "info"}
    template["spec"]["containers"][0]["env"] = [{"name": "LEVEL", "valueFrom": source}]
    scene = Scene.of(document, "InPlaceUpdateEnvFromMetadata=true")
    changed = scene.changed()
    changed["spec"]["template"]["metadata"]["annotations"] = {"example.com/level": "debug"}
    forecast = scene.foresee(changed)
    assert forecast.is_complete
    assert sizes(forecast) == [1, 1]
    assert {move.why for move in forecast.moves} == {"environment of main changes"}
    without = scene.with_pods(_without_report).foresee(changed)
    assert sizes(without) == [1]
    assert not without.is_complete
    assert "updating" in codes(without.stops)


def _without_report(pod: Pod, place: int) -> Pod:
    kept = {key: value for key, value in pod.metadata.annotations.items() if key != CONTAINERS_META_ANNOTATION}
    return codec.evolve(pod, metadata=codec.evolve(pod.metadata, annotations=kept))


def test_labels_change_in_place() -> None:
    scene = Scene.of(manifest(3))
    document = scene.changed()
    document["spec"]["template"]["metadata"]["labels"]["team"] = "a"
    forecast = scene.foresee(document)
    assert {(move.how, move.why) for move in forecast.moves} == {(How.IN_PLACE, "labels or annotations change")}
    assert forecast.is_complete


def _barrier(key: str) -> list[dict[str, Any]]:
    source = {"configMapKeyRef": {"name": "web-barrier", "key": key}}
    return [{"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": source}]


def test_launch_priorities_make_batches() -> None:
    """Containers with a launch order restart one after the other, and the pod is down for both."""
    document = manifest(1)
    containers = document["spec"]["template"]["spec"]["containers"]
    containers[0]["env"] = _barrier("p_10")
    containers.append({"name": "side", "image": "redis:1", "env": _barrier("p_0")})
    scene = Scene.of(document)
    changed = scene.changed(image="nginx:2")
    changed["spec"]["template"]["spec"]["containers"][1]["image"] = "redis:2"
    both, one = scene.foresee(changed), scene.foresee(image="nginx:2")
    assert both.is_complete
    assert both.moves[0].why == "image of main changes, image of side changes"
    assert both.moves[0].until_available == pytest.approx(2 * one.moves[0].until_available, rel=0.1)


def test_the_same_question_has_the_same_answer() -> None:
    scene = Scene.of(manifest(5, rolling={"podUpdatePolicy": "ReCreate"}))
    assert scene.foresee(image="nginx:2") == scene.foresee(image="nginx:2")


def test_the_objects_that_came_in_stay_as_they_were() -> None:
    scene = Scene.of(manifest(3))
    before = {resource: tuple(items) for resource, items in scene.objects.items()}
    scene.foresee(image="nginx:2")
    assert {resource: tuple(items) for resource, items in scene.objects.items()} == before
    assert scene.objects[CLONE_SETS]
    assert scene.objects[PODS]
