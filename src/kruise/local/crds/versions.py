"""The order of API versions: stable before beta before alpha, newer before older, then everything else by name."""

from __future__ import annotations

import re

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES = {None: 2, "beta": 1, "alpha": 0}


def priority(version: str) -> tuple[int, int, int, int, tuple[int, ...]]:
    """Sorts the most wanted version first when sorted in reverse."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return 0, 0, 0, 0, tuple(-ord(char) for char in version)
    return 1, _STAGES[found[2]], int(found[1]), int(found[3] or 0), ()


def ordered(versions: list[str]) -> tuple[str, ...]:
    return tuple(sorted(versions, key=priority, reverse=True))
