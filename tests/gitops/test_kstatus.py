"""What kstatus, with which Flux waits, makes of our objects: docs/gitops.md says the same."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kruise import kinds
from kruise.faces import kstatus
from kruise.faces.face import Face, GroupKind
from kruise.faces.progress import Phase, is_observed
from tests.gitops.test_health import OURS, PLACES, document_of
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


ROLLING = [kind for kind, face in OURS.items() if face.history is not None]


def test_all_kinds_that_roll_out_tell_of_it() -> None:
    assert {kind for _, kind in ROLLING} == {"CloneSet", "StatefulSet", "DaemonSet", "UnitedDeployment", "SidecarSet"}


@pytest.mark.parametrize("kind", ROLLING, ids=lambda kind: kind[1])
def test_what_is_told_agrees_with_what_argo_cd_shows(kind: GroupKind) -> None:
    face = OURS[kind]
    progress = face.progress
    assert progress is not None

    @settings(max_examples=400, deadline=None)
    @given(st.fixed_dictionaries(PLACES[kind]))
    def check(values: Json) -> None:
        assume(values["status.observedGeneration"] <= values["metadata.generation"])
        found = document_of(values)
        told = kstatus.told(progress, found)
        if told is not None:
            known = found["status"].get("conditions") or []
            found["status"]["conditions"] = [*known, {"type": told.kind, "status": "True"}]
            assert told.message
        assert status_of(found) == expected(face, found)

    check()


def expected(face: Face, found: Json) -> Status:
    """A pause of what has nothing to do is none that anybody has to wait for."""
    assert face.progress is not None
    seen = face.progress(found)
    match health_of(face, found):
        case Health.DEGRADED:
            # An object whose newest spec nobody has seen is in progress, whatever it said before.
            return Status.FAILED if is_observed(found) else Status.IN_PROGRESS
        case Health.HEALTHY:
            return Status.CURRENT
        case Health.SUSPENDED if seen.phase is Phase.DONE and seen.updated >= seen.wanted:
            return Status.CURRENT
        case _:
            return Status.IN_PROGRESS
