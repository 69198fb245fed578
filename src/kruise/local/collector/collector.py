"""The garbage collector: deletes what nobody owns any more, in the background or in the foreground, or sets it free.

A client of the API like any other. It watches every kind that can be deleted, keeps the graph of owners, and acts only
on what it has just read from the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from random import Random
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.events import ObjectReference
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.local.collector import judging
from kruise.local.collector.graph import Graph, Look, Node
from kruise.local.collector.judging import Delete, OwnerState, Release
from kruise.local.collector.objects import (
    FOREGROUND,
    ORPHAN,
    Owned,
    Reference,
    reference_of,
    references_of,
    resource_of,
)
from kruise.local.collector.served import Discover, by_kind, preferred
from kruise.machinery.client.client import Client
from kruise.machinery.client.discovery import ServedResource
from kruise.machinery.client.errors import ClientError, ConflictError, InvalidError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.events import EventRecorder
from kruise.machinery.queue import Backoff, Queue
from kruise.machinery.store import Store
from kruise.machinery.watch import Watcher

log = logging.getLogger(__name__)

IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
DISCOVERY_PERIOD = 30.0
SYNC_TIMEOUT = 30.0
_REMEMBERED = 4096
_PATIENCE = 10.0
"""How long an owner that is there, but was not seen by a watch, may take to show up before it is asked for again."""


class _UnknownKindError(Exception):
    """A reference names a kind that is not served, now."""


class GarbageCollector:
    """`run` goes on until it is cancelled. `discover` says which kinds there are; `Client.discover` by default."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        seed: int = 0,
        discover: Discover | None = None,
        recorder: EventRecorder | None = None,
        workers: int = 4,
        period: float = DISCOVERY_PERIOD,
    ) -> None:
        self._client = client
        self._clock = clock
        self._seed = seed
        self._discover = discover or client.discover
        self._recorder = recorder or EventRecorder(client, component="garbage-collector-controller", clock=clock)
        self._owns_recorder = recorder is None
        self._workers = workers
        self._period = period
        self._graph = Graph()
        self._queue = Queue("garbage-collector", clock=clock, backoff=Backoff(maximum=60.0))
        self._watches: dict[ServedResource, tuple[Watcher[Any], asyncio.Task[None]]] = {}
        self._kinds: dict[tuple[str, str], ServedResource] = {}
        self._absent: OrderedDict[tuple[Reference, str], None] = OrderedDict()
        self._changed = asyncio.Event()
        """Definitions changed: ask for the kinds again."""

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            if self._owns_recorder:
                tasks.create_task(self._recorder.run(), name="collector-events")
            await self._follow_kinds(tasks)
            await self._first_lists()
            for _ in range(self._workers):
                tasks.create_task(self._work(), name="collector-worker")
            while True:
                await self._pause()
                await self._follow_kinds(tasks)

    @property
    def watched(self) -> frozenset[str]:
        return frozenset(str(served.resource) for served in self._watches)

    # Kinds

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self._period):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    async def _follow_kinds(self, tasks: asyncio.TaskGroup) -> None:
        """Watch the kinds that came, leave those that went."""
        try:
            discovery = await self._discover()
        except ClientError as error:
            log.warning("kinds unknown", extra={"error": str(error)})
            return
        if not discovery.resources:
            return
        wanted = {
            served
            for served in preferred(discovery, "delete", "list", "watch")
            if (served.group, served.plural) not in IGNORED
        }
        self._kinds = by_kind(discovery.resources)
        for served in sorted(self._watches.keys() - wanted, key=_order):
            if _is_unreachable(served, discovery.unreachable):
                continue
            _, task = self._watches.pop(served)
            task.cancel()
            self._graph.forget_kind(served)
        for served in sorted(wanted - self._watches.keys(), key=_order):
            self._watches[served] = self._watch(served, tasks)

    def _watch(self, served: ServedResource, tasks: asyncio.TaskGroup) -> tuple[Watcher[Any], asyncio.Task[None]]:
        resource = resource_of(served)
        store: Store[Any] = Store(resource)
        store.subscribe(lambda old, new: self._event(served, old, new))
        random = Random(f"{self._seed}/{resource.api_version}/{resource.plural}")
        watcher = Watcher(self._client, store, clock=self._clock, random=random)
        return watcher, tasks.create_task(watcher.run(), name=f"collector watch {resource}")

    async def _first_lists(self) -> None:
        """Decisions are safe before, but would ask for many owners that come a moment later."""
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                for watcher, _ in list(self._watches.values()):
                    await watcher.synced.wait()
        except TimeoutError:
            log.warning("not every kind is listed yet")

    # Changes

    def _event(self, served: ServedResource, old: Owned | None, new: Owned | None) -> None:
        if served.group == CUSTOM_RESOURCE_DEFINITIONS.group and served.plural == CUSTOM_RESOURCE_DEFINITIONS.plural:
            self._changed.set()
        if new is not None:
            self._follow(self._graph.seen(served, new))
        elif old is not None:
            self._note_gone(old.metadata.uid)
            self._follow(self._graph.gone(old.metadata.uid))

    def _note_gone(self, uid: str) -> None:
        """Its dependents need not ask for it, which they could not if its kind goes with it."""
        for dependent in self._graph.dependents(uid):
            for reference in references_of(dependent.object):
                if reference.uid == uid and self._graph.knows(reference, dependent.namespace):
                    self._note_absent(reference, dependent.namespace)

    def _note_absent(self, reference: Reference, namespace: str) -> None:
        """A uid does not come back."""
        self._absent[reference, namespace] = None
        if len(self._absent) > _REMEMBERED:
            self._absent.popitem(last=False)

    def _follow(self, look: Look) -> None:
        for uid in look.uids:
            self._queue.add(Key("", uid))
        for node, reference in look.astray:
            self._report_astray(node, reference)

    def _report_astray(self, node: Node, reference: Reference) -> None:
        about = ObjectReference(
            api_version=node.served.resource.api_version,
            kind=node.served.kind,
            namespace=node.namespace,
            name=node.name,
            uid=node.uid,
        )
        owner = (
            f"[{reference.api_version}/{reference.kind}, namespace: {node.namespace}, name: {reference.name}, "
            f"uid: {reference.uid}]"
        )
        message = f'ownerRef {owner} does not exist in namespace "{node.namespace}"'
        self._recorder.record(about, "Warning", "OwnerRefInvalidNamespace", message)

    # Work

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._process(key)
                self._queue.forget(key)
            except (ConflictError, InvalidError) as error:
                # Somebody was faster (or the uid guard failed): look again.
                self._queue.retry(key, f"overtaken: {error}")
            except (ClientError, _UnknownKindError) as error:
                delay = self._queue.retry(key, str(error))
                log.info("object not settled", extra={"uid": key.name, "error": str(error), "retry_in": delay})
            finally:
                self._queue.done(key)

    async def _process(self, key: Key) -> None:
        node = self._graph.get(key.name)
        if node is None:
            return
        if node.object.orphans_dependents:
            await self._orphan_dependents(node)
        elif node.object.waits_for_dependents:
            await self._wait_for_dependents(node)
        elif not node.object.is_deleted and node.object.metadata.owner_references:
            await self._collect(key, node)

    async def _collect(self, key: Key, node: Node) -> None:
        latest = await self._latest(node)
        if latest is None or latest.is_deleted:
            return
        owners: dict[Reference, OwnerState] = {}
        for reference in references_of(latest):
            state = await self._state(node, reference)
            if state is None:
                return
            owners[reference] = state
        dependents = self._graph.dependents(node.uid)
        verdict = judging.judge(
            latest,
            owners,
            has_dependents=bool(dependents),
            dependent_waits=any(dependent.object.waits_for_dependents for dependent in dependents),
        )
        if isinstance(verdict, Release):
            await self._patch(node, judging.without_owners(latest, verdict.uids))
        elif isinstance(verdict, Delete):
            if verdict.unblocks_owners:
                latest = await self._patch(node, judging.unblocking(latest))
            await self._delete(node, latest, verdict.propagation)
        elif any(not self._graph.knows(reference, node.namespace) for reference in owners):
            # An owner that comes and goes while its watch is down is never seen: ask again until it shows up.
            self._queue.add(key, after=_PATIENCE, reason="an owner was not seen yet")

    async def _state(self, node: Node, reference: Reference) -> OwnerState | None:
        """How the owner stands, from where the object is; None where a reference can never be right."""
        if (reference, node.namespace) in self._absent:
            return OwnerState.ABSENT
        served = self._kinds.get((reference.api_version, reference.kind))
        if served is None:
            raise _UnknownKindError(f"{node}: no kind {reference.kind} is served in {reference.api_version}")
        if served.namespaced and not node.namespace:
            log.warning("cluster-scoped object names a namespaced owner", extra={"object": str(node)})
            return None
        namespace = node.namespace if served.namespaced else ""
        state = judging.state_of(await self._get(served, reference.name, namespace), reference.uid)
        if state is OwnerState.ABSENT:
            self._note_absent(reference, node.namespace)
        return state

    async def _wait_for_dependents(self, node: Node) -> None:
        latest = await self._latest(node)
        if latest is None or not latest.waits_for_dependents:
            return
        blocking = self._graph.blocking(node.uid)
        if not blocking:
            await self._patch(node, judging.without_finalizer(latest, FOREGROUND))
        for dependent in blocking:
            if not dependent.object.waits_for_dependents:
                self._queue.add(Key("", dependent.uid))

    async def _orphan_dependents(self, node: Node) -> None:
        for dependent in self._graph.dependents(node.uid):
            latest = await self._latest(dependent)
            if latest is not None and any(
                reference_of(own).uid == node.uid for own in latest.metadata.owner_references
            ):
                await self._patch(dependent, judging.without_owners(latest, (node.uid,)))
        latest = await self._latest(node)
        if latest is not None and latest.orphans_dependents:
            await self._patch(node, judging.without_finalizer(latest, ORPHAN))

    # Requests

    async def _latest(self, node: Node) -> Owned | None:
        """The object as it is now; None where it is gone or another one has its name."""
        found = await self._get(node.served, node.name, node.namespace)
        return found if found is not None and found.metadata.uid == node.uid else None

    async def _get(self, served: ServedResource, name: str, namespace: str) -> Owned | None:
        try:
            found: Owned = await self._client.get(resource_of(served), name, namespace)
        except NotFoundError:
            return None
        return found

    async def _patch(self, node: Node, patch: dict[str, object]) -> Owned:
        try:
            changed: Owned = await self._client.patch(resource_of(node.served), node.name, patch, node.namespace)
        except NotFoundError:
            return node.object
        return changed

    async def _delete(self, node: Node, latest: Owned, propagation: str) -> None:
        try:
            await self._client.delete(
                resource_of(node.served),
                node.name,
                node.namespace,
                uid=node.uid,
                resource_version=latest.metadata.resource_version,
                propagation=propagation,
            )
        except NotFoundError:
            return


def _order(served: ServedResource) -> tuple[str, str, str]:
    return (served.group, served.plural, served.version)


def _is_unreachable(served: ServedResource, groups: tuple[str, ...]) -> bool:
    """A group whose server is down is not gone."""
    return (f"{served.group}/{served.version}" if served.group else served.version) in groups
