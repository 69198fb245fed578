"""The node agent's care for containers: it reports what they were made from, and stops those of an old environment.

On a real node this is the daemon; here one object does it for all simulated nodes. It works beside the kubelet: it
reads the runtime, writes an annotation by patches of its own, and knows of a pod only what the watch tells. A container
that it stops is started again by the kubelet, with the environment of that moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kruise.api.native.events import ObjectReference
from kruise.inplace import keys
from kruise.inplace.hashes import containers_meta_json
from kruise.local.nodes.container_meta import is_watched, needs_report, report, reported, to_restart
from kruise.local.nodes.lifecycle import PodMachine
from kruise.local.nodes.pods import BOUND_PODS, Pod
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import Clock
from kruise.machinery.events import EventRecorder

log = logging.getLogger(__name__)

COMPONENT = "kruise-daemon-containermeta"
REPORT_SECONDS = 1.0
"""How long news of a pod wait before the agent looks at it (DMN-70)."""
RESTART_SECONDS = 3.0
"""How long a container with an old environment has until it is stopped (DMN-76)."""
RETRY_SECONDS = 3.0

Submit = Callable[[Callable[[], Awaitable[None]]], None]


class Seen(NamedTuple):
    """A pod on a node that is up."""

    pod: Pod
    machine: PodMachine
    node: str


class NodeAgent:
    """`find` gives a pod by uid, None where it or its node is gone or down; `wake` has the kubelet look at it."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        *,
        clock: Clock,
        find: Callable[[str], Seen | None],
        wake: Callable[[str], None],
        submit: Submit,
    ) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._find = find
        self._wake = wake
        self._submit = submit
        self._recorder = EventRecorder(client, component=COMPONENT, clock=clock)
        self._looks: dict[str, asyncio.TimerHandle] = {}
        self._stops: dict[str, dict[str, asyncio.TimerHandle]] = {}
        """By uid and container id, also of those that are stopped already: each one is stopped once."""

    async def run(self) -> None:
        """Write events until cancelled; then nothing is done any more."""
        try:
            await self._recorder.run()
        finally:
            for uid in (*self._looks, *self._stops):
                self.forget(uid)

    async def flush_events(self) -> None:
        await self._recorder.flush()

    # News

    def notice(self, pod: Pod) -> None:
        """A pod has come, has changed, or is seen again."""
        if is_watched(pod) and needs_report(pod):
            self._look_after(pod.metadata.uid, REPORT_SECONDS)

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        look = self._looks.pop(uid, None)
        if look is not None:
            look.cancel()
        for stop in self._stops.pop(uid, {}).values():
            stop.cancel()

    def _look_after(self, uid: str, seconds: float) -> None:
        if uid not in self._looks:
            self._looks[uid] = asyncio.get_running_loop().call_later(seconds, self._look, uid)

    # Looking

    def _look(self, uid: str) -> None:
        del self._looks[uid]
        seen = self._find(uid)
        if seen is None or seen.pod.metadata.deletion_timestamp is not None:
            return
        found = report(seen.pod, seen.machine.records)
        for name, identity in to_restart(seen.pod, found):
            self._stop_later(uid, name, identity)
        if found.containers and found != reported(seen.pod):
            self._submit(lambda: self._write(seen.pod, containers_meta_json(found)))

    async def _write(self, pod: Pod, text: str) -> None:
        metadata = {"uid": pod.metadata.uid, "annotations": {keys.CONTAINERS_META_ANNOTATION: text}}
        try:
            answer = await self._client.patch(
                BOUND_PODS,
                pod.metadata.name,
                {"metadata": metadata},
                pod.metadata.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except NotFoundError:
            return
        except ClientError as error:
            log.warning("containers not reported", extra={"pod": pod.metadata.name, "error": str(error)})
            self._look_after(pod.metadata.uid, RETRY_SECONDS)
            return
        self._cache.written(BOUND_PODS, answer)

    # Stopping

    def _stop_later(self, uid: str, name: str, identity: str) -> None:
        stops = self._stops.setdefault(uid, {})
        if identity not in stops:
            loop = asyncio.get_running_loop()
            stops[identity] = loop.call_later(RESTART_SECONDS, self._stop, uid, name, identity)

    def _stop(self, uid: str, name: str, identity: str) -> None:
        seen = self._find(uid)
        if seen is None:
            # Asked again when the node is back.
            self._stops[uid].pop(identity)
            return
        if seen.machine.stop_container(name, identity, self._clock.now().timestamp()):
            self._record_stop(seen, name)
            self._wake(uid)

    def _record_stop(self, seen: Seen, name: str) -> None:
        metadata = seen.pod.metadata
        subject = ObjectReference(
            api_version="v1",
            kind="Pod",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            field_path=f"spec.containers{{{name}}}",
        )
        text = f"Stopping containerID {name} by container meta restarter"
        self._recorder.record(subject, "Normal", "Killing", text, host=seen.node)
