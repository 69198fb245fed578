"""Simulated nodes on an API server: a kubelet for each of them, all in one task group.

A client of the API like any other: it registers Node objects, watches the pods that are bound to them, and writes
their status and events. It runs in process on virtual time, against the local server, and against a real control
plane. One watch, one heap of timers and a few writers serve all nodes; a pod has no task of its own. Each pod has at
most one write in flight, and what happens meanwhile goes into the next one.

The cache must be the model's own, and the caller runs it: a kubelet reads more of a pod than controllers do.
"""

from __future__ import annotations

import asyncio
import dataclasses
import heapq
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import Any, cast

from kruise.api.native import nodes as native
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.events import ObjectReference
from kruise.api.native.nodes import NODES
from kruise.daemon.daemon import Daemon
from kruise.daemon.parts import Place, Settings, parts
from kruise.local.nodes import registration
from kruise.local.nodes.commands import FOREVER
from kruise.local.nodes.lifecycle import PodMachine, Step
from kruise.local.nodes.node import SimulatedNode
from kruise.local.nodes.pods import BOUND, BOUND_PODS, Pod
from kruise.local.nodes.runtime import DaemonNode, SimulatedNetwork, SimulatedRuntime
from kruise.local.nodes.spec import NodeSpec
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, ConflictError, InvalidError, NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import Clock
from kruise.machinery.events import EventRecorder
from kruise.machinery.watched import Watched

log = logging.getLogger(__name__)

CLOSE_ENOUGH = 0.002
"""Clocks round: what is due within so many seconds is due."""
REPORT_SECONDS = 10.0
"""How long a node collects news about itself before it reports them."""
RETRY_SECONDS = 1.0
TURNS = 50
"""So many pods are looked at before others on the loop have their turn."""

Job = Callable[[], Awaitable[None]]


@dataclasses.dataclass(slots=True, eq=False)
class _Entry:
    """A pod and where the model stands with it."""

    node: SimulatedNode
    machine: PodMachine
    namespace: str
    name: str
    uid: str
    writing: bool = False
    queued: bool = False
    removal_sent: bool = False
    wake: float = FOREVER
    due: float = 0.0
    """The timer that rang for it and was not served yet."""


