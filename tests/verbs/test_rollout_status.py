"""How far a rollout has got (KK-1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.faces import native_progress
from kruise.faces.face import Face, Pods
from kruise.faces.progress import Phase, Progress
from kruise.machinery.documents import Json
from kruise.spread.uniteddeployment.face import progress as united_progress
from kruise.workloads.cloneset import face
from kruise.workloads.daemonset.face import FACE as DAEMON_SET
from kruise.workloads.statefulset.face import FACE as STATEFUL_SET
from tests.verbs.objects import cloneset, native

IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible"}


def figures(total: int, updated: int, ready: int, available: int | None = None, **more: Any) -> Json:
    return {
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": ready,
        "availableReplicas": ready if available is None else available,
        **more,
    }


@pytest.mark.parametrize(
    ("document", "phase", "message"),
    [
        (
            cloneset(rolling=IN_PLACE, status=figures(3, 1, 3)),
            Phase.PROGRESSING,
            "Waiting for partitioned roll out to finish: 1 out of 3 new pods have been updated...",
        ),
        (
            cloneset(replicas=5, rolling={**IN_PLACE, "partition": "40%"}, status=figures(5, 3, 5)),
            Phase.DONE,
            "partitioned roll out complete: 3 new pods have been updated...",
        ),
        (
            cloneset(replicas=3, rolling={**IN_PLACE, "partition": "99%"}, status=figures(3, 0, 3)),
            Phase.PROGRESSING,
            "Waiting for partitioned roll out to finish: 0 out of 1 new pods have been updated...",
        ),
        (cloneset(status=figures(3, 3, 2)), Phase.PROGRESSING, "Waiting for 1 pod to be ready..."),
        (
            cloneset(status=figures(3, 3, 3, updateRevision="web-abc")),
            Phase.DONE,
            "CloneSet rolling update complete 3 pods at revision web-abc...",
        ),
        (cloneset(status=figures(4, 3, 4)), Phase.PROGRESSING, "Waiting for 1 surplus pod to be deleted..."),
        (
            cloneset(status=figures(3, 3, 3, available=1), minReadySeconds=10),
            Phase.PROGRESSING,
            "Waiting for 2 pods to be available...",
        ),
        (
            cloneset(status=figures(3, 3, 3, observedGeneration=1), generation=2),
            Phase.PROGRESSING,
            "Waiting for CloneSet spec update to be observed...",
        ),
        (
            cloneset(rolling={"paused": True}, status=figures(3, 1, 3)),
            Phase.PROGRESSING,
            "Waiting for partitioned roll out to finish: 1 out of 3 new pods have been updated... "
            "(the CloneSet is paused: kruise rollout resume lets it go on)",
        ),
        (
            cloneset(
                status=figures(
                    3,
                    1,
                    2,
                    conditions=[{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}],
                )
            ),
            Phase.FAILED,
            'cloneset "web" exceeded its progress deadline',
        ),
        (
            cloneset(updateStrategy={"type": "OnDelete"}, status=figures(3, 1, 3)),
            Phase.FAILED,
            "rollout status is only available for RollingUpdate strategy type; "
            "pods that keep an older template until somebody deletes them: 2 of 3",
        ),
        (
            cloneset(updateStrategy={"type": "OnDelete"}, status=figures(2, 2, 1)),
            Phase.PROGRESSING,
            "Waiting for 2 pods to be ready...",
        ),
        (
            cloneset(updateStrategy={"type": "OnDelete"}, status=figures(3, 3, 3)),
            Phase.DONE,
            "all 3 pods are ready and have the newest template",
        ),
    ],
)
def test_clonesets(document: Json, phase: Phase, message: str) -> None:  # KK-1
    seen = face.progress(document)
    assert (seen.phase, seen.message) == (phase, message)


def by_hand(kind: Face, total: int, updated: int, ready: int) -> Progress:
    """A workload of ours that should have three pods, of type OnDelete."""
    of_nodes = {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": total,
        "updatedNumberScheduled": updated,
        "numberReady": ready,
        "numberAvailable": ready,
    }
    status = of_nodes if kind.pods is Pods.PER_NODE else figures(total, updated, ready)
    assert kind.progress is not None
    return kind.progress(native(kind.resource.kind, status=status, updateStrategy={"type": "OnDelete"}))


@pytest.mark.parametrize("kind", [face.FACE, STATEFUL_SET, DAEMON_SET], ids=str)
def test_on_delete_means_the_same_for_every_kind_of_ours(kind: Face) -> None:
    """The first creation is waited for. Nobody waits for pods that somebody has to delete."""
    creation = by_hand(kind, 1, 1, 1)
    assert creation.phase is Phase.PROGRESSING
    assert re.fullmatch(r"Waiting for 2 pods to be (ready|available)\.\.\.", creation.message)
    older = by_hand(kind, 3, 2, 3)
    assert older.phase is Phase.FAILED
    assert older.message.startswith("rollout status is only available for RollingUpdate strategy type; ")
    assert older.message.endswith(": 1 of 3")
    done = by_hand(kind, 3, 3, 3)
    assert (done.phase, done.message) == (Phase.DONE, "all 3 pods are ready and have the newest template")


@pytest.mark.parametrize(
    ("status", "phase", "message"),
    [
        (figures(3, 1, 3), Phase.PROGRESSING, ": 1 out of 3 new replicas have been updated..."),
        (figures(4, 3, 4), Phase.PROGRESSING, ": 1 old replicas are pending termination..."),
        (figures(3, 3, 2), Phase.PROGRESSING, ": 2 of 3 updated replicas are available..."),
        (figures(3, 3, 3), Phase.DONE, 'deployment "web" successfully rolled out'),
        (figures(3, 3, 3, observedGeneration=0), Phase.PROGRESSING, "deployment spec update to be observed..."),
        (
            figures(
                3, 3, 3, conditions=[{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
            ),
            Phase.FAILED,
            'deployment "web" exceeded its progress deadline',
        ),
    ],
)
def test_deployments_speak_as_for_kubectl(status: Json, phase: Phase, message: str) -> None:
    seen = native_progress.deployment(native("Deployment", status=status))
    assert seen.phase is phase
    assert seen.message.endswith(message)


@pytest.mark.parametrize(
    ("strategy", "status", "phase", "message"),
    [
        ({}, figures(3, 3, 2), Phase.PROGRESSING, "Waiting for 1 pods to be ready..."),
        (
            {"rollingUpdate": {"partition": 2}},
            figures(3, 0, 3),
            Phase.PROGRESSING,
            "Waiting for partitioned roll out to finish: 0 out of 1 new pods have been updated...",
        ),
        (
            {"rollingUpdate": {"partition": 2}},
            figures(3, 1, 3),
            Phase.DONE,
            "partitioned roll out complete: 1 new pods have been updated...",
        ),
        (
            {},
            figures(3, 2, 3, updateRevision="b", currentRevision="a"),
            Phase.PROGRESSING,
            "waiting for statefulset rolling update to complete 2 pods at revision b...",
        ),
        (  # a rollout that was taken back: its pods still have the revision that is given up
            {},
            figures(3, 2, 3, updateRevision="a", currentRevision="a", currentReplicas=2),
            Phase.PROGRESSING,
            "waiting for statefulset rolling update to complete 2 pods at revision a...",
        ),
        (
            {},
            figures(3, 3, 3, updateRevision="b", currentRevision="b", currentReplicas=3),
            Phase.DONE,
            "statefulset rolling update complete 3 pods at revision b...",
        ),
        (
            {"type": "OnDelete"},
            figures(3, 3, 3),
            Phase.FAILED,
            "rollout status is only available for RollingUpdate strategy type",
        ),
    ],
)
def test_statefulsets_speak_as_for_kubectl(strategy: Json, status: Json, phase: Phase, message: str) -> None:
    seen = native_progress.stateful_set(native("StatefulSet", status=status, updateStrategy=strategy))
    assert (seen.phase, seen.message) == (phase, message)


@pytest.mark.parametrize(
    ("updated", "available", "observed", "phase", "message"),
    [
        (1, 3, 1, Phase.PROGRESSING, ": 1 out of 3 new pods have been updated..."),
        (3, 2, 1, Phase.PROGRESSING, ": 2 of 3 updated pods are available..."),
        (3, 3, 1, Phase.DONE, 'daemon set "web" successfully rolled out'),
        (3, 3, 0, Phase.PROGRESSING, "daemon set spec update to be observed..."),
    ],
)
def test_daemonsets_speak_as_for_kubectl(
    updated: int, available: int, observed: int, phase: Phase, message: str
) -> None:
    status = {
        "desiredNumberScheduled": 3,
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "observedGeneration": observed,
    }
    seen = native_progress.daemon_set(native("DaemonSet", status=status))
    assert seen.phase is phase
    assert seen.message.endswith(message)


@given(
    st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from([0, 2, "50%", "100%"])
)
def test_done_means_done(wanted: int, total: int, updated: int, ready: int, partition: int | str) -> None:
    """Whatever the figures: done is said only when enough are updated, all are ready, and none is too many."""
    seen = face.progress(
        cloneset(replicas=wanted, rolling={"partition": partition}, status=figures(total, updated, ready))
    )
    if seen.phase is Phase.DONE:
        assert updated >= seen.expected
        assert ready >= wanted >= total


def test_pods_beyond_the_wanted_ones_wait_for_newer_ones_that_are_not_ready() -> None:
    """UD-81: Deployments make new pods first. With an image that nobody has, no older pod goes."""
    status = {"observedGeneration": 1, **figures(6, 4, 4), "updatedReadyReplicas": 2}
    document: Json = {"metadata": {"name": "shop", "generation": 1}, "spec": {"replicas": 4}, "status": status}
    found = united_progress(document)
    assert (found.phase, found.message) == (Phase.PROGRESSING, "Waiting for 2 updated pods to be ready...")
    status["updatedReadyReplicas"] = 4
    assert united_progress(document).message == "Waiting for 2 surplus pods to be deleted..."


def test_the_workloads_of_subsets_may_not_have_seen_yet_that_their_pods_are_being_updated() -> None:
    """UD-81: `readyReplicas` is what they said last, and updated pods are counted in the pods."""
    status = {"observedGeneration": 1, **figures(6, 3, 6), "updatedReadyReplicas": 2}
    status["subsetStatuses"] = [{"name": "b", "replicas": 3, "readyReplicas": 3, "partition": 3}]
    document: Json = {"metadata": {"name": "shop", "generation": 1}, "spec": {"replicas": 6}, "status": status}
    found = united_progress(document)
    assert (found.phase, found.message) == (Phase.PROGRESSING, "Waiting for 1 updated pod to be ready...")
    status["updatedReadyReplicas"] = 3
    assert united_progress(document).phase is Phase.DONE
