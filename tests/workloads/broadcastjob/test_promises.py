"""Promises of a BroadcastJob for whatever anybody does in any order, and with the manager killed at every write."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.daemon_pods import target_node
from kruise.api.native.pod import PODS
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Outcome
from kruise.model.world import Json
from kruise.workloads.broadcastjob.numbers import limit_of
from kruise.workloads.broadcastjob.situation import is_over, situation_of
from tests.support.examples import story_settings
from tests.support.killed import Killed
from tests.workloads.broadcastjob.modelled import ModelledJob, document

POLICIES = ("FailFast", "Continue", "Pause")
STEPS = st.one_of(
    st.tuples(st.just("succeed"), st.integers(0, 5)),
    st.tuples(st.just("fail"), st.integers(0, 5)),
    st.tuples(st.just("cordon"), st.integers(0, 5)),
    st.tuples(st.just("uncordon"), st.integers(0, 5)),
    st.tuples(st.just("delete"), st.integers(0, 5)),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("limit"), st.sampled_from([0, 1, 2, "50%", 9])),
    st.tuples(st.just("policy"), st.sampled_from(POLICIES)),
    st.tuples(st.just("pass"), st.none()),
    st.tuples(st.just("death"), st.integers(0, 4)),
)


class Checked:
    """A model whose manager is watched."""

    def __init__(self, model: ModelledJob) -> None:
        self.model = model

    def wrote(self, outcome: Outcome) -> None:
        model = self.model
        if outcome.action.verb is not Verb.CREATE or outcome.action.target.resource != PODS:
            return
        nodes = Counter(target_node(pod) for pod in model.pods)
        assert max(nodes.values()) == 1, "never two pods on a node"
        assert not model.job.spec.paused
        situation = situation_of(model.snapshot())
        limit = limit_of(model.job.spec.parallelism, situation.desired)
        assert len(situation.active) <= limit.pods, "never more at a time than parallelism allows"

    def step(self, kind: str, value: Any) -> None:
        model = self.model
        node = f"node-{value}"
        if kind in ("succeed", "fail") and node in model.served and not is_over(model.on(node)):
            model.end(node, "Succeeded" if kind == "succeed" else "Failed")
        elif kind in ("cordon", "uncordon"):
            model.edit_node(node, lambda doc: doc.update(spec={"unschedulable": kind == "cordon"}))
        elif kind == "delete" and node in model.served:
            model.world.remove(PODS, model.on(node))
        elif kind == "pause":
            model.edit_spec(lambda spec: spec.update(paused=value))
        elif kind == "limit":
            model.edit_spec(lambda spec: spec.update(parallelism=value))
        elif kind == "policy":
            model.edit_spec(lambda spec: spec.update(failurePolicy={"type": value}))
        elif kind == "pass":
            model.reconcile(wrote=self.wrote)
        elif kind == "death":
            model.reconcile(wrote=self.wrote, die_at=value)
        status = model.status
        assert min(status.active, status.succeeded, status.failed, status.desired) >= 0


@story_settings(60)
@given(steps=st.lists(STEPS, max_size=25), limit=st.sampled_from([1, 2, "50%", 2147483647]))
def test_whatever_happens(steps: list[tuple[str, Any]], limit: Any) -> None:  # BJ-34, BJ-59, BJ-61
    model = ModelledJob(document(parallelism=limit, failurePolicy={"type": "Continue"}), nodes=6)
    checked = Checked(model)
    for kind, value in steps:
        checked.step(kind, value)
    model.edit_spec(lambda spec: spec.update(paused=False, parallelism=3, failurePolicy={"type": "Continue"}))
    for _ in range(20):
        model.reconcile(wrote=checked.wrote)
        for pod in model.pods:
            if pod.metadata.deletion_timestamp is not None:
                model.world.remove(PODS, pod)
            elif not is_over(pod):
                model.end(target_node(pod))
    assert model.status.phase in ("completed", "failed") or model.status.desired == 0
    if model.status.phase == "completed":
        assert model.status.active == 0
    before = model.writes
    model.passes(3)
    assert model.writes == before, "a job that is over costs nothing"


ALWAYS: Json = {"type": "Always"}
STORIES: dict[str, tuple[Json, str, tuple[int, int, int, int]]] = {
    "completes": ({"failurePolicy": {"type": "Continue"}}, "completed", (5, 0, 5, 0)),
    "fails fast": ({"parallelism": 3}, "failed", (5, 0, 0, 3)),
    "is late": ({"completionPolicy": {**ALWAYS, "activeDeadlineSeconds": 4}}, "failed", (5, 0, 0, 2)),
    "goes": ({"completionPolicy": {**ALWAYS, "ttlSecondsAfterFinished": 2}}, "", (0, 0, 0, 0)),
}


def play(story: str, dies_at: int | None) -> Killed:
    model = ModelledJob(document(**{"parallelism": 2, **STORIES[story][0]}), nodes=5)
    checked = Checked(model)
    killed = Killed(model, dies_at, wrote=checked.wrote)
    for second in range(20):
        killed.run(1)
        if model.gone():
            break
        running = [node for node in model.served if not is_over(model.on(node)) and model.on(node).spec.node_name]
        if story == "fails fast" and second == 3:
            model.end(running[0], "Failed")
        elif story in ("completes", "goes"):
            for node in running:
                model.end(node)
    return killed


@pytest.mark.parametrize("story", STORIES)
def test_a_manager_may_die_at_every_write(story: str) -> None:  # BJ-36, BJ-47, BJ-48, BJ-70
    _, phase, counts = STORIES[story]
    undisturbed = play(story, None)
    assert undisturbed.writes > 3
    for place in (None, *range(undisturbed.writes)):
        killed = play(story, place)
        model = killed.model
        assert isinstance(model, ModelledJob)
        assert killed.died == (place is not None)
        if phase:
            assert (model.status.phase, model.counts) == (phase, counts), f"write {place}"
            assert all(is_over(pod) for pod in model.pods)
        else:
            assert model.gone(), f"write {place}"


@pytest.mark.parametrize("nodes", [40])
def test_one_write_for_each_pod_and_none_for_one_that_has_finished(nodes: int) -> None:
    """Beside the status, which is written once a pass."""
    model = ModelledJob(nodes=nodes)
    model.reconcile()
    assert model.writes == nodes + 1
    for node in model.served:
        model.end(node)
    before = model.writes
    model.reconcile()
    assert model.writes == before + 1
    model.passes(5)
    assert model.writes == before + 1
