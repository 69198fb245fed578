"""What `rollout status` and `describe` say of a StatefulSet."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.faces.progress import Phase
from kruise.model.world import Json
from kruise.workloads.statefulset.face import FACE, progress
from kruise.workloads.statefulset.settings import settings
from tests.workloads.statefulset.modelled import document

DONE = {"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updateRevision": "web-2"}


def _seen(given: Json, **status: Any) -> Json:
    given["metadata"]["generation"] = 2
    return {**given, "status": {"observedGeneration": 2, **DONE, **status}}


@pytest.mark.parametrize(
    ("rolling", "status", "phase", "words"),
    [
        ({}, {}, Phase.DONE, "Advanced StatefulSet rolling update complete 3 pods at revision web-2"),
        ({}, {"observedGeneration": 1}, Phase.PROGRESSING, "spec update to be observed"),
        ({}, {"updatedReplicas": 1}, Phase.PROGRESSING, "1 out of 3 new pods have been updated"),
        ({"paused": True}, {"updatedReplicas": 1}, Phase.PROGRESSING, "kruise rollout resume"),
        ({"partition": 2}, {"updatedReplicas": 1}, Phase.DONE, "1 new pods have been updated"),
        ({"partition": 9}, {"updatedReplicas": 0}, Phase.DONE, "0 new pods have been updated"),
        ({}, {"replicas": 4}, Phase.PROGRESSING, "1 surplus pod to be deleted"),
        ({}, {"readyReplicas": 2}, Phase.PROGRESSING, "1 pod to be ready"),
        ({"minReadySeconds": 9}, {"availableReplicas": 1}, Phase.PROGRESSING, "2 pods to be available"),
    ],
)
def test_progress(rolling: Json, status: Json, phase: Phase, words: str) -> None:
    found = progress(_seen(document(3, rolling=rolling), **status))
    assert (found.phase, words in found.message) == (phase, True), found.message


@pytest.mark.parametrize(("updated", "phase"), [(3, Phase.DONE), (2, Phase.FAILED)])
def test_progress_with_on_delete(updated: int, phase: Phase) -> None:
    given = document(3)
    given["spec"]["updateStrategy"] = {"type": "OnDelete"}
    assert progress(_seen(given, updatedReplicas=updated)).phase is phase


def test_a_stopped_rollout_has_failed() -> None:
    told = [{"type": "FailureBudgetExceeded", "status": "True", "message": "too many"}]
    found = progress(_seen(document(3), conditions=told))
    assert (found.phase, "too many" in found.message) == (Phase.FAILED, True)


def test_settings() -> None:
    given = document(
        10,
        parallel=True,
        rolling={"maxUnavailable": "25%", "partition": 3, "unorderedUpdate": {}},
        scaleStrategy={"maxUnavailable": "10%"},
        reserveOrdinals=[1, "4-6"],
    )
    assert settings(given) == [
        ("Order", "Parallel"),
        ("Strategy", "RollingUpdate, ReCreate, unordered"),
        ("Partition", "3"),
        ("Max Unavailable", "25% (2 pods)"),
        ("Max Unavailable When Scaled", "10% (1 pods)"),
        ("Reserved Ordinals", "1, 4-6"),
    ]


def test_where_min_ready_seconds_is() -> None:  # ST-9
    assert FACE.min_ready == ("spec", "updateStrategy", "rollingUpdate", "minReadySeconds")
