"""What `kruise plan` foresees of a StatefulSet: the order of its pods, and how they move."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.foresight.forecast import Forecast, How
from kruise.foresight.foreseeing import foresee
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import stage
from kruise.kinds import features
from kruise.model.world import Json
from tests.foresight.scenes import KEY, NOW, node, options
from tests.workloads.statefulset.modelled import IN_PLACE, document, template

_SETTINGS = options()


def _resources() -> list[Any]:
    sources = [
        source for feature in features() for spec in feature.controllers(_SETTINGS) for source in spec.all_sources
    ]
    return list(dict.fromkeys(source.resource for source in sources if not source.optional))


def _foreseen(before: Json, after: Json) -> Forecast:
    """Of a change of a StatefulSet that has come to rest."""
    nodes = {NODES: tuple(node(number) for number in (1, 2, 3))}
    scene = stage(
        STATEFUL_SETS,
        KEY,
        before,
        nodes,
        features=features(),
        settings=_SETTINGS,
        now=NOW,
        seed=0,
        answer_hooks=True,
        server_version=None,
        bounds=Bounds(horizon=timedelta(hours=1)),
    )
    scene.playing.play()
    objects = {resource: scene.world.store(resource).list() for resource in _resources()}
    assert len(objects[PODS]) == before["spec"]["replicas"]
    return foresee(STATEFUL_SETS, KEY, after, objects, features=features(), settings=_SETTINGS, now=scene.world.now)


def _waves(forecast: Forecast) -> list[list[str]]:
    return [[f"{move.how.value} {move.pod}" for move in wave.moves] for wave in forecast.waves]


@pytest.mark.parametrize(
    ("rolling", "how"), [(IN_PLACE, How.IN_PLACE), ({"podUpdatePolicy": "ReCreate"}, How.RECREATE)]
)
def test_pods_move_one_after_the_other_from_the_highest_on(rolling: Json, how: How) -> None:  # ST-72
    before = document(3, rolling=rolling)
    forecast = _foreseen(before, document(3, rolling=rolling, template=template("nginx:2")))
    assert _waves(forecast) == [[f"{how.value} web-{place}"] for place in (2, 1, 0)]


def test_the_partition_holds_in_a_forecast() -> None:  # ST-72
    before = document(3, rolling={**IN_PLACE, "partition": 2})
    after = document(3, rolling={**IN_PLACE, "partition": 2}, template=template("nginx:2"))
    assert [len(wave) for wave in _waves(_foreseen(before, after))] == [1]
