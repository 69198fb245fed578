"""Room on nodes: the pods that a forecast finds no node for are those that the cluster finds none for, and the resizes
that it takes to be refused or put off are those that the nodes refuse or put off."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import PODS, condition
from kruise.foresight.forecast import Forecast
from kruise.foresight.rendering.verdict import Verdict, verdict_of
from kruise.inplace.resizing import refused_resize
from tests.foresight_reality.cases import NAME, Case, Edit, Step
from tests.foresight_reality.comparison import differences
from tests.foresight_reality.reality import Outcome, play
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
TWO_NODES = 2


def manifest(replicas: int, **rolling: Any) -> Json:
    """Two pods fill a node of 8 CPUs."""
    container = {"name": "main", "image": "nginx:1.25", "resources": {"requests": {"cpu": "3"}}}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME}}, "spec": {"containers": [container]}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "ReCreate", "maxUnavailable": 2, **rolling}},
        },
    }


def outcome_of(case: Case) -> tuple[Outcome, list[str], list[str]]:
    """What came of it, why pods have no node in the end, and why they lack resources."""
    outcomes: list[Outcome] = []
    homeless: list[str] = []
    ungranted: list[str] = []

    async def scenario(world: LocalWorld) -> None:
        outcomes.append(await play(world, case, world.options))
        for pod in (await world.client.list(PODS, world.namespace)).items:
            scheduled = condition(pod, "PodScheduled")
            if scheduled is not None and scheduled.status == "False":
                homeless.append(scheduled.message)
            if refusal := refused_resize(pod):
                ungranted.append(str(refusal))

    run_local(scenario, nodes=TWO_NODES, feature_gates=case.gates)
    return outcomes[0], homeless, ungranted


IMAGE = Edit("image", "main", "nginx:1.26")


@pytest.mark.parametrize(
    ("start", "change", "without_node"),
    [
        pytest.param(manifest(3), (Edit("replicas", value=7),), 3, id="more than fit"),
        pytest.param(manifest(4), (IMAGE,), 0, id="in the room of those that go"),
        pytest.param(manifest(4, maxUnavailable=0, maxSurge=1), (IMAGE,), 1, id="no room for a surge"),
        pytest.param(manifest(6), (Edit("replicas", value=5),), 1, id="fewer, and still too many"),
        pytest.param(manifest(6), (IMAGE,), 2, id="some had none before"),
    ],
)
def test_pods_find_the_nodes_that_were_foreseen(start: Json, change: tuple[Edit, ...], without_node: int) -> None:
    outcome, homeless, _ = outcome_of(Case(seed=0, manifest=start, steps=(), change=change))
    assert differences(outcome) == []
    assert isinstance(outcome.forecast, Forecast)
    assert len(homeless) == without_node
    told = [stop for stop in outcome.forecast.stops if stop.code == "unscheduled"]
    assert sum(len(stop.pods) for stop in told) == without_node
    assert verdict_of(outcome.forecast) is (Verdict.STUCK if without_node else Verdict.COMPLETE)
    for stop, message in zip(told, homeless, strict=False):
        words = stop.message.partition(" no node: ")[2]
        assert message.startswith(words), "in the words of the scheduler"


def in_place(replicas: int, **rolling: Any) -> Json:
    return manifest(replicas, podUpdatePolicy="InPlaceIfPossible", **rolling)


def cpu(amount: str) -> Edit:
    return Edit("resources", "main", {"requests": {"cpu": amount}})


def resized(amount: str) -> tuple[Step, ...]:
    """Before the change that is looked at."""
    return (Step(edits=(cpu(amount),)),)


OLD_ONES_GO = (Edit("replicas", value=2), Edit("rolling", "partition", 0))


@pytest.mark.parametrize(
    ("start", "steps", "change", "code", "count"),
    [
        pytest.param(in_place(4), (), (cpu("4"),), "", 0, id="granted"),
        pytest.param(in_place(4), (), (cpu("2"), IMAGE), "", 0, id="less, and another image"),
        pytest.param(in_place(4), (), (cpu("100"),), "resize-refused", 2, id="more than any node has"),
        pytest.param(in_place(4), (), (cpu("100"), IMAGE), "resize-refused", 2, id="the same with another image"),
        pytest.param(in_place(4), (), (cpu("5"),), "resize-deferred", 2, id="room for one on each node"),
        pytest.param(in_place(4), (), (cpu("6"),), "resize-deferred", 2, id="room for none beside the others"),
        pytest.param(in_place(4), resized("100"), (cpu("4"),), "", 0, id="corrected"),
        pytest.param(in_place(4, partition=2), resized("6"), OLD_ONES_GO, "", 0, id="granted when others leave"),
    ],
)
def test_nodes_grant_what_was_foreseen(
    start: Json, steps: tuple[Step, ...], change: tuple[Edit, ...], code: str, count: int
) -> None:
    gates = "InPlaceWorkloadVerticalScaling=true"
    outcome, _, ungranted = outcome_of(Case(seed=0, manifest=start, steps=steps, change=change, gates=gates))
    assert differences(outcome) == []
    assert isinstance(outcome.forecast, Forecast)
    told_of = [stop for stop in outcome.forecast.stops if stop.code.startswith("resize-")]
    assert [stop.code for stop in told_of] == [code] * bool(code)
    assert sum(len(stop.pods) for stop in told_of) == len(ungranted) == count
    assert {stop.message for stop in told_of} == set(ungranted), "in the words of the node"
    assert verdict_of(outcome.forecast) is (Verdict.STUCK if count else Verdict.COMPLETE)
