"""The promises that are checked at every event: each is noticed when it is broken."""

from __future__ import annotations

from typing import Any

from kruise.machinery.clock import ManualClock
from tests.recordings.invariants import Invariants
from tests.recordings.parsing import Json


def cloneset(**strategy: Any) -> Json:
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "updateStrategy": {"maxUnavailable": 1, **strategy}},
        "status": {"updateRevision": "web-new"},
    }


def pod(name: str, *, revision: str = "web-old", in_place: str = "True", terminating: bool = False) -> Json:
    metadata: Json = {
        "name": name,
        "labels": {"controller-revision-hash": revision},
        "ownerReferences": [{"kind": "CloneSet", "name": "web"}],
    }
    if terminating:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    conditions = [
        {"type": "Ready", "status": in_place, "lastTransitionTime": "2030-01-01T00:00:00Z"},
        {"type": "InPlaceUpdateReady", "status": in_place},
    ]
    return {"metadata": metadata, "status": {"phase": "Running", "conditions": conditions}}


def watching(**strategy: Any) -> Invariants:
    invariants = Invariants(ManualClock())
    invariants.see_workload("ADDED", cloneset(**strategy))
    for name in ("a", "b"):
        invariants.see_pod("ADDED", pod(name))
    assert invariants.broken == []
    return invariants


def test_a_pod_beyond_the_surge_is_noticed() -> None:
    """CS-75."""
    allowed, broken = watching(maxSurge=1), watching()
    for invariants in (allowed, broken):
        invariants.see_pod("ADDED", pod("c"))
    assert allowed.broken == []
    assert broken.broken == ["3 pods where replicas and surge allow 2"]


def test_an_update_past_the_partition_is_noticed() -> None:
    """CS-79."""
    invariants = watching(partition=1)
    invariants.see_pod("MODIFIED", pod("a", revision="web-new"))
    assert invariants.broken == []
    invariants.see_pod("MODIFIED", pod("b", revision="web-new"))
    assert invariants.broken == ["2 pods at the update revision in spite of partition 1"]


def test_too_many_pods_out_of_service_are_noticed() -> None:
    """CS-102."""
    invariants = watching()
    invariants.see_pod("MODIFIED", pod("a", in_place="False"))
    assert invariants.broken == []
    invariants.see_pod("MODIFIED", pod("b", in_place="False"))
    assert invariants.broken == ["b was taken out of service: 0 available pods of 2, maxUnavailable 1"]


def test_a_deletion_beyond_the_budget_is_noticed() -> None:
    """CS-78."""
    invariants = watching(maxUnavailable=0, maxSurge=1)
    invariants.see_pod("MODIFIED", pod("a", terminating=True))
    assert invariants.broken == ["a was taken out of service: 1 available pods of 2, maxUnavailable 0"]


def test_what_a_user_does_breaks_no_promise() -> None:
    invariants = watching(maxUnavailable=0, maxSurge=1)
    invariants.user_deleted.add("a")
    invariants.see_pod("MODIFIED", pod("a", terminating=True))
    invariants.touched("b")
    invariants.see_pod("MODIFIED", pod("b", in_place="False"))
    assert invariants.broken == []
