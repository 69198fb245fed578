"""What `kruise plan` foresees of a StatefulSet: the order of its pods, and how they move."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.meta import ObjectMeta
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import STORAGE_CLASSES, StorageClass
from kruise.foresight.forecast import Forecast, How
from kruise.foresight.foreseeing import foresee
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import stage
from kruise.kinds import features
from kruise.model.world import Json
from tests.foresight.scenes import KEY, NOW, node, options
from tests.workloads.statefulset.modelled import CLAIM, IN_PLACE, document, template

_SETTINGS = options("StatefulSetAutoResizePVCGate=true")


def _resources() -> list[Any]:
    sources = [
        source for feature in features() for spec in feature.controllers(_SETTINGS) for source in spec.all_sources
    ]
    return list(dict.fromkeys(source.resource for source in sources if not source.optional))


def _foreseen(before: Json, after: Json) -> Forecast:
    """Of a change of a StatefulSet that has come to rest."""
    nodes: dict[Any, tuple[Any, ...]] = {NODES: tuple(node(number) for number in (1, 2, 3))}
    nodes[STORAGE_CLASSES] = (StorageClass(metadata=ObjectMeta(name="manual"), allow_volume_expansion=True),)
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


def _with_claim(size: str, growth: str, image: str = "nginx:1") -> Json:
    claim = {**CLAIM, "spec": {**CLAIM["spec"], "resources": {"requests": {"storage": size}}}}
    return document(
        3,
        rolling=IN_PLACE,
        template=template(image),
        volumeClaimTemplates=[claim],
        volumeClaimUpdateStrategy={"type": growth},
    )


def test_claims_grow_in_a_forecast_and_pods_follow() -> None:  # ST-94, ST-98
    after = _with_claim("2Gi", "OnPodRollingUpdate", "nginx:2")
    forecast = _foreseen(_with_claim("1Gi", "OnPodRollingUpdate"), after)
    assert _waves(forecast) == [[f"{How.IN_PLACE.value} web-{place}"] for place in (2, 1, 0)]
    assert forecast.is_complete
    assert "claims" not in {warning.code for warning in forecast.warnings}


def test_a_forecast_says_that_claims_stay() -> None:  # ST-81, ST-91
    """Whoever recreates the pods, as one does with CloneSets, gets the same claims again."""
    forecast = _foreseen(_with_claim("1Gi", "OnDelete"), _with_claim("2Gi", "OnDelete"))
    [warning] = [warning for warning in forecast.warnings if warning.code == "claims"]
    assert "only claims that do not exist yet" in warning.message
    assert "OnPodRollingUpdate" in warning.remedy
