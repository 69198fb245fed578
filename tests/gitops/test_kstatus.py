"""What kstatus, with which Flux waits, makes of our objects: docs/gitops.md says the same."""

from __future__ import annotations

from typing import Any

import pytest

from kruise import kinds
from kruise.kinds import face_of
from tests.support.health import Health, health_of
from tests.support.installed import DEFINITIONS
from tests.support.kstatus import Status, status_of

Json = dict[str, Any]


def document(*, generation: int = 1, observed: int | None = None, deleted: bool = False, **conditions: str) -> Json:
    metadata: Json = {"name": "web", "generation": generation}
    if deleted:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    status: Json = {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}
    if observed is not None:
        status["observedGeneration"] = observed
    return {"metadata": metadata, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (document(), Status.CURRENT),
        (document(generation=2, observed=1), Status.IN_PROGRESS),
        (document(generation=2, observed=2), Status.CURRENT),
        (document(Reconciling="True"), Status.IN_PROGRESS),
        (document(Reconciling="False"), Status.CURRENT),
        (document(Stalled="True"), Status.FAILED),
        (document(Ready="False"), Status.IN_PROGRESS),
        (document(Ready="Unknown"), Status.IN_PROGRESS),
        (document(Ready="True"), Status.CURRENT),
        (document(deleted=True, Stalled="True"), Status.TERMINATING),
        (document(Complete="True"), Status.CURRENT),
    ],
)
def test_how_an_unknown_kind_is_read(given: Json, expected: Status) -> None:
    assert status_of(given) == expected


def test_it_waits_for_the_spec_to_be_seen_where_the_status_tells_of_it() -> None:
    telling = []
    for face, _ in kinds.packages():
        definition = DEFINITIONS.get(f"{face.resource.plural}.{face.resource.group}")
        if definition is None:
            continue
        [version] = [one for one in definition["spec"]["versions"] if one["name"] == face.resource.version]
        status = version["schema"]["openAPIV3Schema"]["properties"].get("status", {}).get("properties", {})
        if "observedGeneration" in status:
            telling.append(face.resource.kind)
            assert status_of(document(generation=2, observed=1)) == Status.IN_PROGRESS
            assert health_of(face, document(generation=2, observed=1)) == Health.PROGRESSING
    assert {"CloneSet", "StatefulSet", "DaemonSet", "SidecarSet", "UnitedDeployment"} <= set(telling)


def test_it_does_not_wait_for_pods() -> None:
    """The health that Argo CD gets does."""
    face = face_of("apps.kruise.io", "CloneSet")
    assert face is not None
    half = document(observed=1)
    half["spec"] = {"replicas": 2}
    half["status"] |= {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "updatedReplicas": 1}
    assert status_of(half) == Status.CURRENT
    assert health_of(face, half) == Health.PROGRESSING
