"""Waves of a rollout, as they are seen: pods that begin to move together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

from kruise.verbs.podstates import PodState, Side

TOGETHER_SECONDS = 1.0
"""The writes of one decision reach a watcher within such a time."""


@dataclasses.dataclass(frozen=True, slots=True)
class Waves:
    """Which pod moved in which wave, counted from 1. A pod that moves again belongs to the later wave."""

    of: Mapping[str, int] = dataclasses.field(default_factory=dict)
    count: int = 0
    began: float = float("-inf")
    moving: frozenset[str] = frozenset()

    def members(self, wave: int) -> tuple[str, ...]:
        return tuple(sorted(name for name, number in self.of.items() if number == wave))


def observe(waves: Waves, pods: Iterable[PodState], now: float) -> Waves:
    """What was seen at a moment, added to what was seen before."""
    moving = frozenset(pod.name for pod in pods if pod.side is Side.MOVING)
    fresh = moving - waves.moving
    if not fresh:
        return dataclasses.replace(waves, moving=moving)
    opens = now - waves.began > TOGETHER_SECONDS
    count = waves.count + 1 if opens else waves.count
    return Waves({**waves.of, **dict.fromkeys(fresh, count)}, count, now if opens else waves.began, moving)
