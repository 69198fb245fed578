"""One value for parts that are equal: what a thousand pods repeat is kept once.

Pods of one workload differ in a few texts. The rest (containers, labels, conditions, names of nodes) is the same in all
of them, but each pod is decoded from bytes of its own. Before an object is stored, its parts are exchanged for equal
ones that are known already:

* those of the version before it, where there is one. Hardly anything changes from version to version, so this is a
  comparison that costs a fraction of the decoding, and what was shared once stays shared;
* otherwise those of any other object, by tables of what was met lately.

Readers cannot tell: `==` says the same as before, only `is` does not. Fields that may hold anything are left alone:
there, equal values may differ on the wire. Nobody may change what is shared, dicts included; that holds for everything
in a store anyway.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kruise.machinery.codec import Raw, UnsetType, encode, evolve, exact_fields, exchange, is_struct, struct_fields

ROOM = 512 * 1024
"""How much a table holds before it begins to forget, in characters of its keys."""

_PLAIN = frozenset({type(None), bool, int, float, UnsetType, bytes})
_VERSION = "resource_version"
"""A field not worth a look: no two objects and no two versions have the same."""
_MOMENT = 32
"""What a time counts for: it has no length."""


class Table:
    """Values by what they are made of.

    It is full at its room; then it forgets what it was not asked for since it was full the last time. So it never holds
    more than twice its room, however long it lives. A value that was forgotten costs one more copy, no more. Very large
    values are not kept at all: a few of them would push out everything else.
    """

    __slots__ = ("_older", "_recent", "_room", "_used")

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._used = 0
        self._recent: dict[Any, Any] = {}
        self._older: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self._recent) + len(self._older)

    def get(self, key: Any) -> Any:
        found = self._recent.get(key)
        if found is None:
            found = self._older.pop(key, None)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Any, value: Any) -> None:
        size = _MOMENT if type(key) is datetime else len(key)
        if size > self._room // 16:
            return
        if self._used + size > self._room:
            self._older, self._recent, self._used = self._recent, {}, 0
        self._used += size
        self._recent[key] = value


class Sharing:
    """What the objects of some stores have in common. For one thread."""

    def __init__(self, room: int = ROOM) -> None:
        self._leaves = Table(room)
        """Texts and times, by themselves."""
        self._parts = Table(room)
        """Structs, tuples, dicts and raw JSON, by their place and their JSON."""

    def share(self, new: Any, old: Any = None) -> None:
        """Exchange the parts of `new`, which was decoded just now, for equal ones of the version before it and of
        other objects."""
        if type(new) is type(old):
            self._renew(new, old)
        else:
            self._enter(new, top=True)

    def _renew(self, new: Any, old: Any) -> None:
        for name, place, exact in _fields(type(new)):
            value = getattr(new, name)
            before = getattr(old, name)
            if value is before:
                continue
            if not exact:
                if is_struct(value) and type(value) is type(before):
                    self._renew(value, before)
            elif value == before:
                exchange(new, name, before)
            elif type(value) is not type(before):
                exchange(new, name, self._shared(value, place))
            elif is_struct(value):
                # Most often only the version is another: a copy of what was there takes the place of what came.
                copy = _with_version_of(value, before)
                if copy is not None and copy == value:
                    exchange(new, name, copy)
                else:
                    self._renew(value, before)
            elif type(value) is tuple:
                exchange(new, name, self._renewed(value, before))
            else:
                exchange(new, name, self._shared(value, place))

    def _renewed(self, new: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[Any, ...]:
        """Item by item: containers and conditions keep their places."""
        kept: list[Any] = []
        for value, before in zip(new, old, strict=False):
            if value == before:
                kept.append(before)
            elif is_struct(value) and type(value) is type(before):
                self._renew(value, before)
                kept.append(value)
            else:
                kept.append(self._shared(value))
        kept.extend([self._shared(value) for value in new[len(old) :]])
        return tuple(kept)

    def _enter(self, struct: Any, *, top: bool = False) -> None:
        for name, place, exact in _fields(type(struct)):
            value = getattr(struct, name)
            if not value and type(value) is not dict:
                continue
            if (top or not exact) and is_struct(value):
                # Metadata, spec and status are like the whole: never equal to another's.
                self._enter(value)
                continue
            if not exact:
                continue
            shared = self._shared(value, place)
            if shared is not value:
                exchange(struct, name, shared)

    def _shared(self, value: Any, place: bytes = b"") -> Any:
        """A value that has no predecessor. Without a place (an item of a tuple or dict) only structs are told apart
        by what they are: equal JSON may stand for different types."""
        kind = type(value)
        if kind is str or kind is datetime:
            found = self._leaves.get(value)
            if found is None:
                self._leaves.put(value, value)
                return value
            return found
        if kind in _PLAIN or value == ():
            return value
        if is_struct(value):
            place = _mark(kind)
        elif not place:
            return self._inside(value)
        key = place + encode(value)
        found = self._parts.get(key)
        if found is None:
            found = self._inside(value)
            self._parts.put(key, found)
        return found

    def _inside(self, value: Any) -> Any:
        """The same value, its parts shared."""
        if isinstance(value, tuple):
            return tuple([self._shared(item) for item in value])
        if isinstance(value, dict):
            return {self._shared(key): self._shared(item) for key, item in value.items()}
        if isinstance(value, Raw):
            return value.copy()  # or it would keep all the bytes that it was read from
        self._enter(value)
        return value


def _with_version_of(new: Any, old: Any) -> Any:
    version = getattr(new, _VERSION, None)
    return evolve(old, **{_VERSION: version}) if version is not None else None


_numbers = itertools.count()


def _new_mark(_kind: Any, _field: str = "") -> bytes:
    return b"%d " % next(_numbers)


def _fields_of(kind: Any) -> tuple[tuple[str, bytes, bool], ...]:
    exact = exact_fields(kind)
    names = (name for name, _, _ in struct_fields(kind) if name != _VERSION)
    return tuple((name, _mark(kind, name), name in exact) for name in names)


_mark: Callable[..., bytes] = functools.cache(_new_mark)
"""What the keys of a struct begin with, or those of a field of it."""
_fields: Callable[[Any], tuple[tuple[str, bytes, bool], ...]] = functools.cache(_fields_of)
"""The names of a struct's fields, with their marks, and whether equal values of them are the same on the wire."""
