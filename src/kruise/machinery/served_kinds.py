"""Objects of kinds that nobody watches: what the server calls them, and a base for those who read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ForbiddenError, NotFoundError
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
        self._unreachable: frozenset[str] = frozenset()
        """Groups whose servers did not answer when somebody looked last."""

    async def find(self, group: str, kind: str) -> Resource[T] | None:
        """None: there is no such kind. Raises OutsideError where the group's own server does not answer."""
        if (group, kind) not in self._kinds and (self._may_have_come() or group in self._unreachable):
            await self._look()
        found = self._kinds.get((group, kind))
        if found is None and group in self._unreachable:
            # What cannot be seen now is not gone: whoever counts it stays as it is.
            raise OutsideError(f"the server of {group} does not answer: what is known of {kind} may be old")
        return found

    async def read(self, group: str, kind: str, name: str, namespace: str) -> T | None:
        """The object; None: there is none. One `get`, which is what clusters grant for kinds of others; where they do
        not, a list does, too. Raises OutsideError where the kind is not served as it was."""
        resource = await self.find(group, kind)
        if resource is None:
            return None
        try:
            return await self._client.get(resource, name, namespace)
        except NotFoundError as error:
            if error.status.details.name:
                return None
            raise self._unclear(group, kind, error) from error
        except ForbiddenError:
            return await self.listed(group, kind, name, namespace)

    async def listed(self, group: str, kind: str, name: str, namespace: str) -> T | None:
        """As `read`, by a list alone: that is what the manager may do for every kind, where it may look at objects of
        others at all."""
        resource = await self.find(group, kind)
        if resource is None:
            return None
        try:
            found = (await self._client.list(resource, namespace, fields=f"metadata.name={name}")).items
        except NotFoundError as error:
            raise self._unclear(group, kind, error) from error
        return found[0] if found else None

    def _unclear(self, group: str, kind: str, error: NotFoundError) -> OutsideError:
        """The kind is gone, or the version by which it was known. Until that is clear, no object is."""
        self.forget(group, kind)
        return OutsideError(f"{kind} of {group} is not served as it was: {error}")

    def _may_have_come(self) -> bool:
        return self._looked is None or self._clock.monotonic() >= self._looked + _LASTS

    async def _look(self) -> None:
        found = await self._client.discover()
        self._looked = self._clock.monotonic()
        self._unreachable = frozenset(version.rpartition("/")[0] for version in found.unreachable)
        for served in found.resources:
            resource = Resource(
                served.group, served.version, served.plural, served.kind, served.namespaced, self._model
            )
            self._kinds.setdefault((served.group, served.kind), resource)

    def forget(self, group: str, kind: str) -> None:
        """The server does not know it any more by what it was called: it is looked for anew."""
        self._kinds.pop((group, kind), None)
        self._looked = None


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
