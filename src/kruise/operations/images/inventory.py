"""Which node has which image, and which ones are on their way: as the nodes and their NodeImages tell it. Pure."""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from kruise.api.apps.images import FAILED, SUCCEEDED, WAITING, NodeImage, TagSpec
from kruise.api.core.images import ImageReference, reference_of, reference_problem
from kruise.api.meta import ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, evolve
from kruise.operations.images.tasks import status_of

MOST_REPORTED = 50
"""Images that a kubelet tells of, unless it is told otherwise: the largest ones."""


class ReportedImage(Struct):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class _NodeStatus(Struct):
    images: tuple[ReportedImage, ...] = ()


class Node(Struct):
    """As much of a node as is asked for here."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    status: _NodeStatus = _NodeStatus()


NODES = Resource("", "v1", "nodes", "Node", False, Node)


class Pull(enum.StrEnum):
    """How far a pull is that somebody asked for."""

    NONE = ""
    ASKED = "asked"
    """The node has not answered yet."""
    WAITING = "waiting"
    PULLING = "pulling"
    FAILED = "failed"


UNDER_WAY = (Pull.ASKED, Pull.WAITING, Pull.PULLING)


class Holding(Struct):
    """One image on one node."""

    image: ImageReference
    node: str
    is_present: bool = False
    pull: Pull = Pull.NONE
    progress: int = 0
    size: int = 0
    """In bytes; 0: nobody tells."""
    since: datetime | None = None
    """When the pull began or ended."""
    message: str = ""

    @property
    def state(self) -> str:
        said = f"{self.pull} {self.progress}%" if self.pull is Pull.PULLING and self.progress else str(self.pull)
        present = "present" if self.is_present else ""
        return ", ".join(word for word in (present, said) if word) or "absent"


class PatternError(ValueError):
    """What was asked for is no image."""


class Pattern(Struct):
    """Images by name, by name and tag or digest, or by a pattern with `*`."""

    text: str
    exact: ImageReference | None = None
    """The one image that is meant."""

    def matches(self, image: ImageReference) -> bool:
        if self.exact is not None:
            return image == self.exact
        return fnmatch.fnmatchcase(str(image), self.text) or fnmatch.fnmatchcase(image.name, self.text)


def pattern_of(word: str) -> Pattern:
    """Raises PatternError."""
    if any(sign in word for sign in "*?["):
        return Pattern(text=word)
    found = reference_of(word)
    if found is None:
        raise PatternError(f"{word!r} is no image: {reference_problem(word)}")
    is_exact = "@" in word or ":" in word.rpartition("/")[2]
    return Pattern(text=found.name, exact=found if is_exact else None)


def holdings(nodes: Iterable[Node], node_images: Iterable[NodeImage]) -> list[Holding]:
    """Everything that is known, by image and node."""
    found: dict[tuple[ImageReference, str], Holding] = {}
    names = set()
    for node in nodes:
        names.add(node.metadata.name)
        for one in _reported(node):
            found[one.image, one.node] = one
    for node_image in node_images:
        if node_image.metadata.name in names:
            for image, task in _tasks(node_image):
                key = image, node_image.metadata.name
                known = found.get(key) or Holding(image=image, node=node_image.metadata.name)
                found[key] = _with_task(known, node_image, image, task)
    return [found[key] for key in sorted(found)]


def _reported(node: Node) -> Iterator[Holding]:
    for reported in node.status.images:
        named = [name for name in reported.names if not name.startswith("sha256:")]  # ids are no names
        references = [one for name in named if (one := reference_of(name)) is not None]
        # An image with a tag is known by it; its digests would only repeat it.
        tagged = [one for one in references if ":" not in one.tag]
        for image in tagged or references:
            yield Holding(image=image, node=node.metadata.name, is_present=True, size=reported.size_bytes)


def _tasks(node_image: NodeImage) -> Iterator[tuple[ImageReference, TagSpec]]:
    for name, entry in node_image.spec.images.items():
        for task in entry.tags:
            yield ImageReference(name, task.tag), task


def _with_task(known: Holding, node_image: NodeImage, image: ImageReference, task: TagSpec) -> Holding:
    status = status_of(node_image, image.name, image.tag)
    if status is None or status.version != task.version:
        return evolve(known, pull=Pull.ASKED, since=task.created_at)
    since = status.completion_time or status.start_time or task.created_at
    if status.phase == SUCCEEDED:
        return evolve(known, is_present=True, since=since)
    pull = Pull.FAILED if status.phase == FAILED else Pull.WAITING if status.phase == WAITING else Pull.PULLING
    return evolve(known, pull=pull, progress=status.progress, since=since, message=status.message)


def chosen(known: Sequence[Holding], patterns: Sequence[Pattern], nodes: Sequence[str]) -> list[Holding]:
    """What the patterns mean, on these nodes. Of an image that is meant exactly, also where it is absent."""
    wanted = [one for one in known if not patterns or any(pattern.matches(one.image) for pattern in patterns)]
    there = {(one.image, one.node) for one in wanted}
    exact = dict.fromkeys(pattern.exact for pattern in patterns if pattern.exact is not None)
    absent = [Holding(image=image, node=node) for image in exact for node in nodes if (image, node) not in there]
    return sorted((*wanted, *absent), key=lambda one: (one.image, one.node))


class Summary(Struct):
    """One image on all nodes."""

    image: ImageReference
    size: int
    present: int
    pulls: dict[str, int]
    """How many nodes are how far."""
    progress: int
    """Of the pull that is least far."""


def summaries(known: Sequence[Holding]) -> list[Summary]:
    by_image: dict[ImageReference, list[Holding]] = {}
    for one in known:
        by_image.setdefault(one.image, []).append(one)
    return [_summary(image, ones) for image, ones in by_image.items()]


def _summary(image: ImageReference, ones: Sequence[Holding]) -> Summary:
    pulls = {str(pull): sum(one.pull is pull for one in ones) for pull in Pull if pull}
    return Summary(
        image=image,
        size=max(one.size for one in ones),
        present=sum(one.is_present for one in ones),
        pulls={pull: count for pull, count in pulls.items() if count},
        progress=min((one.progress for one in ones if one.pull is Pull.PULLING), default=0),
    )


class Verdict(enum.Enum):
    """Whether every node has what was asked for."""

    ALL = 0
    NOT_YET = 3
    MISSING = 1


def verdict(known: Sequence[Holding]) -> Verdict:
    lacking = [one for one in known if not one.is_present]
    if not lacking and known:
        return Verdict.ALL
    return Verdict.NOT_YET if lacking and all(one.pull in UNDER_WAY for one in lacking) else Verdict.MISSING
