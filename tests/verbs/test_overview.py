"""Pods by revision and state, and what `describe rollout` shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.faces.native import DAEMON_SET, DEPLOYMENT, SERVICE, STATEFUL_SET
from kruise.verbs import history, overview, podstates
from kruise.verbs.errors import VerbError
from kruise.verbs.lookup import find
from kruise.verbs.podstates import PodState, Side
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.verbs.objects import cloneset, container, controller_revision, native, pod, replica_set, template

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
OLD, NEW = template(container(image="nginx:1.25")), template(container(image="nginx:1.26"))
REVISIONS = [controller_revision(1, OLD), controller_revision(2, NEW)]


def states(*pods: Any, document: Any = None) -> list[PodState]:
    document = document or cloneset(status={"updateRevision": "web-2"})
    return podstates.states(CLONE_SET, document, pods, history.revisions_of(CLONE_SET, document, REVISIONS))


@pytest.mark.parametrize(
    ("facts", "word", "side"),
    [
        ({}, "Ready", Side.DONE),
        ({"revision": "web-1"}, "Ready", Side.OLD),
        ({"revision": "1"}, "Ready", Side.OLD),
        ({"ready": False}, "NotReady", Side.MOVING),
        ({"ready": False, "phase": "Pending"}, "Starting", Side.MOVING),
        ({"ready": False, "phase": "Pending", "node": ""}, "Pending", Side.MOVING),
        ({"ready": False, "waiting": "ImagePullBackOff"}, "ImagePullBackOff", Side.MOVING),
        ({"ready": False, "waiting": "ContainerCreating", "phase": "Pending"}, "Starting", Side.MOVING),
        ({"revision": "web-1", "terminating": True}, "Terminating", Side.MOVING),
        ({"revision": "web-1", "ready": False, "waiting": "CrashLoopBackOff"}, "CrashLoopBackOff", Side.OLD),
        ({"phase": "Failed", "ready": False}, "Failed", Side.MOVING),
        ({"labels": {"lifecycle.apps.kruise.io/state": "PreparingUpdate"}}, "PreparingUpdate", Side.MOVING),
        ({"conditions": [{"type": "InPlaceUpdateReady", "status": "False"}]}, "Updating", Side.MOVING),
    ],
)
def test_one_word_for_a_pod(facts: dict[str, Any], word: str, side: Side) -> None:
    [state] = states(pod("web-a", **facts))
    assert (state.state, state.side) == (word, side)


def test_pods_of_others_are_left_out_and_new_ones_come_first() -> None:
    found = states(
        pod("web-a", revision="web-1"), pod("web-b"), pod("web-c", owner="other"), pod("web-d", revision="x")
    )
    assert [(one.name, one.revision, one.is_new) for one in found] == [
        ("web-b", 2, True),
        ("web-a", 1, False),
        ("web-d", 0, False),
    ]


def test_pods_of_a_deployment_belong_to_its_replicasets() -> None:
    document = native("Deployment")
    revisions = history.revisions_of(DEPLOYMENT, document, [replica_set(1, OLD), replica_set(2, NEW)])
    pods = [pod("a", owner="rs-1"), pod("b", owner="rs-2"), pod("c", owner="rs-9")]
    found = podstates.states(DEPLOYMENT, document, pods, revisions)
    assert [(one.name, one.is_new) for one in found] == [("b", True), ("a", False)]


def test_a_job_has_no_pods_that_are_updated() -> None:
    """Its message has the numbers."""
    status = {"phase": "running", "desired": 3, "active": 2, "succeeded": 1, "failed": 0}
    document = {"kind": "BroadcastJob", "metadata": {"name": "web", "namespace": "demo"}, "spec": {}, "status": status}
    lines = overview.described(overview.overview(find("bcj"), document, [], []), NOW)
    assert any("1 succeeded, 0 failed, 2 active of 3 nodes" in line for line in lines)
    assert not any(line.startswith("Pods:") for line in lines)


def test_describing_a_cloneset() -> None:
    document = cloneset(
        replicas=5,
        rolling={"podUpdatePolicy": "InPlaceIfPossible", "partition": "40%", "maxUnavailable": "20%", "paused": True},
        pods=NEW,
        minReadySeconds=3,
        lifecycle={"inPlaceUpdate": {}, "preDelete": {}},
        status={
            "replicas": 5,
            "updatedReplicas": 1,
            "readyReplicas": 2,
            "updateRevision": "web-2",
            "currentRevision": "web-1",
        },
    )
    document["spec"]["updateStrategy"]["rollingUpdate"]["inPlaceUpdateStrategy"] = {"gracePeriodSeconds": 5}
    revisions = history.revisions_of(CLONE_SET, document, REVISIONS)
    pods = [pod("web-a"), pod("web-b", revision="web-1", ready=False)]
    view = overview.overview(CLONE_SET, document, pods, revisions, causes=[("web-b", "the partition keeps it")])
    assert overview.described(view, NOW) == [
        "Name:             web",
        "Namespace:        demo",
        "Kind:             cloneset.apps.kruise.io",
        "Status:           Progressing",
        "Message:          Waiting for partitioned roll out to finish: 1 out of 3 new pods have been updated... "
        "(the CloneSet is paused: kruise rollout resume lets it go on)",
        "Strategy:         RollingUpdate, InPlaceIfPossible",
        "Partition:        40% (2 pods)",
        "Max Unavailable:  20% (1 pod)",
        "Max Surge:        0",
        "In-Place Grace:   5s",
        "Hooks:            inPlaceUpdate, preDelete",
        "Paused:           true",
        "Min Ready:        3s",
        "Images:           main=nginx:1.26",
        "Pods:             5 desired, 5 total, 1 updated (of 3), 2 ready, 0 available",
        "",
        "REVISION   NAME    ROLE      PODS   READY   IMAGES",
        "2          web-2   update    1      1       main=nginx:1.26",
        "1          web-1   current   1      0       main=nginx:1.25",
        "",
        "POD     REVISION   STATE      READY   RESTARTS   AGE    NODE",
        "web-a   2          Ready      1/1     1          120m   node-1",
        "web-b   1          NotReady   0/1     1          120m   node-1",
        "",
        "HELD    BECAUSE",
        "web-b   the partition keeps it",
    ]
    data = overview.as_data(view, NOW)
    assert data["progress"]["phase"] == "Progressing"
    assert data["settings"]["Partition"] == "40% (2 pods)"
    assert data["causes"] == {"web-b": "the partition keeps it"}
    assert data["pods"][0]["age"] == "120m"


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (DEPLOYMENT, {"strategy": {"type": "Recreate"}}, {"Strategy": "Recreate"}),
        (
            DEPLOYMENT,
            {"progressDeadlineSeconds": 600},
            {
                "Strategy": "RollingUpdate",
                "Max Unavailable": "25% (0 pods)",
                "Max Surge": "25% (1 pod)",
                "Progress Deadline": "600s",
            },
        ),
        (
            STATEFUL_SET,
            {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {"Strategy": "RollingUpdate", "Partition": "2", "Max Unavailable": "1"},
        ),
        (
            DAEMON_SET,
            {"updateStrategy": {"type": "OnDelete"}},
            {"Strategy": "OnDelete", "Max Unavailable": "1", "Max Surge": "0"},
        ),
    ],
)
def test_limits_of_native_kinds(kind: Any, spec: dict[str, Any], expected: dict[str, str]) -> None:
    view = overview.overview(kind, native(kind.resource.kind, **spec), [], [])
    assert dict(view.settings) == expected


def test_a_kind_without_history_has_no_numbers_of_revisions() -> None:
    shown = overview.overview(CLONE_SET, cloneset(), [pod("web-a")], [])
    assert overview.described(shown, NOW)[-1].split()[:2] == ["web-a", "<none>"]


def test_what_does_not_roll_out_has_no_overview() -> None:
    with pytest.raises(VerbError, match="service/web has no rollout"):
        overview.overview(SERVICE, native("Service"), [], [])
