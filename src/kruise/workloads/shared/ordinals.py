"""Which numbers the pods of a StatefulSet have: from a start on, without reserved ones (ST-40 to ST-42). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kruise.api.apps.statefulset import StatefulSetSpec
from kruise.api.native.ordinals import HIGHEST_ORDINAL

MOST_PODS = 150_000
"""More than that no cluster of Kubernetes is made for. Whoever asks for more gets as many, and is told so."""
START_GATE = "StatefulSetStartOrdinal"

Reserved = tuple[tuple[int, int], ...]
"""Ranges with both ends, the lowest first, none of which touch. Somebody may reserve two thousand million numbers."""

_RANGE = re.compile(r"([0-9]{1,19})-([0-9]{1,19})", re.ASCII)


def range_of(text: str) -> tuple[int, int] | None:
    """Both ends of a range such as `3-5`, which may stand the wrong way round; None: it is no range."""
    found = _RANGE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found is not None else None


def reserved_of(entries: Iterable[int | str]) -> Reserved:
    """What `reserveOrdinals` says. A range that nobody can read makes the whole list count for nothing (ST-41)."""
    ranges: list[tuple[int, int]] = []
    for entry in entries:
        if isinstance(entry, int):
            ranges.append((entry, entry))
            continue
        found = range_of(entry)
        if found is None or found[0] > found[1]:
            return ()
        ranges.append(found)
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def ordinals(replicas: int, start: int, reserved: Reserved) -> tuple[int, ...]:
    """The first `replicas` numbers from `start` on that are not reserved, the lowest first. Fewer where the numbers
    that count as ordinals end."""
    wanted: list[int] = []
    number = start
    for first, last in reserved:
        if last < number:
            continue
        wanted += _from(number, replicas - len(wanted), before=first)
        if len(wanted) >= replicas:
            return tuple(wanted)
        number = last + 1
    return (*wanted, *_from(number, replicas - len(wanted)))


def _from(number: int, count: int, *, before: int = HIGHEST_ORDINAL + 1) -> range:
    return range(number, min(number + count, before, HIGHEST_ORDINAL + 1))


def ordinals_of(spec: StatefulSetSpec, *, start_counts: bool) -> tuple[int, ...]:
    """`start_counts`: the gate is on."""
    start = spec.ordinals.start if start_counts and spec.ordinals is not None else 0
    return ordinals(replicas_of(spec), max(start, 0), reserved_of(spec.reserve_ordinals))


def replicas_of(spec: StatefulSetSpec) -> int:
    """Each of them has a place in every pass. A slip of the hand (`--replicas=1000000000`) must not cost the manager
    its memory, and with it all other workloads."""
    return min(max(1 if spec.replicas is None else spec.replicas, 0), MOST_PODS)


def highest(numbers: Sequence[int], count: int) -> tuple[int, ...]:
    """The highest ones, from the top."""
    return tuple(reversed(numbers[max(len(numbers) - count, 0) :]))
