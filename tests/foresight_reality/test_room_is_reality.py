"""Room on nodes: the pods that a forecast finds no node for are those that the cluster finds none for."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import PODS, condition
from kruise.foresight.forecast import Forecast
from kruise.foresight.rendering.verdict import Verdict, verdict_of
from tests.foresight_reality.cases import NAME, Case, Edit
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


def outcome_of(case: Case) -> tuple[Outcome, list[str]]:
    """What came of it, and why pods have no node in the end."""
    outcomes: list[Outcome] = []
    homeless: list[str] = []

    async def scenario(world: LocalWorld) -> None:
        outcomes.append(await play(world, case, world.options))
        for pod in (await world.client.list(PODS, world.namespace)).items:
            scheduled = condition(pod, "PodScheduled")
            if scheduled is not None and scheduled.status == "False":
                homeless.append(scheduled.message)

    run_local(scenario, nodes=TWO_NODES)
    return outcomes[0], homeless


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
    outcome, homeless = outcome_of(Case(seed=0, manifest=start, steps=(), change=change))
    assert differences(outcome) == []
    assert isinstance(outcome.forecast, Forecast)
    assert len(homeless) == without_node
    told = [stop for stop in outcome.forecast.stops if stop.code == "unscheduled"]
    assert sum(len(stop.pods) for stop in told) == without_node
    assert verdict_of(outcome.forecast) is (Verdict.STUCK if without_node else Verdict.COMPLETE)
    for stop, message in zip(told, homeless, strict=False):
        words = stop.message.partition(" no node: ")[2]
        assert message.startswith(words), "in the words of the scheduler"
