"""Ordered groups of stored objects, and the secondary indexes of a store made of them.

Built for many updates and few changes of membership: an update changes the entry in place, so a group whose members
stay the same needs no touch and keeps its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kruise.api.meta import Key, Object

T = TypeVar("T", bound=Object)
K = TypeVar("K", str, Key)

IndexFunction = Callable[[T], Iterable[str]]
"""The values under which an object is found; none, one or several."""

IndexValues = tuple[tuple[Any, ...], ...]
"""What each index said about an object, in the order of the indexes: texts, or what selectors were made into."""


class Entry(Generic[T]):
    """A stored object with what was worked out about it once."""

    __slots__ = ("key", "obj", "uid", "values", "version")

    def __init__(self, key: Key, obj: T, uid: str, version: int, values: IndexValues) -> None:
        self.key = key
        self.obj = obj
        self.uid = uid
        self.version = version
        self.values = values


class Group(Generic[K, T]):
    """Some entries by key, and in the order of their keys."""

    __slots__ = ("_order", "entries")

    def __init__(self) -> None:
        self.entries: dict[K, Entry[T]] = {}
        self._order: list[Entry[T]] | None = None

    def add(self, key: K, entry: Entry[T]) -> None:
        self.entries[key] = entry
        self._order = None

    def remove(self, key: K) -> None:
        del self.entries[key]
        self._order = None

    def in_order(self) -> list[Entry[T]]:
        order = self._order
        if order is None:
            entries = self.entries
            order = self._order = [entries[key] for key in sorted(entries)]
        return order


class Index(Generic[T]):
    """Entries by the values that a function reads from their objects."""

    __slots__ = ("function", "groups", "name")

    def __init__(self, name: str, function: IndexFunction[T]) -> None:
        self.name = name
        self.function = function
        self.groups: dict[str, Group[Key, T]] = {}

    def move(self, entry: Entry[T], before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """The values of an entry changed; a value may come twice in either, a function is free to repeat itself."""
        for value in set(before).difference(after):
            group = self.groups[value]
            group.remove(entry.key)
            if not group.entries:
                del self.groups[value]
        for value in set(after).difference(before):
            found = self.groups.get(value)
            if found is None:
                found = self.groups[value] = Group()
            found.add(entry.key, entry)

    def find(self, value: str) -> tuple[T, ...]:
        group = self.groups.get(value)
        return tuple([entry.obj for entry in group.in_order()]) if group is not None else ()

    def count(self, value: str) -> int:
        group = self.groups.get(value)
        return len(group.entries) if group is not None else 0
