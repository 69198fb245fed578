"""`set partition`, `rollout promote` and `rollout abort` on objects, without a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.faces import native
from kruise.faces.face import Face
from kruise.machinery.documents import Json, patch_between, value_at
from kruise.verbs import partitioning
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.history import Revision
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from kruise.workloads.daemonset.face import FACE as DAEMON_SET
from tests.verbs.objects import cloneset, container, template
from tests.verbs.objects import native as native_object

PARTITION = ("spec", "updateStrategy", "rollingUpdate", "partition")
PAUSED = ("spec", "updateStrategy", "rollingUpdate", "paused")
OLD, NEW = template(container(image="nginx:1.25")), template(container(image="nginx:1.26"))
REVISIONS = [
    Revision(number=1, name="web-1", template=OLD, source={}),
    Revision(number=2, name="web-2", template=NEW, source={}),
]


def face(kind: str) -> Face:
    return next(one for one in native.FACES if one.resource.kind == kind)


def status(current: str, *, updated: int, total: int = 3, **more: Any) -> Json:
    return {
        "currentRevision": current,
        "updateRevision": "web-2",
        "updatedReplicas": updated,
        "replicas": total,
        "readyReplicas": total,
        **more,
    }


@given(st.integers(0, 999_999_999))
def test_numbers_are_partitions(number: int) -> None:
    assert partitioning.parse(str(number)) == number


@given(st.integers(0, 100))
def test_percentages_stay_as_they_are_written(number: int) -> None:
    assert partitioning.parse(f"{number}%") == f"{number}%"


@pytest.mark.parametrize("text", ["", "-1", "101%", "1.5", "half", "%", "10 %", "1e3"])
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match="is no partition: give a number of pods, such as 2, or a percentage"):
        partitioning.parse(text)


def test_only_the_partition_changes() -> None:
    before = cloneset(rolling={"maxUnavailable": 1})
    after = partitioning.set_partition(CLONE_SET, before, "40%")
    assert value_at(after, PARTITION) == "40%"
    assert patch_between(before, partitioning.set_partition(CLONE_SET, before, 0))[1:] == [
        {"op": "add", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": 0}
    ]


def test_kinds_differ_in_what_they_take() -> None:
    document = native_object("StatefulSet")
    assert value_at(partitioning.set_partition(face("StatefulSet"), document, 2), PARTITION) == 2
    with pytest.raises(VerbError, match="the partition of a StatefulSet is a number"):
        partitioning.set_partition(face("StatefulSet"), document, "50%")
    with pytest.raises(VerbError, match="has no partition: a DaemonSet always goes on to all its pods"):
        partitioning.set_partition(face("DaemonSet"), native_object("DaemonSet"), 2)


def test_promoting_ends_the_partition_and_the_pause() -> None:
    after = partitioning.promote(CLONE_SET, cloneset(rolling={"partition": "50%", "paused": True}))
    assert (value_at(after, PARTITION), value_at(after, PAUSED)) == (0, False)
    plain = cloneset(rolling={"maxUnavailable": 1})
    assert partitioning.promote(CLONE_SET, plain) == plain
    with pytest.raises(VerbError, match="has neither a partition nor a pause"):
        partitioning.promote(face("DaemonSet"), native_object("DaemonSet"))


@pytest.mark.parametrize(
    "change",
    [
        partitioning.promote,
        lambda kind, document: partitioning.set_partition(kind, document, 1),
        lambda kind, document: partitioning.abort(kind, document, REVISIONS),
    ],
)
def test_nothing_of_this_is_for_on_delete(change: Callable[[Face, Json], object]) -> None:
    document = cloneset(updateStrategy={"type": "OnDelete"}, status=status("web-1", updated=1))
    with pytest.raises(VerbError, match="has type OnDelete"):
        change(CLONE_SET, document)


def test_aborting_takes_all_pods_back_to_the_current_template() -> None:
    """The partition has to go: it would keep pods at the template that is given up."""
    document = cloneset(pods=NEW, rolling={"partition": 2, "paused": True}, status=status("web-1", updated=1))
    after = partitioning.abort(CLONE_SET, document, REVISIONS).changed
    assert value_at(after, ("spec", "template")) == OLD
    assert (value_at(after, PARTITION), value_at(after, PAUSED)) == (0, False)


def test_aborting_goes_back_to_what_was_current_and_not_to_the_one_before_the_newest() -> None:
    middle = Revision(number=2, name="web-2", template=template(container(image="nginx:broken")), source={})
    newest = Revision(number=3, name="web-3", template=NEW, source={})
    document = cloneset(pods=NEW, status={**status("web-1", updated=1), "updateRevision": "web-3"})
    back = partitioning.abort(CLONE_SET, document, [REVISIONS[0], middle, newest])
    assert back.revision.name == "web-1"


def test_what_is_over_is_not_aborted() -> None:
    done = cloneset(pods=NEW, status=status("web-2", updated=3))
    with pytest.raises(VerbError, match=r"no rollout is under way .*: kruise rollout undo cloneset/web"):
        partitioning.abort(CLONE_SET, done, REVISIONS)
    scaling = cloneset(pods=NEW, replicas=9, status=status("web-2", updated=3))
    with pytest.raises(VerbError, match="no rollout is under way"):
        partitioning.abort(CLONE_SET, scaling, REVISIONS)


def test_nobody_is_sent_to_undo_a_first_rollout() -> None:
    first = cloneset(pods=NEW, status={**status("web-2", updated=1), "replicas": 1})
    with pytest.raises(VerbError, match=r"no rollout is under way .*; and there is no earlier revision to go back to"):
        partitioning.abort(CLONE_SET, first, REVISIONS[1:])


def test_a_rollout_that_nobody_has_seen_yet_is_aborted_too() -> None:
    """Whoever is quick: the status still tells of the time before."""
    before = {**status("web-1", updated=3), "updateRevision": "web-1", "observedGeneration": 1}
    document = cloneset(pods=NEW, generation=2, status=before)
    assert partitioning.abort(CLONE_SET, document, REVISIONS[:1]).revision.name == "web-1"


def test_a_deployment_goes_back_by_one() -> None:
    document = native_object("Deployment", status={"replicas": 4, "updatedReplicas": 1, "readyReplicas": 3})
    document["spec"]["template"] = NEW
    assert partitioning.abort(face("Deployment"), document, REVISIONS).revision.number == 1
    document["status"]["updatedReplicas"] = 4
    with pytest.raises(VerbError, match="no rollout is under way"):
        partitioning.abort(face("Deployment"), document, REVISIONS)


def test_a_daemon_set_takes_percentages() -> None:  # DS section 2
    before = native_object("DaemonSet")
    assert value_at(partitioning.set_partition(DAEMON_SET, before, "50%"), PARTITION) == "50%"


def test_a_daemon_set_goes_back_while_nodes_have_older_pods() -> None:
    """Its status names no revision before the newest, so pods alone tell whether anything is under way."""
    counted = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 3, "numberAvailable": 3}
    counted |= {"updateRevision": "2", "updatedNumberScheduled": 1}
    document = native_object("DaemonSet", status=counted)
    document["spec"]["template"] = NEW
    assert partitioning.abort(DAEMON_SET, document, REVISIONS).revision.number == 1
    document["status"]["updatedNumberScheduled"] = 3
    with pytest.raises(
        VerbError, match=r"no rollout is under way .*: kruise rollout undo daemonset.apps.kruise.io/web"
    ):
        partitioning.abort(DAEMON_SET, document, REVISIONS)
