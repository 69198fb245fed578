"""Where a rollout stops, what holds it back for good, and what a person is warned of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.foresight.forecast import Forecast, How
from kruise.foresight.playing import Bounds
from kruise.foresight.rendering.verdict import Verdict, verdict_of
from kruise.machinery.times import format_time
from tests.foresight.scenes import Scene, broken, codes, manifest, sizes, with_status

HOOK = {"example.com/hooked": "true"}


def hooked(replicas: int, kind: str, *, on_pods: bool = True, **rolling: Any) -> Scene:
    """Pods that carry a hook from their template."""
    hook = {"labelsHandler": HOOK}
    document = manifest(replicas, rolling={"maxUnavailable": 1, **rolling}, lifecycle={kind: hook})
    if on_pods:
        document["spec"]["template"]["metadata"]["labels"] |= HOOK
    return Scene.of(document)


def test_a_hook_is_a_stop_and_is_answered() -> None:
    scene = hooked(3, "inPlaceUpdate")
    forecast = scene.foresee(image="nginx:2")
    assert sizes(forecast) == [1, 1, 1]
    assert forecast.is_complete
    before, after = forecast.stops
    assert before.code == after.code == "hook"
    assert not before.is_last
    assert not after.is_last
    assert before.message == "label example.com/hooked=true must be removed"
    assert after.message == "label example.com/hooked=true must be added"
    assert sorted(before.pods) == sorted(after.pods) == scene.names
    assert "hooks are answered at once" in forecast.assumptions


def test_a_hook_that_nobody_answers_stops_the_rollout() -> None:
    forecast = hooked(3, "inPlaceUpdate").foresee(image="nginx:2", answer_hooks=False)
    assert not forecast.waves
    assert not forecast.is_complete
    assert codes(forecast.stops) == ["hook", "max-unavailable"]
    assert all(stop.is_last for stop in forecast.stops)
    assert {pod.code for pod in forecast.staying} == {"hook", "max-unavailable"}


def test_a_hook_before_deletion() -> None:
    forecast = hooked(3, "preDelete", podUpdatePolicy="ReCreate").foresee(image="nginx:2")
    assert {move.how for move in forecast.moves} == {How.RECREATE}
    assert forecast.is_complete
    assert [(stop.code, stop.is_last) for stop in forecast.stops] == [("hook", False)]
    held = hooked(3, "preDelete", podUpdatePolicy="ReCreate").foresee(image="nginx:2", answer_hooks=False)
    assert not held.waves
    assert "hook" in codes(held.stops)


def test_a_hook_before_new_pods_count() -> None:
    scene = hooked(2, "preNormal", on_pods=False)
    forecast = scene.foresee(replicas=3)
    assert sizes(forecast) == [1]
    assert forecast.is_complete
    assert forecast.stops[0].message == "label example.com/hooked=true must be added"
    held = scene.foresee(replicas=3, answer_hooks=False)
    assert held.available_after == 2
    assert codes(held.staying) == ["hook"]


def test_a_finalizer_of_a_hook_is_taken_off_pods_that_go() -> None:
    hook = {"inPlaceUpdate": {"finalizersHandler": ["example.com/unregister"]}}
    document = manifest(3, lifecycle=hook)
    document["spec"]["template"]["metadata"]["finalizers"] = ["example.com/unregister"]
    scene = Scene.of(document)
    after = scene.after(scene.changed(replicas=1))
    assert len(after.pods) == 1
    assert scene.foresee(image="nginx:2").is_complete


def test_pods_that_serve_nobody_are_replaced_whatever_the_limit() -> None:
    scene = Scene.of(manifest(3, rolling={"podUpdatePolicy": "ReCreate", "maxUnavailable": 0, "maxSurge": 1}))
    stuck = scene.with_pods(lambda pod, place: broken(pod))
    assert stuck.foresee(image="nginx:2").is_complete


def test_no_pod_may_be_unavailable_and_the_surge_does_not_come_up() -> None:
    """The image is known to fail: the surge pod never serves, so nobody may go for it."""
    rolling = {"podUpdatePolicy": "ReCreate", "maxUnavailable": 0, "maxSurge": 1, "partition": 2}
    scene = Scene.of(manifest(3, rolling=rolling))
    scene = scene.after(scene.changed(image="nginx:bad"))
    bad = [pod.spec.containers[0].image == "nginx:bad" for pod in scene.pods]
    assert sum(bad) == 1
    scene = scene.with_pods(lambda pod, place: broken(pod, "ImagePullBackOff") if bad[place] else pod)
    forecast = scene.foresee(image="nginx:bad", rolling={"partition": 0})
    assert not forecast.is_complete
    assert forecast.fewest_available == forecast.available_after == 2
    assert "deadlock" in codes(forecast.warnings)
    assert "maxUnavailable 0 lets no pod be unavailable" in _message(forecast, "deadlock")


def _message(forecast: Forecast, code: str) -> str:
    return next(warning.message for warning in forecast.warnings if warning.code == code)


def test_broken_pods_use_up_the_limit() -> None:
    """They stay down, but go first, as they cost nothing; the healthy ones follow."""
    scene = Scene.of(manifest(5, rolling={"maxUnavailable": 1}))
    scene = scene.with_pods(lambda pod, place: broken(pod) if place in (0, 3) else pod)
    forecast = scene.foresee(image="nginx:2")
    assert forecast.available_before == 3
    assert {forecast.moves[0].pod, forecast.moves[1].pod} == {scene.names[0], scene.names[3]}
    assert forecast.is_complete
    assert forecast.available_after == 5
    assert "broken" in codes(forecast.warnings)
    down = f"pods that are down now stay down until they are changed: {scene.names[0]}, {scene.names[3]}"
    assert down in forecast.assumptions


def test_one_broken_pod_is_spoken_of_as_one() -> None:
    scene = Scene.of(manifest(5, rolling={"maxUnavailable": 2}))
    scene = scene.with_pods(lambda pod, place: broken(pod) if place == 0 else pod)
    assert _message(scene.foresee(image="nginx:2"), "broken") == (
        f"1 pod does not serve already and uses up 1 of the 2 that maxUnavailable allows: {scene.names[0]}"
    )


def test_a_pod_that_waits_for_min_ready_seconds_is_not_broken() -> None:
    scene = Scene.of(manifest(3, minReadySeconds=60))

    def fresh(pod: Pod, place: int) -> Pod:
        lately = format_time(scene.now - timedelta(seconds=10))
        conditions = [
            {"type": item.type, "status": item.status, "lastTransitionTime": lately} for item in pod.status.conditions
        ]
        return with_status(pod, {"conditions": conditions})

    forecast = scene.with_pods(fresh).foresee(image="nginx:2")
    assert forecast.available_before == 0
    assert forecast.is_complete
    assert "broken" not in codes(forecast.warnings)


def test_broken_pods_that_the_partition_keeps_block_the_others() -> None:
    """Nobody repairs them, so the limit stays used up."""
    rolling = {"maxUnavailable": 1, "partition": 1}
    scene = Scene.of(manifest(3, rolling=rolling))
    after = scene.after(scene.changed(image="nginx:2"))
    new = [pod.metadata.labels["controller-revision-hash"] for pod in after.pods]
    kept = min(set(new), key=new.count)
    stuck = after.with_pods(lambda pod, place: pod if new[place] == kept else broken(pod))
    forecast = stuck.foresee(rolling={"partition": 0})
    assert not forecast.waves
    assert "max-unavailable" in codes(forecast.stops)
    assert "deadlock" in codes(forecast.warnings)
    assert "not-available" in codes(forecast.staying)


def test_pods_of_a_revision_that_fails_are_taken_to_fail() -> None:
    scene = Scene.of(manifest(2)).with_pods(lambda pod, place: broken(pod, "ImagePullBackOff"))
    forecast = scene.foresee(replicas=4)
    assert len(forecast.moves) == 2
    assert forecast.available_after == 0
    assert {move.until_available for move in forecast.moves} == {None}
    assert any("cannot be pulled now stay so: nginx:1" in text for text in forecast.assumptions)
    assert scene.foresee(image="nginx:2").available_after == 2  # another image is another matter


@pytest.mark.parametrize("policy", ["InPlaceIfPossible", "ReCreate"])
def test_an_image_whose_name_no_kubelet_can_read(policy: str) -> None:
    scene = Scene.of(manifest(4, rolling={"podUpdatePolicy": policy}))
    forecast = scene.foresee(image="Nginx:1:2")
    assert verdict_of(forecast) is Verdict.STUCK
    [stop] = [stop for stop in forecast.stops if stop.code == "image-name"]
    assert stop.message.startswith("2 pods do not start: Failed to apply default image tag")
    assert "repository name (library/Nginx) must be lowercase" in stop.message
    assert forecast.available_after == 2
    assert scene.foresee(image="nginx:2").is_complete


def test_an_init_container_whose_image_no_kubelet_can_read() -> None:
    scene = Scene.of(manifest(0))
    spec = {"initContainers": [{"name": "first", "image": "a:b:c"}], "containers": [{"name": "main", "image": "nginx"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    forecast = scene.foresee(template=template, replicas=2)
    assert verdict_of(forecast) is Verdict.STUCK
    assert forecast.available_after == 0


def test_a_limit_that_rounds_to_something_else() -> None:
    scene = Scene.of(manifest(5, rolling={"maxUnavailable": "10%"}))
    forecast = scene.foresee(image="nginx:2")
    assert sizes(forecast) == [1] * 5
    assert [warning.message for warning in forecast.warnings] == ["maxUnavailable 10% of 5 pods is 0.5, taken as 1"]
    split = scene.foresee(image="nginx:2", rolling={"maxUnavailable": "20%", "partition": "50%"})
    assert [warning.message for warning in split.warnings] == ["partition 50% of 5 pods is 2.5, taken as 3"]


@pytest.mark.parametrize(("percent", "replicas"), [("20%", 5), ("10%", 20), ("33%", 100)])
def test_a_limit_that_comes_out_even_needs_no_word(percent: str, replicas: int) -> None:
    forecast = Scene.of(manifest(replicas, rolling={"maxUnavailable": percent})).foresee(image="nginx:2")
    assert not forecast.warnings


def test_a_revision_that_leaves_the_history() -> None:
    scene = Scene.of(manifest(2, revisionHistoryLimit=1))
    for image in ("nginx:2", "nginx:3"):
        scene = scene.after(scene.changed(image=image))
    forecast = scene.foresee(image="nginx:4")
    assert codes(forecast.warnings) == ["history"]
    assert "revisionHistoryLimit 1" in forecast.warnings[0].message


def test_the_revision_to_go_back_to_leaves_the_history() -> None:
    scene = Scene.of(manifest(2, revisionHistoryLimit=0))
    forecast = scene.foresee(image="nginx:2")
    assert codes(forecast.warnings) == ["history"]
    assert f"revision {forecast.from_revision}, the one to go back to" in forecast.warnings[0].message


def test_more_steps_than_a_forecast_plays() -> None:
    """It is cut, says so, and tells how long the whole takes at this pace."""
    scene = Scene.of(manifest(40, rolling={"maxUnavailable": 1}))
    whole = scene.foresee(image="nginx:2")
    cut = scene.foresee(image="nginx:2", bounds=Bounds(looks=1200))
    assert not whole.is_cut
    assert cut.is_cut
    assert not cut.is_complete
    assert 3 < len(cut.waves) < 40
    assert not cut.staying
    assert cut.seconds == pytest.approx(whole.seconds, rel=0.05)
    assert any("the same pace" in text for text in cut.assumptions)