class NodeModel:
    """`images` is a table that all nodes share (name to `size`, `same-as`, `error`). With `heartbeat` the nodes renew
    leases and report from time to time, as a real control plane expects; with `monitor` the model itself says that a
    node is gone, where no controller does it. With `daemon` the nodes have an agent of PyKruise, too."""

    def __init__(
        self,
        client: Client,
        cache: Cache,
        *,
        clock: Clock,
        seed: int = 0,
        nodes: Sequence[NodeSpec] = (),
        heartbeat: bool = False,
        monitor: bool = False,
        images: Mapping[str, Any] | None = None,
        writers: int = 32,
        daemon: bool = False,
        daemon_gates: Mapping[str, bool] | None = None,
    ) -> None:
        self.client = client
        self.clock = clock
        self.nodes: dict[str, SimulatedNode] = {}
        self.ready = asyncio.Event()
        """All nodes are registered."""
        self._cache = cache
        self._seed = seed
        self._heartbeat = heartbeat
        self._monitor = monitor
        self._images = dict(images or {})
        self._writers = writers
        self._pods = cache.add(Watched(BOUND_PODS, indexes={"node": _node_of}), fields=BOUND)
        self._node_store = cache.add(NODES)
        self._config_store = cache.add(CONFIG_MAPS)
        self._recorder = EventRecorder(client, component="kubelet", clock=clock, capacity=100_000, writers=4)
        self._entries: dict[str, _Entry] = {}
        self._due: deque[_Entry] = deque()
        self._timers: list[tuple[float, int, _Entry | SimulatedNode]] = []
        self._sequence = 0
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._awake = asyncio.Event()
        self._tasks: asyncio.TaskGroup | None = None
        for spec in nodes:
            self.nodes[spec.name] = SimulatedNode(spec, self._images, self._config)
        self._daemon_nodes: dict[str, DaemonNode] = {}
        self.daemon: Daemon | None = None
        """The node daemon, one for all nodes."""
        self.without_daemon: set[str] = set()
        """Nodes whose daemon does not run; see `stop_daemon`."""
        if daemon:
            settings = Settings(gates=dict(daemon_gates or {}))
            self.daemon = Daemon(
                parts(settings.gates),
                place=Place(settings=settings, pods=cast(Any, Watched(BOUND_PODS, fields=BOUND))),
                nodes=self,
                client=client,
                cache=cache,
                clock=clock,
                random=Random(seed),
            )

    # What the node daemon sees

    def find(self, name: str) -> DaemonNode | None:
        """Implements `kruise.daemon.runtime.Nodes`: a node that is up and whose daemon runs."""
        node = self.nodes.get(name)
        if node is None or node.down or name in self.without_daemon:
            return None
        known = self._daemon_nodes.get(name)
        if known is None or known.simulated is not node:
            runtime = SimulatedRuntime(node, clock=self.clock, wake=self._wake_pod, pulled=self._image_came)
            known = self._daemon_nodes[name] = DaemonNode(node, runtime, SimulatedNetwork(node, clock=self.clock))
        return known

    def stop_daemon(self, name: str) -> None:
        """The daemon of a node dies: what it was doing is lost, and nobody does anything there until it starts."""
        self.without_daemon.add(name)
        if self.daemon is not None:
            self.daemon.node_died()

    def start_daemon(self, name: str) -> None:
        self.without_daemon.discard(name)
        if self.daemon is not None:
            self.daemon.node_returned(name)

    def _image_came(self, node: SimulatedNode) -> None:
        if not node.report_at:
            node.report_at = self._now() + REPORT_SECONDS
            self._schedule(node.report_at, node)

    # Life

    async def run(self) -> None:
        """Be the nodes until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                for number in range(self._writers):
                    tasks.create_task(self._write_all(), name=f"node-writer-{number}")
                tasks.create_task(self._recorder.run(), name="node-events")
                if self.daemon is not None:
                    tasks.create_task(self.daemon.run(), name="node-daemon")
                await self._cache.wait_synced(resources=[BOUND_PODS, NODES])
                await registration.register_all(self.client, self.nodes.values(), self.clock.now)
                self._node_store.subscribe(self._on_node)
                self._pods.subscribe(self._on_pod)
                self.ready.set()
                if self._heartbeat:
                    tasks.create_task(registration.renew_leases(self, self.submit), name="node-leases")
                await self._work()
        finally:
            self._tasks = None

    async def add_node(self, spec: NodeSpec) -> None:
        """Another node joins."""
        if spec.name in self.nodes:
            raise ValueError(f"node {spec.name} is simulated already")
        node = self.nodes[spec.name] = SimulatedNode(spec, self._images, self._config)
        await registration.register(self.client, node, self.clock.now())
        for pod in self._pods.by_index("node", spec.name):
            self._on_pod(None, pod)

    def stop_node(self, name: str) -> None:
        """The node goes silent: what runs on it runs on, unseen."""
        self._set_stopped(name, True)

    def start_node(self, name: str) -> None:
        """The node comes back and reports what has happened."""
        self._set_stopped(name, False)

    def _set_stopped(self, name: str, stopped: bool) -> None:
        node = self.nodes.get(name)
        if node is None:
            raise LookupError(f"node {name} is not simulated here")
        was_down, node.stopped = node.down, stopped
        self._node_changed(node, was_down)

    async def flush_events(self) -> None:
        """Wait until everything that was said is written."""
        await self._recorder.flush()
        if self.daemon is not None:
            await self.daemon.flush_events()

    def machine(self, namespace: str, name: str) -> PodMachine | None:
        """What is known of a pod, for logs and tests."""
        pod = self._pods.get(namespace, name)
        entry = self._entries.get(pod.metadata.uid) if pod is not None else None
        return entry.machine if entry is not None else None

    def _config(self, namespace: str, name: str) -> Mapping[str, str] | None:
        found = self._config_store.get(namespace, name)
        return found.data if found is not None else None

    # What comes from the watch

    def _on_pod(self, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                entry = self._entries.pop(old.metadata.uid, None)
                if entry is not None:
                    entry.wake = FOREVER
                    entry.node.remove(entry.uid)
            return
        uid = new.metadata.uid
        entry = self._entries.get(uid)
        if entry is None:
            node = self.nodes.get(new.spec.node_name)
            if node is None:
                return
            machine = node.add(new, seed=self._seed, now=self._now())
            entry = _Entry(node, machine, new.metadata.namespace, new.metadata.name, uid)
            self._entries[uid] = entry
        self._queue(entry)

    def _wake_pod(self, uid: str) -> None:
        if (entry := self._entries.get(uid)) is not None:
            self._queue(entry)

    def _on_node(self, old: native.Node | None, new: native.Node | None) -> None:
        known = new if new is not None else old
        node = self.nodes.get(known.metadata.name) if known is not None else None
        if node is None:
            return
        if new is None:
            node.registered = False
            return
        was_down = node.down
        node.registered = True
        node.notice(new)
        self._node_changed(node, was_down)

    def _node_changed(self, node: SimulatedNode, was_down: bool) -> None:
        if node.down == was_down:
            return
        log.info("node %s", "down" if node.down else "up", extra={"node": node.spec.name})
        if self.daemon is not None:
            if node.down:
                self.daemon.node_died()
            elif node.spec.name not in self.without_daemon:
                self.daemon.node_returned(node.spec.name)
        if not node.down:
            self.submit(lambda: registration.report_up(self.client, node, self.clock.now()))
            for uid in tuple(node.machines):
                self._queue(self._entries[uid])
        elif self._monitor:
            loop = asyncio.get_running_loop()
            loop.call_later(registration.GRACE_SECONDS, self._give_up, node)

    def _give_up(self, node: SimulatedNode) -> None:
        if node.down:
            pods = [machine.pod for machine in node.machines.values()]
            self.submit(lambda: registration.report_lost(self.client, node, pods, self.clock.now()))

    # One task for all timers

    def _now(self) -> float:
        return self.clock.now().timestamp()

    def _queue(self, entry: _Entry) -> None:
        if not entry.queued:
            entry.queued = True
            self._due.append(entry)
            self._awake.set()

    def _schedule(self, at: float, what: _Entry | SimulatedNode) -> None:
        if at < FOREVER:
            self._sequence += 1
            heapq.heappush(self._timers, (at, self._sequence, what))
            self._awake.set()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._awake.clear()
            now = self._now()
            turns = 0
            while self._due:
                entry = self._due.popleft()
                entry.queued = False
                self._step(entry, now)
                turns += 1
                if turns % TURNS == 0:
                    # Writers and watches must have their turns too.
                    await asyncio.sleep(0)
                    now = self._now()
            self._ring(now)
            if self._due:
                continue
            timer = None
            if self._timers:
                timer = loop.call_later(max(0.0, self._timers[0][0] - self._now()), self._awake.set)
            try:
                await self._awake.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    def _ring(self, now: float) -> None:
        """Everything whose time has come."""
        while self._timers and self._timers[0][0] <= now + CLOSE_ENOUGH:
            at, _, what = heapq.heappop(self._timers)
            if isinstance(what, SimulatedNode):
                if what.report_at == at:
                    what.report_at = 0.0
                    if not what.down:
                        self._report_images(what)
            elif what.wake == at and what.uid in self._entries:
                what.due = at
                self._queue(what)

    def _report_images(self, node: SimulatedNode) -> None:
        self.submit(lambda: registration.report_images(self.client, node))

    def _step(self, entry: _Entry, now: float) -> None:
        if entry.writing or entry.node.down or self._entries.get(entry.uid) is not entry:
            # The end of the write, or of the silence, comes back to it.
            return
        pod = self._pods.get(entry.namespace, entry.name)
        if pod is None or pod.metadata.uid != entry.uid:
            return
        try:
            step = entry.machine.step(pod, max(now, entry.due))
        except Exception:
            # One odd pod must not take all nodes down; it is tried again when it changes.
            log.exception("pod left alone", extra={"pod": entry.name, "namespace": entry.namespace})
            return
        entry.due = 0.0
        for note in step.events:
            subject = ObjectReference(
                api_version="v1",
                kind="Pod",
                namespace=entry.namespace,
                name=entry.name,
                uid=entry.uid,
                resource_version=pod.metadata.resource_version,
                field_path=note.field_path,
            )
            self._recorder.record(subject, note.kind, note.reason, note.message, host=entry.node.spec.name)
        if entry.machine.new_images:
            entry.machine.new_images = False
            self._image_came(entry.node)
        entry.wake = step.wake
        if step.patch is not None or (step.remove and not entry.removal_sent):
            entry.writing = True
            self.submit(lambda: self._write(entry, step))
        else:
            self._schedule(step.wake, entry)

    # Writing

    def submit(self, job: Job) -> None:
        """Have something written by the next writer that is free."""
        self._jobs.put_nowait(job)

    async def _write_all(self) -> None:
        while True:
            # Without a name for the job: a writer that waits must not keep alive what the last one was about.
            await _done(await self._jobs.get())

    async def _write(self, entry: _Entry, step: Step) -> None:
        again = 0.0
        try:
            if step.patch is not None:
                await self._write_status(entry, step.patch)
            if step.remove and not entry.removal_sent:
                await self._remove(entry)
        except NotFoundError:
            entry.removal_sent = True  # it is gone, and the watch is about to say so
        except (ConflictError, InvalidError) as error:
            log.info("status refused", extra={"pod": entry.name, "error": str(error)})
            again = RETRY_SECONDS
        except ClientError as error:
            log.warning("status not written", extra={"pod": entry.name, "error": str(error)})
            again = RETRY_SECONDS
        finally:
            entry.writing = False
        if again:
            entry.wake = self._now() + again
            self._schedule(entry.wake, entry)
        else:
            self._queue(entry)

    async def _write_status(self, entry: _Entry, patch: dict[str, Any]) -> None:
        body = {"metadata": {"uid": entry.uid}, "status": patch}
        answer = await self.client.patch(
            BOUND_PODS,
            entry.name,
            body,
            entry.namespace,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
        entry.machine.written(patch)
        self._cache.written(BOUND_PODS, answer)

    async def _remove(self, entry: _Entry) -> None:
        """The last act of a kubelet: the object goes, unless finalizers keep it."""
        answer = await self.client.delete(
            BOUND_PODS, entry.name, entry.namespace, uid=entry.uid, grace_period_seconds=0
        )
        entry.removal_sent = True
        self._cache.delete_answered(BOUND_PODS, entry.uid, answer.object)


def _node_of(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


async def _done(job: Job) -> None:
    try:
        await job()
    except ClientError as error:
        log.warning("a node's write failed", extra={"error": str(error)})
