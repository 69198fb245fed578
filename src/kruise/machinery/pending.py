"""Writes of earlier passes that have not ended yet, as a snapshot knows them. Pure.

A phase may detach its chains (`Phase.detaches`): the pass ends, and they go on. Until they end, decisions leave their
objects alone, and count on what these become. How they ended reaches the next pass, too.
"""

from __future__ import annotations

from kruise.api.meta import Key, Object
from kruise.machinery.codec import Struct, field

CAPACITY = 64
CREATION = "creation"
"""The mark of objects that are being created."""


class Pending(Struct):
    """The pending writes to objects of one kind, and what became of the others."""

    marks: dict[str, str] = field(default_factory=dict)
    """By namespace and name, what the phase says of its objects (`Phase.mark`): the revision that they move to,
    `CREATION`, or nothing where they stay what they are."""
    failures: dict[str, str] = field(default_factory=dict)
    """Why detached writes failed since the pass before, by the name of their phase."""
    capacity: int = CAPACITY
    """About as many writes as the server takes at a time: to work out thousands, and send a few of them pass after
    pass, would take longer than sending them all."""

    def mark_of(self, obj: Object) -> str | None:
        """None: nothing is pending for the object."""
        return self.marks.get(str(Key(obj.metadata.namespace, obj.metadata.name)))

    def has(self, namespace: str, name: str) -> bool:
        return str(Key(namespace, name)) in self.marks

    def creates(self, namespace: str, name: str) -> bool:
        return self.marks.get(str(Key(namespace, name))) == CREATION

    @property
    def moving(self) -> int:
        """Objects that become something else: they move to a revision, or are created."""
        return sum(map(bool, self.marks.values()))

    @property
    def room_to_move(self) -> int:
        """How many more objects may begin to move."""
        return self.capacity - self.moving

    @property
    def room_to_touch(self) -> int:
        """How many more objects may be written to that stay what they are."""
        return self.capacity - (len(self.marks) - self.moving)

    def failure(self, *phases: str) -> str:
        """Why a detached write of the first of these phases failed that had a failure; empty: none failed."""
        return next((self.failures[name] for name in phases if self.failures.get(name)), "")


def revision_of(mark: str | None) -> str:
    """Where an object with this mark moves; empty: nowhere."""
    return mark if mark is not None and mark != CREATION else ""
