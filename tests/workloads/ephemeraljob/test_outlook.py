"""What `kruise plan` tells of an EphemeralJob: the pods that its own decision will serve, in its order."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import PODS, Pod
from kruise.faces.outlook import Outlook, Seen
from kruise.workloads.ephemeraljob.face import progress
from kruise.workloads.ephemeraljob.outlook import OUTLOOK
from tests.workloads.ephemeraljob.model import BADLY, CONTAINER, NOW, RUNNING, UID, WELL, job, pod, written


def document(*, uid: str = "", status: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "dbg", "namespace": "demo", "uid": uid},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"ephemeralContainers": [CONTAINER]},
            **spec,
        },
        "status": status or {},
    }


def outlook(body: dict[str, Any], *pods: Pod) -> Outlook:
    return OUTLOOK.outlook(body, Seen(now=NOW, objects={PODS: pods}))


def summary(found: Outlook) -> str:
    return dict(found.facts)["Summary"]


def rows(*pods: Pod, **options: Any) -> list[tuple[str, str, str]]:
    found = outlook(document(**options), *pods)
    return [(wave.strip("-"), name, what) for wave, name, _, what in found.rows]


def test_waves_of_a_new_job() -> None:
    """EJ-18, EJ-22, EJ-36."""
    gets = "gets the containers"
    other = pod(9, metadata={"labels": {"app": "other"}})
    assert rows(pod(3), pod(1), pod(2, age=9), other, parallelism=2) == [
        ("1", "web-2", gets),
        ("1", "web-1", gets),
        ("2", "web-3", gets),
    ]
    assert len(rows(pod(1), pod(2), replicas=1)) == 1


def test_a_failed_container_of_the_job_is_not_served_again() -> None:
    """EJ-39: and whoever is under way keeps its place."""
    assert rows(pod(1, BADLY), pod(2, RUNNING), pod(3), uid=UID) == [
        ("", "web-1", "has them: failed, not served again"),
        ("", "web-2", "has them: running"),
        ("2", "web-3", "gets the containers"),
    ]


def test_a_failed_container_of_another_job_leaves_the_pod_out() -> None:
    """EJ-20."""
    found = outlook(document(), pod(1, BADLY, owner="other"), pod(2))
    assert summary(found) == "1 pod gets dbg, 1 at a time"
    assert [row[3] for row in found.rows] == [
        "gets the containers",
        "left out: it has another container called dbg",
    ]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "main"}, "it has a container called main"),
        ({"name": "first"}, "it has a container called first"),
        ({"targetContainerName": "app"}, "it has no container called app"),
        ({"volumeMounts": [{"name": "data", "mountPath": "/d"}, {"name": "log"}]}, "it has no volume called log"),
    ],
)
def test_what_the_server_will_refuse_is_told_before(fields: Any, why: str) -> None:
    """EJ-16, EJ-44: and whoever takes the containers has its turn."""
    own = {"containers": [{"name": "main"}], "initContainers": [{"name": "first"}], "volumes": [{"name": "data"}]}
    other = {"containers": [{"name": "app"}], "volumes": [{"name": "data"}, {"name": "log"}]}
    template = {"ephemeralContainers": [{**CONTAINER, **fields}]}
    found = outlook(document(template=template), pod(1, spec=own), pod(2, spec=other))
    assert [(row[0], row[3]) for row in found.rows] == [("1", "gets the containers"), ("-", f"will be refused: {why}")]
    assert summary(found).startswith("1 pod gets ")
    assert found.notes[0].startswith("1 pod is never served")


def test_what_is_there_is_no_obstacle() -> None:
    own = {"containers": [{"name": "main"}], "initContainers": [{"name": "first"}], "volumes": [{"name": "data"}]}
    fields = {"targetContainerName": "first", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
    found = outlook(document(template={"ephemeralContainers": [{**CONTAINER, **fields}]}), pod(1, spec=own))
    assert ([row[3] for row in found.rows], found.notes) == (["gets the containers"], ())


def test_what_will_not_happen_is_told() -> None:
    assert summary(outlook(document(template={"ephemeralContainers": []}), pod(1))) == "no pod gets any container"
    found = outlook(document(paused=True), pod(1))
    assert summary(found) == "no pod gets dbg"
    assert "paused" in found.notes[0]
    assert "parallelism" in outlook(document(parallelism=0), pod(1)).notes[0]
    assert "no running pod matches" in outlook(document()).notes[0]
    assert "spec.replicas is 3" in outlook(document(replicas=3), pod(1)).notes[0]
    assert outlook(document(replicas=0), pod(1)).notes == ("spec.replicas is 0, so no pod is served",)
    ended = document(uid=UID, status={"completionTime": "2026-01-02T03:04:05Z"})
    assert outlook(ended, pod(1)).rows == ()


@pytest.mark.parametrize(
    ("state", "condition", "expected"), [(WELL, "JobSucceeded", "Done"), (BADLY, "JobFailed", "Failed")]
)
def test_one_that_ends_while_it_is_paused_is_waited_for_no_more(state: Any, condition: str, expected: str) -> None:
    """EJ-30: its phase stays Paused for good."""
    subject = job(paused=True)
    status = written(subject, pod(1, state))
    assert status["phase"] == "Paused"
    assert condition in {one["type"] for one in status["conditions"]}
    assert progress({"metadata": {"name": "dbg"}, "spec": {}, "status": status}).phase == expected
