"""Which node has which image, as nodes and NodeImages tell it."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.images import FAILED, PULLING, SUCCEEDED, WAITING, TagStatus
from kruise.api.core.images import ImageReference
from kruise.machinery.codec import convert
from kruise.operations.images.inventory import (
    Holding,
    Node,
    PatternError,
    Pull,
    Verdict,
    chosen,
    holdings,
    pattern_of,
    summaries,
    verdict,
)
from tests.operations.images.objects import NOW, job, node_image, spread, told_of

DIGEST = "sha256:" + "a" * 64


def node(name: str, *images: tuple[str, ...], size: int = 5_000_000) -> Node:
    listed = [{"names": list(names), "sizeBytes": size} for names in images]
    return convert({"metadata": {"name": name}, "status": {"images": listed}}, Node)


def told(known: list[Holding]) -> list[tuple[str, str, str]]:
    return [(str(one.image), one.node, one.state) for one in known]


def test_an_image_is_shown_once_whatever_it_is_called() -> None:  # IMG-13
    nodes = [
        node("a", (f"docker.io/library/nginx@{DIGEST}", "docker.io/library/nginx:1")),
        node("b", (f"reg.io/x@{DIGEST}",), ("sha256:abc", "<none>:<none>")),
    ]
    assert told(holdings(nodes, ())) == [("nginx:1", "a", "present"), (f"reg.io/x@{DIGEST}", "b", "present")]


@pytest.mark.parametrize(("status", "state"), [
    (None, "asked"),
    (TagStatus(tag="1", phase=WAITING), "waiting"),
    (TagStatus(tag="1", phase=PULLING), "pulling"),
    (TagStatus(tag="1", phase=PULLING, progress=40), "pulling 40%"),
    (TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW), "present"),
    (TagStatus(tag="1", phase=FAILED, completion_time=NOW, message="no"), "failed"),
    (TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW, version=7), "asked"),
])  # fmt: skip
def test_a_task_is_told_as_its_node_tells_it(status: TagStatus | None, state: str) -> None:
    """An answer to another version of the task says nothing about this one."""
    [asked] = spread(job(), node_image("a"))
    found = holdings([node("a")], [told_of(asked, status) if status is not None else asked, node_image("gone")])
    assert told(found) == [("nginx:1", "a", state)]
    present = holdings([node("a", ("nginx:1",))], [told_of(asked, status) if status is not None else asked])
    assert told(present) == [("nginx:1", "a", "present" if state == "present" else f"present, {state}")]


@pytest.mark.parametrize(("word", "images"), [
    ("nginx", {"nginx:1", "nginx:2"}),
    ("docker.io/library/nginx", {"nginx:1", "nginx:2"}),
    ("nginx:2", {"nginx:2"}),
    ("reg.io:5000/team/app", {"reg.io:5000/team/app:v1"}),
    ("reg.io:5000/team/app:v1", {"reg.io:5000/team/app:v1"}),
    ("*/team/*", {"reg.io:5000/team/app:v1"}),
    ("nginx:*", {"nginx:1", "nginx:2"}),
    ("redis:7", set()),
])  # fmt: skip
def test_what_a_word_means(word: str, images: set[str]) -> None:
    nodes = [node("a", ("nginx:1",), ("nginx:2",), ("reg.io:5000/team/app:v1",))]
    found = [one for one in chosen(holdings(nodes, ()), [pattern_of(word)], ["a"]) if one.is_present]
    assert {str(one.image) for one in found} == images


def test_a_word_that_is_no_image_is_refused() -> None:
    with pytest.raises(PatternError, match=r"'Nginx' is no image: .*lowercase"):
        pattern_of("Nginx")


def holding(node: str, **more: Any) -> Holding:
    return Holding(image=ImageReference("nginx", "1"), node=node, **more)


def test_of_one_image_every_node_is_shown() -> None:
    known = holdings([node("a", ("nginx:1",)), node("b")], ())
    assert told(chosen(known, [pattern_of("nginx:1")], ["a", "b"])) == [
        ("nginx:1", "a", "present"),
        ("nginx:1", "b", "absent"),
    ]
    assert told(chosen(known, [pattern_of("nginx")], ["a", "b"])) == [("nginx:1", "a", "present")]


def test_whether_all_nodes_have_it() -> None:
    there, pulling = holding("a", is_present=True), holding("b", pull=Pull.PULLING, progress=10)
    assert verdict([there]) is Verdict.ALL
    assert verdict([there, pulling]) is Verdict.NOT_YET
    assert verdict([there, pulling, holding("c")]) is Verdict.MISSING
    assert verdict([there, holding("c", pull=Pull.FAILED)]) is Verdict.MISSING
    assert verdict([]) is Verdict.MISSING
    assert verdict([holding("c", is_present=True, pull=Pull.FAILED)]) is Verdict.ALL


def test_images_in_short() -> None:
    ones = [
        holding("a", is_present=True, size=7),
        holding("b", pull=Pull.PULLING, progress=80),
        holding("c", pull=Pull.PULLING, progress=30),
        holding("d", pull=Pull.FAILED),
    ]
    [one] = summaries(ones)
    assert (one.size, one.present, one.pulls, one.progress) == (7, 1, {"pulling": 2, "failed": 1}, 30)
