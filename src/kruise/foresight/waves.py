"""The waves of a rollout (`kruise.faces.waves`): what `kruise.foresight.watching` saw, numbered."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from kruise.foresight.forecast import Move, Wave
from kruise.foresight.watching import Moved, Watcher


def _as_it_is(moved: Moved) -> Move:
    return moved.move


def waves_of(watcher: Watcher, describe: Callable[[Moved], Move] = _as_it_is) -> tuple[Wave, ...]:
    """The waves so far. `describe` may add words to a move."""
    grouped = [
        (period, tuple(group)) for period, group in itertools.groupby(watcher.moved(), key=lambda moved: moved.period)
    ]
    waves = []
    for place, (period, members) in enumerate(grouped):
        until = grouped[place + 1][0] if place + 1 < len(grouped) else period + 1
        waves.append(
            Wave(
                number=place + 1,
                begins=members[0].move.at,
                moves=tuple(describe(moved) for moved in members),
                fewest_available=min(watcher.fewest_in(inner) for inner in range(period, until)),
            )
        )
    return tuple(waves)
