"""The answer to "why": who waits, for what, and what that in turn waits for, down to what somebody can do about it.

Every pod that is not where it should be has its links. A link may lead on to other pods (those that use up a limit), or
to the workload itself. The ends of a chain are the links that lead nowhere further.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from kruise.machinery.causes import Act, Meaning
from kruise.machinery.codec import Struct, evolve, field

OBJECT = ""
"""The workload itself among the names of pods."""


_FIRST = tuple(Act)


class Link(Struct):
    meaning: Meaning
    message: str
    act: Act
    remedy: str = ""
    leads_to: tuple[str, ...] = ()
    """Names of pods in which the cause goes on, or `OBJECT`."""
    details: Mapping[str, Any] = field(default_factory=dict)
    alike: str = ""
    """Links with the same one are told together, though their messages may differ in a number."""

    @property
    def code(self) -> str:
        return self.meaning.code

    @property
    def group(self) -> tuple[str, str]:
        return self.code, self.alike or self.message


class HeldObject(Struct):
    """A pod that is not where it should be, or the workload itself."""

    pod: str
    """Its name; `OBJECT` for the workload."""
    links: tuple[Link, ...]


class Source(Struct):
    """What the causes were taken from."""

    words: str
    is_journal: bool = False
    time: datetime | None = None
    reason: str = ""
    """Why it is not the manager's journal."""


class Remark(Struct):
    """Something that holds nothing back, but belongs to the story."""

    code: str
    message: str


class PodPlace(NamedTuple):
    """Where a pod stands, whether it waits or not."""

    revision: str
    is_available: bool
    node: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    target: str
    """As on the command line: `cloneset/web`."""
    kind: str
    namespace: str
    name: str
    revision: str
    """The one that pods go to."""
    wanted: int
    expected: int
    """Pods that should have the revision."""
    updated: int
    available: int
    pods: Mapping[str, PodPlace]
    """Every pod that counts."""
    waiting: Mapping[str, HeldObject]
    """By name; the workload itself is `OBJECT`."""
    source: Source
    remarks: tuple[Remark, ...] = ()
    standing: str = ""
    """How far a job has got, in words. Of a workload the numbers tell it."""
    hidden_manager: str = ""
    """That nobody can say whether it goes on by itself, in words: whoever asks cannot see the manager."""
    now: datetime
    _known: dict[Any, tuple[Link, ...]] = dataclasses.field(default_factory=dict, repr=False, compare=False)
    """Ends of chains that begin alike: thousands of pods may wait for the same hundred."""

    def ends(self, name: str) -> tuple[Link, ...]:
        """Where the chains that begin at a pod come to an end."""
        waiting = self.waiting.get(name)
        if waiting is None:
            return ()
        begins = tuple((*link.group, link.leads_to) for link in waiting.links)
        known = self._known.get(begins)
        if known is None:
            found: dict[tuple[str, str], Link] = {}
            for link in self._ends(name, set()):
                found.setdefault(link.group, link)
            # A pod that waits for nobody but itself, and is well by now.
            known = self._known[begins] = tuple(found.values()) or tuple(map(passed, waiting.links))
        return known

    def _ends(self, name: str, seen: set[str]) -> Iterator[Link]:
        if name in seen or name not in self.waiting:
            return
        seen.add(name)
        for link in self.waiting[name].links:
            yield from self.ends_of(link, seen)

    def ends_of(self, link: Link, seen: set[str]) -> Iterator[Link]:
        if not link.leads_to:
            yield link
        elif not any(name in self.waiting for name in link.leads_to):
            yield passed(link)
        else:
            for name in link.leads_to:
                yield from self._ends(name, seen)

    def act_of(self, name: str) -> Act:
        """The most that is asked of anybody along the chains of a pod."""
        return first_act(link.act for link in self.ends(name))

    @property
    def act(self) -> Act | None:
        """Of everything; None: nothing waits."""
        acts = {self.act_of(name) for name in self.waiting}
        return first_act(acts) if acts else None

    def only(self, name: str) -> Answer:
        """The same about one pod: what it waits for, directly or not."""
        kept: dict[str, HeldObject] = {}
        left = [name]
        while left:
            current = left.pop()
            if current in kept or current not in self.waiting:
                continue
            kept[current] = self.waiting[current]
            left += [further for link in self.waiting[current].links for further in link.leads_to]
        ordered = {one: waiting for one, waiting in self.waiting.items() if one in kept}
        return dataclasses.replace(self, waiting=ordered)


def first_act(acts: Iterable[Act]) -> Act:
    return min(acts, key=_FIRST.index, default=Act.NOBODY)


def passed(link: Link) -> Link:
    """What the link leads to does not wait any more: so will this."""
    return evolve(
        link, act=Act.NOBODY, leads_to=(), remedy="what it waited for is over; the manager goes on at its next look"
    )
