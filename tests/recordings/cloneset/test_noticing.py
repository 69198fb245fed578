"""The player notices: a recording with one fact changed is not equal any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.cloneset.differences import CHOSEN
from tests.recordings.cloneset.directions import DIRECTIONS
from tests.recordings.cloneset.kind import KIND
from tests.recordings.parsing import read
from tests.recordings.player import play

DATA = Path(__file__).parent / "data"
IMAGE = "cloneset-inplace-image"

CHANGES = {
    "a number in status": (IMAGE, '"updatedReplicas":5}}', '"updatedReplicas":4}}', "status.updatedReplicas"),
    "a label": (IMAGE, '"pod-template-hash":"rev-2"', '"pod-template-hash":"rev-9"', "pod labels"),
    "a restart": (IMAGE, "nginx:1.26 restartCount=1]", "nginx:1.26 restartCount=2]", "pod container main"),
    "the state annotation": (IMAGE, r"\"updateImages\":true", r"\"updateImages\":1", "pod annotations"),
    "a state": (IMAGE, '"lifecycle.apps.kruise.io/state":"Updating"', '"x":"y"', "pod labels"),
    "the number of events": (IMAGE, "(revision web-rev-2) | 5 / 5", "(revision web-rev-2) | 4 / 4", "events"),
    "the text of an event": (IMAGE, "successfully update pod pod-N", "updated pod pod-N", "events"),
    "a revision hash": (IMAGE, "`web-cd5565c86`", "`web-cd5565c87`", "revision name"),
    "the text of a refusal": ("cloneset-inplaceonly", "only allowed to update", "never update", "answer"),
    "the code of a refusal": ("cloneset-inplaceonly", "HTTP 422", "HTTP 400", "answer"),
    "a condition's message": (
        "cloneset-inplaceonly",
        '"find Pod pod-3 update strategy',
        '"find Pod pod-3 type',
        "condition FailedUpdate",
    ),
    "a default in the template": (
        "cloneset-create",
        "terminationGracePeriodSeconds: 30",
        "terminationGracePeriodSeconds: 31",
        "spec.template",
    ),
    "a revision that is kept": (
        "cloneset-revision-history",
        "ControllerRevision/web-rev-1 DELETED",
        "Other/web-rev-1 DELETED",
        "revision web-rev-1",
    ),
    "a revision's number": ("cloneset-failed-pods", '{"revision":3}', '{"revision":4}', "revision revision"),
    "the order of updates": (
        "cloneset-priority-weight",
        "successfully update pod pod-1 in-place",
        "successfully update pod pod-6 in-place",
        "pod turn of update",
    ),
    "how pods are spread": (
        "cloneset-topology-spread",
        "Pod/pod-1 ADDED node=sim-1",
        "Pod/pod-1 ADDED node=sim-0",
        "spread",
    ),
    "who is deleted": (
        "cloneset-scaledown-order",
        'Pod/pod-6 {"metadata":{"generation":2,"deletionTimestamp"',
        'Pod/pod-7 {"metadata":{"generation":2,"deletionTimestamp"',
        "pod turn of deletion",
    ),
    "a writer of KruisePodReady": (
        "cloneset-lifecycle-predelete-label",
        '"key":"preDeleteHook"',
        '"key":"other"',
        "pod condition KruisePodReady",
    ),
    "the scale subresource": ("cloneset-scale-subresource", "selector: app=web", "selector: app=web2", "scale"),
    "the owner of a claim": (
        "cloneset-vct",
        'data-pod-4 ADDED {"metadata":{"name":"data-pod-4","namespace":"demo","labels":{"app":"web"',
        'data-pod-4 ADDED {"metadata":{"name":"data-pod-4","namespace":"demo","labels":{"app":"other"',
        "pod claims",
    ),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_a_changed_fact_is_noticed(changed: str, tmp_path: Path) -> None:
    name, fact, instead, aspect = CHANGES[changed]
    text = (DATA / f"{name}.md").read_text(encoding="utf-8")
    assert fact in text
    path = tmp_path / f"{name}.md"
    path.write_text(text.replace(fact, instead), encoding="utf-8")
    found = play(read(path), KIND, DIRECTIONS.get(name)).differences
    new = [one for one in found if not any(entry.covers(str(one)) for entry in CHOSEN.get(name, ()))]
    assert aspect in {one.aspect for one in new}, [str(one) for one in new]
