"""What an object holds, counted: its own things, and those they hold, wherever that leads but to others' rooms."""

from __future__ import annotations

import collections
import gc
import logging
import types
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

_ENDS = (type, types.ModuleType, types.BuiltinFunctionType, types.CodeType, logging.Logger, weakref.ref, str, bytes)
_CONTAINERS = (dict, list, set, frozenset, collections.deque)
_PLAIN = ("builtins", "datetime")
"""Whether two numbers or texts that are equal are one object is chance; what they are in is counted."""
_ITEMS = (list, tuple, set, frozenset, collections.deque)


def held_by(roots: Mapping[str, object], *, not_in: tuple[str, ...] = (), but: tuple[type, ...] = ()) -> Counter[str]:
    """How many objects there are of each type, and how much is in dicts, lists, sets and queues by the way that leads
    to them (`manager._cache._watchers{}`), from some objects with a name.

    `not_in`: packages whose things belong to somebody else. `but`: types that are not looked into."""
    found = Counter[str]()
    seen: dict[int, object] = {}  # with the objects, or an id could become another's
    paths = tuple(f"/{package.strip('.').replace('.', '/')}" for package in not_in)
    to_see = collections.deque[tuple[Any, str]]((root, name) for name, root in roots.items())
    while to_see:
        obj, way = to_see.popleft()
        kind = type(obj)
        if id(obj) in seen or kind.__module__.startswith(not_in) or _runs_in(obj, paths):
            continue
        seen[id(obj)] = obj
        if isinstance(obj, _CONTAINERS):
            found[way] += len(obj)
        if kind.__module__ not in _PLAIN and not isinstance(obj, type):
            found[f"{kind.__module__}.{kind.__qualname__}"] += 1
        if not isinstance(obj, (*_ENDS, *but)):
            to_see.extend((part, way + step) for part, step in _parts(obj))
    return found


def _parts(obj: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(obj, dict):
        for key, value in obj.items():
            yield key, "{key}"
            yield value, "{}"
    elif isinstance(obj, _ITEMS):
        for item in obj:
            yield item, "[]"
    elif isinstance(obj, types.FunctionType):
        for cell in obj.__closure__ or ():
            yield from ((held, ".closure") for held in gc.get_referents(cell))
    else:
        named = _attributes(obj)
        yield from ((value, f".{name}") for name, value in named.items())
        known = {id(value) for value in named.values()} | {id(getattr(obj, "__dict__", None))}
        for held in gc.get_referents(obj):
            if id(held) not in known:
                yield held, f".<{type(obj).__name__}>"


def _attributes(obj: Any) -> dict[str, Any]:
    named = dict(getattr(obj, "__dict__", None) or {})
    for base in type(obj).__mro__:
        # Only what is there: nothing is worked out by being looked at.
        slots = [name for name, of in vars(base).items() if isinstance(of, types.MemberDescriptorType)]
        named |= {slot: getattr(obj, slot) for slot in slots if hasattr(obj, slot)}
    return named


def _runs_in(obj: object, paths: tuple[str, ...]) -> bool:
    """A coroutine or generator has the type of all others: its code tells whose it is."""
    code = getattr(obj, "cr_code", None) or getattr(obj, "ag_code", None) or getattr(obj, "gi_code", None)
    return code is not None and any(path in code.co_filename for path in paths)
