"""Objects of kinds that nobody watches: what the server calls them, and a base for those who read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.machinery.controller import OutsideError
from kruise.machinery.plan import JobState, Plan

T = TypeVar("T", bound=Object)

_LASTS = 60.0
"""Seconds after which a kind that was not served is looked for again."""


class ServedKinds(Generic[T]):
    """What the server serves, asked for when a kind is met for the first time. Objects are read as `model`."""

    def __init__(self, client: Client, clock: Clock, model: type[T]) -> None:
        self._client = client
        self._clock = clock
        self._model = model
        self._kinds: dict[tuple[str, str], Resource[T]] = {}
        self._looked: float | None = None

    async def find(self, group: str, kind: str) -> Resource[T] | None:
        """None: there is no such kind. Raises OutsideError where the group's own server does not answer."""
        now = self._clock.monotonic()
        if (group, kind) not in self._kinds and (self._looked is None or now >= self._looked + _LASTS):
            found = await self._client.discover()
            if any(version.rpartition("/")[0] == group for version in found.unreachable):
                # What cannot be seen now is not gone: whoever counts it stays as it is.
                raise OutsideError(f"the server of {group} does not answer: what is known of {kind} may be old")
            self._looked = now
            for served in found.resources:
                resource = Resource(
                    served.group, served.version, served.plural, served.kind, served.namespaced, self._model
                )
                self._kinds.setdefault((served.group, served.kind), resource)
        return self._kinds.get((group, kind))

    def forget(self, group: str, kind: str) -> None:
        """The server does not know it any more."""
        self._kinds.pop((group, kind), None)


class OnlyLooks:
    """The rest of `kruise.machinery.controller.Outside` for those who look, and have nothing else to do there."""

    def jobs(self, key: Key, /) -> Mapping[str, JobState]:
        return {}

    def carry_out(self, key: Key, plan: Plan, /) -> None:
        return

    def drop(self, key: Key, names: Iterable[str], /) -> None:
        return

    def forget(self, key: Key, /) -> None:
        return
