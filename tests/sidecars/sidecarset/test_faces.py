"""What commands know of SidecarSets: progress, history, whose a container is, and misspelt fields."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.faces.progress import Phase
from kruise.machinery import codec
from kruise.reasons.diagnosis import Place, diagnose
from kruise.sidecars.sidecarset.admission import warnings_of
from kruise.sidecars.sidecarset.content import content_of, revision_data
from kruise.sidecars.sidecarset.face import FACE, owner_of, progress
from kruise.verbs import history, images, undo
from kruise.workloads.shared.validation import Candidate
from tests.support.sidecarsets import NOW, SIDE, pod, sidecar_set, stored, with_sidecars

Json = dict[str, Any]


def told(generation: int = 1, *, strategy: Json | None = None, **status: Any) -> Json:
    whole = sidecar_set(updateStrategy=strategy or {})
    return {
        **whole,
        "metadata": {**whole["metadata"], "generation": generation},
        "status": {"observedGeneration": 1, **status},
    }


@pytest.mark.parametrize(
    ("document", "phase", "words"),
    [
        (told(2), Phase.PROGRESSING, "spec update to be observed"),
        (told(matchedPods=4, updatedPods=1), Phase.PROGRESSING, "1 out of 4 new pods"),
        (told(matchedPods=4, updatedPods=4, updatedReadyPods=3), Phase.PROGRESSING, "1 updated pod to be ready"),
        (told(matchedPods=4, updatedPods=4, updatedReadyPods=4), Phase.DONE, "successfully rolled out"),
        (told(), Phase.DONE, "successfully rolled out"),
        (
            told(strategy={"partition": "50%"}, matchedPods=4, updatedPods=2, updatedReadyPods=2),
            Phase.DONE,
            "partitioned roll out complete: 2",
        ),
        (told(strategy={"type": "NotUpdate"}, matchedPods=4), Phase.DONE, "keep an older content"),
        (
            told(matchedPods=4, updatedPods=1, updatedReadyPods=1, notSelectedPods=2),
            Phase.PROGRESSING,
            "1 out of 2 new pods",
        ),
        (
            told(matchedPods=4, updatedPods=2, updatedReadyPods=2, notSelectedPods=2),
            Phase.DONE,
            "2 pods updated; 2 pods outside of updateStrategy.selector keep an older content",
        ),
        (
            told(matchedPods=4, updatedPods=1, updatedReadyPods=1, notSelectedPods=2, notUpgradablePods=1),
            Phase.DONE,
            "and 1 pod that cannot be updated in place (kruise why sidecarset/logs) keep",
        ),
        (
            told(strategy={"partition": 1}, matchedPods=4, updatedPods=2, updatedReadyPods=2, notUpgradablePods=1),
            Phase.DONE,
            "cannot be updated in place",
        ),
        (
            told(matchedPods=4, failureBudget={"failed": 1, "pods": [{"name": "p", "failure": "bad"}]}),
            Phase.FAILED,
            "failure budget: p (bad)",
        ),
    ],
)
def test_progress(document: Json, phase: Phase, words: str) -> None:
    found = progress(document)
    assert (found.phase, words in found.message) == (phase, True), found.message


def test_an_undo_puts_the_whole_content_back() -> None:
    """Volumes and init containers, too; selectors and strategies stay."""
    old = sidecar_set(volumes=[{"name": "v", "emptyDir": {}}])
    new = sidecar_set(containers=[{**SIDE, "image": "nginx:1.26"}], updateStrategy={"partition": 1})
    held = [
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": f"logs-{number}", "ownerReferences": [{"uid": "u", "controller": True}]},
            "revision": number,
            "data": codec.decode(revision_data(stored(one)), object),
        }
        for number, one in ((1, old), (2, new))
    ]
    document = {**new, "metadata": {**new["metadata"], "uid": "u"}}
    known = history.revisions_of(FACE, document, held)
    back = undo.roll_back(FACE, document, known, 0)
    assert back.revision.number == 1
    assert back.changed["spec"]["containers"][0]["image"] == "nginx:1.25"
    assert back.changed["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert back.changed["spec"]["updateStrategy"] == {"partition": 1}
    assert undo.roll_back(FACE, back.changed, known, 1).skipped


def test_set_image() -> None:
    changed = images.change(FACE, sidecar_set(), {"side": "nginx:1.27"})
    assert changed["spec"]["containers"][0]["image"] == "nginx:1.27"


def test_the_container_of_a_set_is_corrected_there() -> None:
    """`why` of whatever workload names the SidecarSet, and the command that helps."""
    hot = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "empty:1"}}
    whole = with_sidecars(pod(), content_of(stored(sidecar_set(containers=[hot]))))
    assert owner_of(whole["metadata"]["annotations"], "side-2") == ("logs", "side")
    assert owner_of(whole["metadata"]["annotations"], "main") is None
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
    whole["spec"]["nodeName"] = "n"
    whole["status"] = {
        "phase": "Pending",
        "containerStatuses": [{"name": name, "state": waiting} for name in ("side-1", "main")],
    }
    found = diagnose(codec.convert(whole, Pod), min_ready_seconds=0, now=NOW, place=Place(target="cloneset/web"))
    remedies = [link.remedy for link in found]
    assert "kruise set image sidecarset/logs side=IMAGE" in remedies[0]
    assert "cloneset/web" not in remedies[0]
    assert "kruise set image cloneset/web main=IMAGE" in remedies[1]


def test_a_number_behind_a_name_makes_no_twin() -> None:
    """Each container belongs to the SidecarSet that has put it there, and to no other."""
    plain, numbered = content_of(stored(sidecar_set("a"))), sidecar_set("b", containers=[{**SIDE, "name": "side-1"}])
    annotations = with_sidecars(pod(), plain, content_of(stored(numbered)))["metadata"]["annotations"]
    assert owner_of(annotations, "side") == ("a", "side")
    assert owner_of(annotations, "side-1") == ("b", "side-1")
    assert owner_of(annotations, "side-2") is None


def test_misspelt_fields_are_told_of() -> None:
    body = sidecar_set(
        containers=[{**SIDE, "imagePullPolcy": "Never", "podInjectPolicy": "BeforeAppContainer"}],
        volumes=[{"name": "v", "emptyDr": {}}],
    )
    warnings = list(warnings_of(Candidate(body=body, reading=stored(sidecar_set()).spec), {}, {}))
    assert [text for text in warnings if text] == [
        'unknown field "spec.containers[0].imagePullPolcy"',
        'unknown field "spec.volumes[0].emptyDr"',
    ]
