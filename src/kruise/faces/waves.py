"""What a wave of a rollout is: moves that begin without waiting for each other. Plans and live views count by it.

A pod moves when its revision changes while it lives on, when its deletion begins, or when it is created. A move opens
the next wave if a pod that moved in the present one has become available since. So a wave does not depend on small
differences between pods, as long as they are shorter than a pod's update takes.

A pod that takes the place of another one belongs to the wave of the one that went. With a surge, pods come first and
stand in for others that go later. So moves are counted in periods: a period ends when a pod that moved in it becomes
available. A period in which only surge pods come is no wave; every other period is one.
"""

from __future__ import annotations


class PeriodCount:
    """Counts the periods of a rollout. Which of them are waves, and their numbers, only the caller can tell: surge pods
    are known by who goes later."""

    def __init__(self) -> None:
        self.count = 0
        self._members: set[str] = set()
        self._is_over = True

    def begins(self) -> bool:
        """A pod moves. Whether that opens the next period."""
        if not self._is_over:
            return False
        self.count += 1
        self._members.clear()
        self._is_over = False
        return True

    def joins(self, pod: str) -> None:
        """The pod moves in this period and will be available after it: one that is deleted does not join."""
        self._members.add(pod)

    def serves(self, pod: str) -> bool:
        """A pod has become available. Whether that ends the present period: the next move opens another."""
        if self._is_over or pod not in self._members:
            return False
        self._is_over = True
        return True
