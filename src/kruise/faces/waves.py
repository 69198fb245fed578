"""What a wave of a rollout is: moves that begin without waiting for each other. Plans and live views count by it.

A pod moves when its revision changes while it lives on, when its deletion begins, or when it is created. A move opens
the next wave if a pod that moved in the present one has become available since. So a wave does not depend on small
differences between pods, as long as they are shorter than a pod's update takes.

A pod that takes the place of another one belongs to the wave of the one that went. A time in which pods only come to
stand in for others that go later (a surge) is no wave of its own.
"""

from __future__ import annotations


class WaveCount:
    """Counts times that a wave divides. Those with moves of their own are the waves, and numbered by whoever knows."""

    def __init__(self) -> None:
        self.times = 0
        self._members: set[str] = set()
        self._is_over = True

    def begins(self) -> bool:
        """Somebody moves. Whether that opens the next time."""
        if not self._is_over:
            return False
        self.times += 1
        self._members.clear()
        self._is_over = False
        return True

    def joins(self, who: str) -> None:
        """It was one that will serve. Whoever only goes never will."""
        self._members.add(who)

    def serves(self, who: str) -> bool:
        """A pod has become available. Whether that ends the present time: the next move opens another."""
        if self._is_over or who not in self._members:
            return False
        self._is_over = True
        return True
