"""What the loop remembers about a key between two passes. Most keys have nothing to remember, and no entry."""

from __future__ import annotations

import asyncio
import dataclasses

from kruise.api.meta import Key
from kruise.machinery.plan import Chain, Outcome, Target


@dataclasses.dataclass(slots=True)
class KeyState:
    stale: int = 0
    """How many decisions in a row were stale before they were carried out."""
    pending: dict[Target, str] = dataclasses.field(default_factory=dict)
    """Objects of detached chains that have not ended, with the mark of their phase."""
    failures: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why detached writes failed since the last pass, by phase."""
    status_at: float | None = None
    """When the status was last written without waiting for it."""
    status_write: asyncio.Task[Outcome] | None = None
    """That write, until it ends."""
    ignores_status: bool = False
    """A status is being written whose echo is no reason to look at the object again."""

    @property
    def is_empty(self) -> bool:
        return self == _EMPTY

    def add_pending(self, chain: Chain, mark: str) -> None:
        for action in chain:
            self.pending[action.target] = mark

    def remove_pending(self, chain: Chain) -> None:
        for action in chain:
            self.pending.pop(action.target, None)

    def take_failures(self) -> dict[str, str]:
        """For one pass: the next does not see them again."""
        failures, self.failures = self.failures, {}
        return failures

    def forget(self) -> None:
        """The object is gone. Writes that are in flight still end."""
        self.stale, self.failures, self.status_at = 0, {}, None


_EMPTY = KeyState()


class KeyStates:
    """One state per key that has something to remember."""

    def __init__(self) -> None:
        self._states: dict[Key, KeyState] = {}

    def get(self, key: Key) -> KeyState | None:
        return self._states.get(key)

    def of(self, key: Key) -> KeyState:
        """To be changed; call `tidy` afterwards."""
        return self._states.setdefault(key, KeyState())

    def tidy(self, key: Key) -> None:
        state = self._states.get(key)
        if state is not None and state.is_empty:
            del self._states[key]

    def __len__(self) -> int:
        return len(self._states)
