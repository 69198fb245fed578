"""A forecast keeps to the budgets over the pods, with the gates that the manager has."""

from __future__ import annotations

import dataclasses

import pytest

from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.machinery import codec
from kruise.protection.podunavailablebudget import keys
from tests.foresight.scenes import Scene, manifest, sizes


def guarded(policy: str, feature_gates: str = "") -> Scene:
    """Six pods that their workload would take all at once, and a budget that lets one go at a time."""
    scene = Scene.of(manifest(6, rolling={"podUpdatePolicy": policy, "maxUnavailable": 6}), feature_gates)

    def mark(pod: Pod, place: int) -> Pod:
        annotations = {**pod.metadata.annotations, keys.RELATED: "pub"}
        return codec.evolve(pod, metadata=codec.evolve(pod.metadata, annotations=annotations))

    scene = scene.with_pods(mark)
    numbers = {"unavailableAllowed": 1, "currentAvailable": 6, "desiredAvailable": 5, "totalReplicas": 6}
    budget = {
        "metadata": {"name": "pub", "namespace": "demo", "uid": "pub-uid", "resourceVersion": "5", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        "status": {**numbers, "observedGeneration": 1},
    }
    budgets = (codec.convert(budget, PodUnavailableBudget),)
    assert len(scene.objects[PODS]) == 6
    return dataclasses.replace(scene, objects={**scene.objects, POD_UNAVAILABLE_BUDGETS: budgets})


@pytest.mark.parametrize(
    ("policy", "feature_gates", "expected"),
    [
        ("ReCreate", "", [1] * 6),
        ("InPlaceIfPossible", "", [6]),
        ("InPlaceIfPossible", f"{keys.UPDATE_GATE}=true", [1] * 6),
    ],
)
def test_a_rollout_is_as_fast_as_its_budget(policy: str, feature_gates: str, expected: list[int]) -> None:
    # PUB-100, PUB-104
    forecast = guarded(policy, feature_gates).foresee(image="nginx:2")
    assert sizes(forecast) == expected
    assert forecast.fewest_available == 6 - max(expected)
