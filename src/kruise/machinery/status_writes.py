"""Writing the status of the objects of a controller: now, now and then, or without a pass after it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

from kruise.api.meta import Key, key_of
from kruise.api.resource import Resource
from kruise.machinery.apply import Applier, Stopping
from kruise.machinery.cache import Cache
from kruise.machinery.clock import Clock
from kruise.machinery.codec import evolve
from kruise.machinery.key_state import KeyStates
from kruise.machinery.plan import Action, Outcome, Outcomes, Result, StatusEffect
from kruise.machinery.queue import Queue

INTERVAL = 0.5
"""Seconds between the status writes of an object whose passes follow each other closely."""


class StatusWriter:
    def __init__(
        self,
        subject: Resource[Any],
        *,
        cache: Cache,
        applier: Applier,
        clock: Clock,
        queue: Queue,
        states: KeyStates,
        stopping: Stopping,
        failed: Callable[[Key, Outcome], None],
    ) -> None:
        """`failed` hears of writes that nobody waited for and that were not done."""
        self._subject = subject
        self._cache = cache
        self._applier = applier
        self._clock = clock
        self._queue = queue
        self._states = states
        self._stopping = stopping
        self._failed = failed
        self._ignored = 0
        """How many keys ignore their status right now."""

    def is_echo(self, old: Any, new: Any) -> bool:
        """Whether a change of a subject is nothing but a status that we write, and that decides nothing."""
        if not self._ignored or not _is_status_only(old, new):
            return False
        state = self._states.get(key_of(new))
        return state is not None and state.ignores_status

    async def write(self, key: Key, status: Action, effect: StatusEffect, outcomes: Outcomes) -> Outcome | None:
        """Where other passes follow at once, a status now and then is enough, and they do not wait for it: None."""
        state = self._states.of(key)
        is_busy = bool(state.pending) or any(outcome.result is Result.DEFERRED for outcome in outcomes)
        if is_busy and effect is not StatusEffect.BLOCKS:
            self._begin(key, status)
            return None
        if state.status_write is not None:
            await asyncio.wait({state.status_write})
        state = self._states.of(key)
        state.status_at = None
        if effect is not StatusEffect.INFORMS:
            return await self._applier.carry_out(status, stopping=self._stopping)
        state.ignores_status = True
        self._ignored += 1
        try:
            outcome = await self._applier.carry_out(status, stopping=self._stopping)
        finally:
            self._ignored -= 1
            state.ignores_status = False
        latest = self._cache.find(self._subject, key.namespace, key.name)
        if outcome.result is Result.DONE and _version(latest) != _version(outcome.object):
            self._queue.add(key, reason="somebody else wrote to it besides")
        return outcome

    def _begin(self, key: Key, status: Action) -> None:
        state, now = self._states.of(key), self._clock.monotonic()
        is_due = state.status_at is None or now - state.status_at >= INTERVAL
        if state.status_write is None and is_due:
            state.status_at = now
            state.status_write = self._applier.begin(status, stopping=self._stopping)
            state.status_write.add_done_callback(functools.partial(self._ended, key))

    def _ended(self, key: Key, task: asyncio.Task[Outcome]) -> None:
        self._states.of(key).status_write = None
        self._states.tidy(key)
        if task.cancelled() or self._stopping():
            return
        outcome = task.result()
        if outcome.result in (Result.FAILED, Result.UNKNOWN):
            self._failed(key, outcome)
        else:
            self._queue.add(key, reason="the status can be written again")


def _is_status_only(old: Any, new: Any) -> bool:
    """Whether nothing but the status differs. The generation stands for the spec."""
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    return bool(evolve(before, resource_version="") == evolve(after, resource_version=""))


def _version(obj: Any) -> str:
    return obj.metadata.resource_version if obj is not None else ""
