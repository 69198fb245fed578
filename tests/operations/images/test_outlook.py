"""What `kruise plan` tells of an ImagePullJob: the nodes that its own decision will choose, in its order."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.images import MOST_IMAGES, NODE_IMAGES, ImagePullJob, ImagePullJobStatus, NodeImage, TagStatus
from kruise.api.native.pod import PODS, Pod
from kruise.faces.outlook import Outlook, Seen
from kruise.machinery import codec
from kruise.operations.images.pulljob.outlook import OUTLOOK
from tests.operations.images.objects import NOW, entry, job, node_image, spread, task, told_of
from tests.support.pods import make_pod


def outlook(wanted: ImagePullJob, *nodes: NodeImage, pods: tuple[Pod, ...] = ()) -> Outlook:
    document: dict[str, Any] = codec.to_builtins(wanted)
    return OUTLOOK.outlook(document, Seen(now=NOW, objects={NODE_IMAGES: nodes, PODS: pods}))


def named(*names: str) -> tuple[NodeImage, ...]:
    return tuple(node_image(name) for name in names)


def test_nodes_in_turn() -> None:  # IPJ-45
    wanted = job(parallelism=2)
    nodes = named("a", "b", "c", "d", "e")
    found = outlook(wanted, *nodes)
    assert [row[:3] for row in found.rows] == [
        ("a", "1", "to come"),
        ("b", "1", "to come"),
        ("c", "2", "to come"),
        ("d", "2", "to come"),
        ("e", "3", "to come"),
    ]
    assert dict(found.facts)["Parallelism"] == "2 at a time"
    # The decision itself chooses those whose turn comes first.
    begun = spread(wanted, *nodes)
    assert [one.metadata.name for one in begun] == [row[0] for row in found.rows if row[1] == "1"]
    done = told_of(begun[0], TagStatus(tag="1", phase="Succeeded"))
    assert [row[:3] for row in outlook(wanted, done, begun[1], *nodes[2:]).rows] == [
        ("a", "-", "has the image"),
        ("b", "-", "pulls"),
        ("c", "1", "to come"),
        ("d", "2", "to come"),
        ("e", "2", "to come"),
    ]


def test_a_failed_node_says_why() -> None:
    [begun] = spread(job(), *named("a"))
    failed = told_of(begun, TagStatus(tag="1", phase="Failed", message="no such image"))
    assert outlook(job(), failed).rows == (("a", "-", "failed", "no such image"),)


def test_nodes_that_take_no_more_are_left_out() -> None:
    full = node_image("a", images={f"image-{number}": entry(task()) for number in range(MOST_IMAGES)})
    [row] = outlook(job(), full).rows
    assert row[:3] == ("a", "-", "left out")
    assert spread(job(), full) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"selector": {"names": ["b"]}}, ["b"]),
        ({"selector": {"matchLabels": {"zone": "x"}}}, []),
        ({"podSelector": {"matchLabels": {"app": "web"}}}, ["a"]),
    ],
)
def test_only_nodes_that_it_selects(spec: dict[str, Any], expected: list[str]) -> None:
    pod = make_pod("p", node="a", labels={"app": "web"})
    pod = codec.evolve(pod, metadata=codec.evolve(pod.metadata, namespace="demo", resource_version="1"))
    found = outlook(job(**spec), *named("a", "b"), pods=(pod,))
    assert [row[0] for row in found.rows] == expected
    assert dict(found.facts)["Nodes"] == f"{len(expected)} of 2"
    assert ("it selects no node, and ends at once" in found.notes) == (not expected)


def test_what_will_not_happen_is_told() -> None:
    ended = job(status=ImagePullJobStatus(start_time=NOW, completion_time=NOW))
    assert [row[1] for row in outlook(ended, *named("a")).rows] == ["never"]
    assert outlook(ended).notes == ("it has ended: no further node begins",)
    assert "parallelism is 0: no further node begins" in outlook(job(parallelism=0), *named("a")).notes
    with pytest.raises(ValueError, match="is no image"):
        outlook(job(image="::"))


def test_one_that_is_not_there_yet_has_no_task_anywhere() -> None:
    new = job(uid="")
    assert [row[:3] for row in outlook(new, *spread(job(), *named("a"))).rows] == [("a", "1", "to come")]
