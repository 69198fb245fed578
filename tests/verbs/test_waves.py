"""Waves as `rollout status` shows them are the waves that a plan tells of."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import Any

import pytest

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod
from kruise.foresight.forecast import How
from kruise.foresight.foreseeing import forecast_of
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import Stage, stage
from kruise.kinds import features
from kruise.machinery import codec
from kruise.verbs import history, podstates
from kruise.verbs.podstates import PodState
from kruise.verbs.waves import Waves
from kruise.workloads.cloneset.face import FACE
from tests.foresight.scenes import CLONE_SETS, KEY, Json, Scene, manifest

NOW = datetime.fromisoformat("2030-01-01T12:00:00+00:00")


class Onlooker:
    """Sees every change of the pods of a rollout that is played, as a live view would."""

    def __init__(self, scene: Stage) -> None:
        self.waves = Waves()
        self._scene = scene
        self.look()
        scene.world.store(PODS).subscribe(self._changed)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        if self._scene.playing.subject is not None:
            self.look()

    def look(self) -> None:
        world, subject = self._scene.world, self._scene.playing.subject
        document: Json = codec.decode(codec.encode(subject), dict[str, Any])
        held = [codec.decode(codec.encode(one), dict[str, Any]) for one in world.store(CONTROLLER_REVISIONS).list()]
        revisions = history.revisions_of(FACE, document, held)
        self.waves.observe(
            podstates.states(FACE, document, world.store(PODS).list(), revisions),
            world.now,
            wanted=self._scene.replicas,
            min_ready_seconds=self._scene.kind.min_ready_seconds(subject),
        )


def played(before: Scene, change: Json) -> Stage:
    return stage(
        CLONE_SETS,
        KEY,
        change,
        before.objects,
        features=features(),
        settings=before.options,
        now=before.now,
        seed=0,
        answer_hooks=True,
        server_version=None,
        bounds=Bounds(),
    )


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"image": "nginx:2"}, id="in-place"),
        pytest.param({"image": "nginx:2", "rolling": {"partition": 2}}, id="partition"),
        pytest.param({"image": "nginx:2", "rolling": {"podUpdatePolicy": "ReCreate"}}, id="recreate"),
        pytest.param(
            {"image": "nginx:2", "rolling": {"podUpdatePolicy": "ReCreate", "maxUnavailable": 0, "maxSurge": 2}},
            id="surge",
        ),
        pytest.param({"image": "nginx:2", "minReadySeconds": 30}, id="min-ready"),
        pytest.param({"replicas": 8}, id="more"),
        pytest.param({"replicas": 3}, id="fewer"),
    ],
)
def test_plan_and_live_view_count_the_same_waves(change: Json) -> None:
    before = Scene.of(manifest(5))
    scene = played(before, before.changed(**change))
    onlooker = Onlooker(scene)
    scene.playing.play()
    forecast = forecast_of(scene, before.options.gates)
    assert forecast.waves
    assert onlooker.waves.count == len(forecast.waves)
    for wave in forecast.waves:
        assert {move.pod: onlooker.waves.of[move.pod] for move in wave.moves} == dict.fromkeys(
            (move.pod for move in wave.moves), wave.number
        )
    if {move.how for move in forecast.moves} == {How.RECREATE}:
        # Who takes a pod's place belongs to the same wave: each wave has as many who come as go.
        sizes = [sum(number == wave.number for number in onlooker.waves.of.values()) for wave in forecast.waves]
        assert sizes == [2 * len(wave.moves) for wave in forecast.waves]


def state(name: str, revision: int, *, ready: bool = True, word: str = "Ready") -> PodState:
    return PodState(
        name=name,
        revision=revision,
        is_new=revision == 2,
        is_ready=ready,
        state=word,
        containers="1/1",
        restarts=0,
        node="n",
        created=None,
        ready_since=NOW,
    )


def test_time_alone_divides_nothing() -> None:
    """Two pods that begin a minute apart are one wave, as long as neither serves."""
    waves = Waves()
    old, moving = state("a", 1), state("a", 2, ready=False, word="Updating")
    other, later = state("b", 1), state("b", 2, ready=False, word="Updating")
    waves.observe([old, other], NOW, wanted=2)
    waves.observe([moving, other], NOW, wanted=2)
    waves.observe([moving, later], NOW + timedelta(minutes=1), wanted=2)
    assert waves.of == {"a": 1, "b": 1}


def test_a_pod_that_falls_and_gets_up_does_not_move() -> None:
    waves = Waves()
    waves.observe([state("a", 1)], NOW, wanted=1)
    waves.observe([state("a", 1, ready=False, word="NotReady")], NOW, wanted=1)
    waves.observe([state("a", 1)], NOW, wanted=1)
    assert (waves.of, waves.count) == ({}, 0)


def test_who_looks_in_the_middle_sees_the_first_wave_under_way() -> None:
    waves = Waves()
    moving = dataclasses.replace(state("a", 2), is_ready=False, state="Updating")
    waves.observe([moving, state("b", 1)], NOW, wanted=2)
    assert waves.members(1) == ("a",)
    waves.observe([state("a", 2), state("b", 1)], NOW, wanted=2)
    waves.observe([state("a", 2), state("b", 2, ready=False, word="Updating")], NOW, wanted=2)
    assert waves.members(2) == ("b",)
