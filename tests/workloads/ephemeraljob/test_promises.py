"""Promises of an EphemeralJob for whatever anybody does in any order, and with the manager killed at every write."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.machinery.plan import Outcome
from kruise.model.world import Json
from kruise.workloads.ephemeraljob.pods import State
from tests.support.examples import story_settings
from tests.support.killed import Killed
from tests.workloads.ephemeraljob.model import BADLY, CREATING, PULLING, RUNNING, WELL
from tests.workloads.ephemeraljob.modelled import ModelledDebug, document

PLACES = st.integers(0, 5)
STEPS = st.one_of(
    st.tuples(st.just("pod"), PLACES),
    st.tuples(st.just("unplaced pod"), PLACES),
    st.tuples(st.just("place"), PLACES),
    st.tuples(st.just("delete"), PLACES),
    *(st.tuples(st.just(name), PLACES) for name in ("creating", "running", "well", "badly", "stuck")),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("parallelism"), st.integers(0, 3)),
    st.tuples(st.just("time"), st.sampled_from([1, 30, 90])),
    st.tuples(st.just("pass"), st.none()),
    st.tuples(st.just("death"), st.integers(0, 3)),
)
STATES = {"creating": CREATING, "running": RUNNING, "well": WELL, "badly": BADLY, "stuck": PULLING}


class Checked:
    """A model whose manager is watched."""

    def __init__(self, model: ModelledDebug) -> None:
        self.model = model
        self.served: Counter[str] = Counter()

    def wrote(self, outcome: Outcome) -> None:
        model, action = self.model, outcome.action
        if action.target.resource != PODS:
            return
        self.served[action.uid] += 1
        assert self.served[action.uid] == 1, "a pod is served once"
        assert not model.subject.spec.paused
        one = model.seen[action.target.name]
        assert one.own == ("dbg",)
        assert one.has_node, "nobody knows when it would begin"
        situation = model.snapshot()
        silent = {uid for uid, since in situation.unreported.items() if (model.now - since).total_seconds() >= 60}
        busy = [
            other
            for other in model.seen.values()
            if other.is_under_way and other.stuck is None and other.pod.metadata.uid not in silent
        ]
        assert len(busy) <= (1 if (limit := model.subject.spec.parallelism) is None else limit), "parallelism holds"

    def step(self, kind: str, value: Any) -> None:
        model = self.model
        if kind == "pod":
            model.add_pod(value)
        elif kind == "unplaced pod":
            model.add_pod(value, node="")
        elif kind == "place":
            model.place(value)
        elif kind == "delete" and (pod := model.pod(f"web-{value}")) is not None:
            model.world.remove(PODS, pod)
        elif kind in STATES:
            model.report(value, STATES[kind])
        elif kind == "pause":
            model.edit_spec(lambda spec: spec.update(paused=value))
        elif kind == "parallelism":
            model.edit_spec(lambda spec: spec.update(parallelism=value))
        elif kind == "time":
            model.pass_time(value)
        elif kind == "pass":
            model.reconcile(wrote=self.wrote)
        elif kind == "death":
            model.reconcile(wrote=self.wrote, die_at=value)
        status = model.status
        assert status.running + status.succeeded + status.waiting + status.failed <= status.match


@story_settings(80)
@given(steps=st.lists(STEPS, max_size=40))
def test_whatever_happens(steps: list[tuple[str, Any]]) -> None:  # EJ-7, EJ-31, EJ-36 to EJ-39
    model = ModelledDebug(document(ttlSecondsAfterFinished=10**6), pods=2)
    checked = Checked(model)
    for kind, value in steps:
        checked.step(kind, value)
    model.edit_spec(lambda spec: spec.update(paused=False, parallelism=2))
    for _ in range(10):
        model.reconcile(wrote=checked.wrote)
        for number in range(6):
            model.place(number)
            model.report(number, WELL)
    seen = model.seen.values()
    if model.status.completion_time is None:
        assert all(one.state in (State.SUCCEEDED, State.FAILED) for one in seen), "nobody is left out"
        assert model.status.match == len(seen)
    before = model.writes
    for _ in range(3):
        model.reconcile(wrote=checked.wrote)
    assert model.writes == before, "a job that is done costs nothing"


STORIES: dict[str, tuple[Json, str, dict[str, int]]] = {
    "all well": ({"parallelism": 2}, "Succeeded", {"succeeded": 4}),
    "all failed": ({"parallelism": 3}, "Failed", {"failed": 4}),
    "late": ({"parallelism": 2, "activeDeadlineSeconds": 8}, "Failed", {"running": 2}),
    "gone": ({"parallelism": 4, "ttlSecondsAfterFinished": 3}, "", {}),
}


def play(story: str, dies_at: int | None) -> Killed:
    model = ModelledDebug(document(**STORIES[story][0]), pods=4)
    killed = Killed(model, dies_at, wrote=Checked(model).wrote)
    for _ in range(25):
        killed.run(1)
        if model.gone():
            break
        for number in range(4):
            model.report(number, {"all failed": BADLY, "late": RUNNING}.get(story, WELL))
    return killed


@pytest.mark.parametrize("story", STORIES)
def test_a_manager_may_die_at_every_write(story: str) -> None:  # EJ-35, EJ-39, EJ-55
    _, phase, counts = STORIES[story]
    writes = play(story, None).writes
    assert writes > 4
    for place in (None, *range(writes)):
        killed = play(story, place)
        model = killed.model
        assert isinstance(model, ModelledDebug)
        assert killed.died == (place is not None)
        if phase:
            assert model.status.phase == phase, f"write {place}"
            assert {name: getattr(model.status, name) for name in counts} == counts, f"write {place}"
        else:
            assert model.gone(), f"write {place}"
