"""Verbs and jobs that have ended."""

from __future__ import annotations

import pytest

from kruise.machinery.documents import Json
from kruise.verbs.ended import must_go_on
from kruise.verbs.errors import VerbError
from kruise.verbs.lookup import find

TIME = "2030-01-01T12:00:00Z"


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("broadcastjobs", {"phase": "completed", "completionTime": TIME}),
        ("broadcastjobs", {"phase": "failed", "completionTime": TIME}),
        ("ephemeraljobs", {"phase": "Succeeded", "completionTime": TIME}),
        ("imagepulljobs", {"completionTime": TIME}),
    ],
)
def test_a_job_that_has_ended_is_not_changed(kind: str, status: Json) -> None:
    how = f"{status['phase'].lower()} at {TIME}" if "phase" in status else f"at {TIME}"
    with pytest.raises(VerbError, match=rf"/one has ended \({how}\): nothing follows from a change; delete it"):
        must_go_on(find(f"{kind}.apps.kruise.io"), {"metadata": {"name": "one"}, "status": status})


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("broadcastjobs.apps.kruise.io", {}),
        ("broadcastjobs.apps.kruise.io", {"phase": "running", "desired": 3, "succeeded": 3}),
        ("broadcastjobs.apps.kruise.io", {"phase": "paused"}),
        ("clonesets.apps.kruise.io", {"completionTime": TIME}),
    ],
)
def test_others_are(kind: str, status: Json) -> None:
    must_go_on(find(kind), {"metadata": {"name": "one"}, "status": status})
