"""A manager that is killed at one of its writes, in the model of a cluster; the next one starts at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kruise.machinery.plan import Outcome
from tests.support.modelled import Modelled


def _nothing(outcome: Outcome) -> None:
    return None


class Killed:
    """`dies_at`: the number of the write at which it dies; None: it lives. `wrote` hears of every write."""

    def __init__(
        self, model: Modelled[Any], dies_at: int | None, *, wrote: Callable[[Outcome], None] = _nothing
    ) -> None:
        self.model = model
        self.writes = 0
        self.died = False
        self._left = dies_at
        self._hears = wrote

    def run(self, rounds: int = 80) -> None:
        """Passes and kubelets in turn, a second each."""
        loop = self.model.loop
        for _ in range(rounds):
            before = self.writes
            done = loop.run(loop.controllers[0], self.model.key, wrote=self._wrote, die_at=self._left)
            assert done is not None
            if done.died:
                self.died, self._left = True, None
            elif self._left is not None:
                self._left -= self.writes - before
            for pod in self.model.pods:
                self.model.kubelet(pod.metadata.name)
            self.model.pass_time(1)

    def _wrote(self, outcome: Outcome) -> None:
        self.writes += 1
        self._hears(outcome)
