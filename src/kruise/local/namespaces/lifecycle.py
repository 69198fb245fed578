"""The life of namespaces: the first ones, what each one holds, and its orderly end. A client of the API."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kruise.api.meta import Key, Object
from kruise.api.native.config import CONFIG_MAPS, SERVICE_ACCOUNTS
from kruise.api.native.nodes import NAMESPACES
from kruise.local.collector.served import Discover
from kruise.local.namespaces import contents
from kruise.local.namespaces.contents import Create
from kruise.local.namespaces.deletion import ContentError, Deletion
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ClientError, ForbiddenError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.queue import Backoff, Queue

log = logging.getLogger(__name__)

SETTLE: Final = 0.2
"""A pause before content is deleted, for writes on their way. Kubernetes, with several servers, waits 5 s."""
LONGEST_WAIT: Final = 2.0
"""Between two looks at a namespace whose content is going. Kubernetes waits longer, to spare its server."""


class Namespaces:
    """`run` goes on until it is cancelled. `bundle` is the PEM text that is published in every namespace."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        seed: int = 0,
        discover: Discover | None = None,
        bundle: str = "",
        workers: int = 2,
    ) -> None:
        self._client = client
        self._bundle = bundle
        self._workers = workers
        self._deletion = Deletion(client, clock=clock, discover=discover or client.discover)
        self._queue = Queue("namespaces", clock=clock, backoff=Backoff(maximum=60.0))
        # Only two objects of each namespace matter: a cache of its own, since others watch these kinds as a whole.
        self._cache = Cache(client, clock=clock, seed=seed)
        self._namespaces = self._cache.add(NAMESPACES)
        self._accounts = self._cache.add(SERVICE_ACCOUNTS, fields=f"metadata.name={contents.ACCOUNT}")
        self._certificates = self._cache.add(CONFIG_MAPS, fields=f"metadata.name={contents.CERTIFICATES}")
        self._namespaces.subscribe(lambda old, new: self._look(new.metadata.name if new is not None else ""))
        self._accounts.subscribe(self._content_changed)
        self._certificates.subscribe(self._content_changed)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._cache.run(), name="namespace-watches")
            await create_initial(self._client)
            await self._cache.wait_synced()
            for _ in range(self._workers):
                tasks.create_task(self._work(), name="namespace-worker")

    def _content_changed(self, old: Object | None, new: Object | None) -> None:
        changed = new if new is not None else old
        if changed is not None:
            self._look(changed.metadata.namespace)

    def _look(self, name: str) -> None:
        if not name:
            return
        namespace = self._namespaces.get("", name)
        is_ending = namespace is not None and namespace.metadata.deletion_timestamp is not None
        self._queue.add(Key("", name), after=SETTLE if is_ending else None)

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._process(key)
                self._queue.forget(key)
            except (ClientError, ContentError) as error:
                delay = self._queue.retry(key, str(error))
                log.info("namespace not settled", extra={"namespace": key.name, "error": str(error), "retry_in": delay})
            finally:
                self._queue.done(key)

    async def _process(self, key: Key) -> None:
        namespace = self._namespaces.get("", key.name)
        if namespace is None:
            return
        if namespace.metadata.deletion_timestamp is None:
            await self._fill(key.name)
            return
        estimate = await self._deletion.advance(key.name)
        if estimate:
            wait = min(estimate / 2 + 1, LONGEST_WAIT)
            self._queue.add(key, after=wait, reason="some content remains in the namespace")

    async def _fill(self, name: str) -> None:
        steps = contents.missing(
            name,
            has_account=self._accounts.get(name, contents.ACCOUNT) is not None,
            certificates=self._certificates.get(name, contents.CERTIFICATES),
            bundle=self._bundle,
        )
        for step in steps:
            try:
                if isinstance(step, Create):
                    self._cache.written(step.resource, await self._client.create(step.resource, step.body, name))
                else:
                    await self._client.patch(step.resource, step.name, step.patch, name)
            except (AlreadyExistsError, NotFoundError):
                continue  # the watch will tell
            except ForbiddenError as error:
                # It began to end in the meantime.
                log.debug("namespace takes nothing new", extra={"namespace": name, "error": str(error)})


async def create_initial(client: Client) -> None:
    """The namespaces that every cluster has."""
    for name in contents.INITIAL:
        try:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except AlreadyExistsError:
            continue
