"""What holds for every forecast, whatever is changed."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.foresight.forecast import How
from tests.foresight.scenes import Scene, broken, manifest

POLICIES = ("InPlaceIfPossible", "ReCreate", "InPlaceOnly")


@functools.cache
def scene_of(replicas: int, min_ready: int) -> Scene:
    return Scene.of(manifest(replicas, minReadySeconds=min_ready))


@st.composite
def rollouts(draw: st.DrawFn) -> tuple[Scene, dict[str, Any], int]:
    """A CloneSet, a change of it, and how many of its pods are down."""
    scene = scene_of(draw(st.integers(1, 7)), draw(st.sampled_from((0, 5))))
    replicas = len(scene.pods)
    down = draw(st.sets(st.integers(0, replicas - 1), max_size=2)) if draw(st.booleans()) else set()
    rolling: dict[str, Any] = {
        "podUpdatePolicy": draw(st.sampled_from(POLICIES)),
        "maxUnavailable": draw(st.one_of(st.integers(1, 4), st.sampled_from(("10%", "50%", "100%")))),
    }
    if rolling["podUpdatePolicy"] != "InPlaceOnly" and draw(st.booleans()):
        rolling["maxSurge"] = draw(st.integers(1, 3))
        rolling["maxUnavailable"] = draw(st.integers(0, 2))
    if draw(st.booleans()):
        rolling["partition"] = draw(st.integers(0, replicas))
    change: dict[str, Any] = {"rolling": rolling}
    if draw(st.booleans()):
        change["image"] = "nginx:2"
    if draw(st.booleans()):
        change["replicas"] = draw(st.integers(0, 8))
    changed = scene.with_pods(lambda pod, place: broken(pod) if place in down else pod)
    return changed, change, len(down)


@given(rollouts())
@settings(max_examples=80, deadline=None)
def test_the_figures_of_a_forecast_fit_together(rollout: tuple[Scene, dict[str, Any], int]) -> None:
    scene, change, down = rollout
    forecast = scene.foresee(**change)
    assert not forecast.is_cut

    # Every pod that is there moves at most once, and only pods that are there or that came.
    first = Counter(move.pod for move in forecast.moves if move.pod in scene.names)
    assert all(count == 1 for count in first.values())

    # Waves are numbered, in order of time, and none is empty.
    assert [wave.number for wave in forecast.waves] == list(range(1, len(forecast.waves) + 1))
    begins = [wave.begins for wave in forecast.waves]
    assert begins == sorted(begins)
    assert all(wave.moves for wave in forecast.waves)
    assert all(wave.begins == wave.moves[0].at <= wave.moves[-1].at for wave in forecast.waves)

    # Pods that come and go account for the number of pods in the end.
    hows = Counter(move.how for move in forecast.moves)
    assert len(scene.names) + hows[How.CREATE] - hows[How.DELETE] == sum(forecast.by_revision.values())

    # Limits hold, as far as pods served before.
    assert forecast.available_before == len(scene.names) - down
    assert forecast.fewest_available <= forecast.available_before
    if forecast.fewest_allowed is not None:
        assert forecast.fewest_available >= min(forecast.fewest_allowed, forecast.available_before)
    assert forecast.most_allowed is not None
    assert forecast.most_pods <= forecast.most_allowed
    assert min((wave.fewest_available for wave in forecast.waves), default=forecast.available_before) >= (
        forecast.fewest_available
    )

    # Either all is done, or somebody is told why not.
    assert forecast.is_complete != bool(forecast.staying or [stop for stop in forecast.stops if stop.is_last])
    if forecast.is_complete:
        assert forecast.by_revision in ({forecast.to_revision: forecast.replicas}, {})
        assert forecast.available_after == forecast.replicas
    assert forecast.seconds is not None
    assert forecast.seconds >= max(begins, default=0.0)


@given(rollouts())
@settings(max_examples=15, deadline=None)
def test_a_forecast_of_the_end_has_nothing_left_to_say(rollout: tuple[Scene, dict[str, Any], int]) -> None:
    """Where a rollout has led to, the same change moves nobody any more."""
    scene, change, _ = rollout
    document = scene.changed(**change)
    first = scene.foresee(document)
    after = scene.after(document)
    second = after.foresee(document)
    assert not second.waves
    assert not second.changes
    assert second.by_revision == first.by_revision
    assert second.available_before == first.available_after
    assert second.is_complete == first.is_complete
