"""Workloads of kinds that nobody here watches: read when a pass is about one, with `get` alone (PPS-3 to PPS-5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.meta import Key, PartialObject
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION, WhitelistError
from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.controller import OutsideError
from kruise.machinery.documents import value_at
from kruise.machinery.served_kinds import OnlyLooks, ServedKinds
from kruise.machinery.spec import Stores
from kruise.spread.persistentpodstate.decide import asks
from kruise.spread.persistentpodstate.situation import CustomWorkload, Looked
from kruise.spread.persistentpodstate.targets import CUSTOM_OWNER, Workload, is_supported, target_of, whitelisted

_LASTS = 1.0
"""Seconds for which the whitelist is taken to be as it was read: many pods of kinds that are not listed may come."""


class _Object(PartialObject):
    spec: Any = None


class CustomWorkloads(OnlyLooks):
    """What passes see beside the stores (`kruise.machinery.controller.Outside`). Of objects about StatefulSets nothing:
    these cost no request."""

    def __init__(self, client: Client, stores: Stores, clock: Clock, own_namespace: str) -> None:
        self._client = client
        self._stores = stores
        self._clock = clock
        self._own_namespace = own_namespace
        self._kinds = ServedKinds(client, clock, _Object)
        self._listed: tuple[tuple[str, str], ...] = ()
        self._read_at: float | None = None

    async def look(self, key: Key, /) -> Looked:
        state = self._stores.store(PERSISTENT_POD_STATES).get(*key)
        if state is None:
            return Looked(named=await self._asking(key))
        target = target_of(state)
        if is_supported(target.group, target.kind):
            return Looked()
        try:
            found = await self._read(target)
            is_listed = target.name == key.name and (target.group, target.kind) in await self._whitelist()
        except ForbiddenError as error:
            return Looked(problem=f"the manager may not read it: {error}")
        except WhitelistError as error:
            return Looked(problem=str(error))
        except ClientError as error:
            raise OutsideError(f"{target.kind} {target.name} cannot be read: {error}") from error
        return Looked(named=found if is_listed else None, target=found)

    async def _asking(self, key: Key) -> CustomWorkload | None:
        """A workload of that name whose annotations ask for an object. Those without pods have nothing to remember."""
        pods = self._stores.store(PODS)
        failed: Exception | None = None
        try:
            for group, kind in await self._whitelist():
                workload = Workload(key.namespace, group, kind, key.name)
                if not pods.count(CUSTOM_OWNER, workload.value):
                    continue
                try:
                    found = await self._read(workload)
                except (ClientError, OutsideError) as error:
                    failed = error  # of a kind that nobody can read, the others do not suffer
                    continue
                if found is not None and asks(found.metadata.annotations):
                    return found
        except (ClientError, WhitelistError) as error:
            failed = error
        if failed is not None:
            # There is no object yet that could say so; it is tried again, more and more seldom, and logged.
            raise OutsideError(f"nobody can tell whether a workload {key.name} asks for it: {failed}") from failed
        return None

    async def _whitelist(self) -> tuple[tuple[str, str], ...]:
        now = self._clock.monotonic()
        if self._read_at is None or now >= self._read_at + _LASTS:
            try:
                config = await self._client.get(CONFIG_MAPS, CONFIGURATION, self._own_namespace)
            except NotFoundError:
                self._listed = ()
            else:
                self._listed = whitelisted(config.data)
            self._read_at = now
        return self._listed

    async def _read(self, workload: Workload) -> CustomWorkload | None:
        resource = await self._kinds.find(workload.group, workload.kind)
        found = await self._kinds.read(workload.group, workload.kind, workload.name, workload.namespace)
        if resource is None or found is None:
            return None
        replicas = value_at(found.spec, ("replicas",), 0) if isinstance(found.spec, dict) else 0
        is_number = isinstance(replicas, int) and not isinstance(replicas, bool)
        return CustomWorkload(
            api_version=resource.api_version,
            kind=workload.kind,
            plural=resource.plural,
            metadata=found.metadata,
            replicas=max(replicas, 0) if is_number else 0,
        )


def asking(own_namespace: str) -> Callable[[Client, Stores, Clock], CustomWorkloads]:
    return lambda client, stores, clock: CustomWorkloads(client, stores, clock, own_namespace)
