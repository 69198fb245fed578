"""The loop around a kind's decisions: key -> snapshot -> decide -> apply -> conclude -> status and events.

A kind describes itself with a `ControllerSpec`; everything else is the same for all kinds. Sources map changes of
objects to keys. Workers take keys from the queue, at most one worker per key. A pass reads the stores, decides, writes,
and says when to look again and why. Whatever a kind's code raises costs that one key a retry, nobody else.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from kruise.api.meta import Key, Object, controller_of, key_of
from kruise.api.native.events import ObjectReference
from kruise.api.resource import Resource, refers_to
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.clock import Clock
from kruise.machinery.journal import Journal
from kruise.machinery.metrics import Metrics, PassResult, RequeueCause
from kruise.machinery.plan import Conclusion, EventNote, Outcome, Outcomes, Plan, Result, Wake
from kruise.machinery.queue import Backoff, Queue, QueueShutDown
from kruise.machinery.store import Store

log = logging.getLogger(__name__)

S = TypeVar("S")
T = TypeVar("T", bound=Object)

# A decision that was overtaken is made again at once; if that goes on, a little later each time.
_AGAIN = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@dataclasses.dataclass(frozen=True, slots=True)
class ReconcileContext:
    """Which pass a log record belongs to."""

    controller: str
    key: Key
    reconcile_id: str


RECONCILE: ContextVar[ReconcileContext | None] = ContextVar("kruise_reconcile", default=None)


class Recorder(Protocol):
    """`kruise.machinery.events.EventRecorder`, or a list in tests."""

    def record(self, regarding: ObjectReference, kind: str, reason: str, message: str, /) -> None: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source(Generic[T]):
    """A kind whose changes matter, and for which keys. `keys` gets the old and the new object; None: not there."""

    resource: Resource[T] = dataclasses.field(kw_only=False)
    keys: Callable[[T | None, T | None], Iterable[Key]] = dataclasses.field(kw_only=False)
    indexes: Mapping[str, Callable[[T], Iterable[str]]] = dataclasses.field(default_factory=dict)
    trim: Callable[[T], T] | None = None
    optional: bool = False
    """The cluster may not serve this kind: the controller works without it. Ask its store whether it is `synced`."""


def own_key(old: Object | None, new: Object | None) -> tuple[Key, ...]:
    """The key of the changed object itself."""
    changed = new if new is not None else old
    return (key_of(changed),) if changed is not None else ()


def owner_keys(owner: Resource[Any]) -> Callable[[Object | None, Object | None], Iterable[Key]]:
    """Changes of an object concern the `owner` that controls it, and the one that did before."""

    def owner_of(obj: Object | None) -> Key | None:
        reference = controller_of(obj) if obj is not None else None
        if obj is None or reference is None or not refers_to(reference, owner):
            return None
        return Key(obj.metadata.namespace if owner.namespaced else "", reference.name)

    def keys(old: Object | None, new: Object | None) -> Iterable[Key]:
        before, after = owner_of(old), owner_of(new)
        if before is not None:
            yield before
        if after is not None and after != before:
            yield after

    return keys


def by_owner(obj: Object) -> tuple[str, ...]:
    """Index by the uid of the controlling owner."""
    reference = controller_of(obj)
    return (reference.uid,) if reference is not None else ()


OWNER = "owner"
OWNER_INDEX: Mapping[str, Callable[[Object], Iterable[str]]] = {OWNER: by_owner}


class View:
    """What a snapshot may be made of. Reading it costs no I/O."""

    __slots__ = ("_cache", "gates", "now", "seed", "server_version")

    def __init__(
        self, cache: Cache, *, now: datetime, seed: int, gates: Mapping[str, bool], server_version: Any
    ) -> None:
        self._cache = cache
        self.now = now
        self.seed = seed
        """Another one at each pass. A snapshot that needs names or a draw keeps it, so that a replay is exact."""
        self.gates = gates
        self.server_version = server_version

    def store(self, resource: Resource[T]) -> Store[T]:
        return self._cache.store(resource)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ControllerSpec(Generic[S]):
    """A kind's controller. `decide` and `conclude` are pure; `snapshot` only reads its view, None: nothing to do."""

    name: str
    subject: Resource[Any]
    sources: Collection[Source[Any]]
    snapshot: Callable[[View, Key], S | None]
    decide: Callable[[S], Plan]
    conclude: Callable[[S, Plan, Outcomes], Conclusion]
    snapshot_type: type[S]
    workers: int = 3
    pace: Callable[[S], float] | None = None
    """Seconds to gather changes in before the next pass over an object that was last seen so. Deciding about thousands
    of pods costs more than about ten, and one pass over a hundred changes does what a hundred passes would."""


@dataclasses.dataclass(slots=True)
class _Pass(Generic[S]):
    """How far a pass came."""

    snapshot: S | None = None
    plan: Plan | None = None
    outcomes: Outcomes | None = None
    conclusion: Conclusion | None = None
    status: Outcome | None = None


class Controller(Generic[S]):
    def __init__(
        self,
        spec: ControllerSpec[S],
        *,
        cache: Cache,
        applier: Applier,
        recorder: Recorder,
        clock: Clock,
        journal: Journal | None = None,
        metrics: Metrics | None = None,
        backoff: Backoff | None = None,
        window: float = 0.02,
        workers: int = 0,
        gates: Mapping[str, bool] | None = None,
        server_version: Any = None,
        seed: int = 0,
        sync_timeout: float | None = 120.0,
        grace: float = 10.0,
    ) -> None:
        """`seed` should be random in production: names are drawn from it. `grace` is how long passes that are under
        way may take to end when the controller is cancelled."""
        metrics = metrics or Metrics()
        self.spec = spec
        self.journal = journal or Journal()
        self.queue = Queue(spec.name, clock=clock, window=window, backoff=backoff, metrics=metrics.queue(spec.name))
        self._metrics = metrics.controller(spec.name)
        self._cache = cache
        self._applier = applier
        self._recorder = recorder
        self._clock = clock
        self._workers = workers or spec.workers
        self._gates = dict(gates or {})
        self._server_version = server_version
        self._seed = seed
        self._passes = 0
        self._sync_timeout = sync_timeout
        self._grace = grace
        self._overtaken: dict[Key, int] = {}
        self._stopping = False
        self._metrics.workers.set(self._workers)
        self.resources = tuple(self._watch())
        """The kinds whose stores this controller cannot do without."""

    def _watch(self) -> Iterable[Resource[Any]]:
        sources = list(self.spec.sources)
        if all(source.resource != self.spec.subject for source in sources):
            sources.insert(0, Source(self.spec.subject, own_key))
        for source in sources:
            store = self._cache.add(source.resource, indexes=source.indexes, trim=source.trim)
            store.subscribe(self._handler(source))
            if not source.optional:
                yield source.resource

    def _handler(self, source: Source[Any]) -> Callable[[Any, Any], None]:
        def on_change(old: Any, new: Any) -> None:
            for key in source.keys(old, new):
                self.queue.add(key)

        on_change.__qualname__ = f"{self.spec.name}: source {source.resource}"
        return on_change

    async def run(self) -> None:
        """Work until cancelled. Then no further write is begun, and those under way have `grace` seconds to end."""
        await self._cache.wait_synced(self._sync_timeout, self.resources)
        for obj in self._cache.store(self.spec.subject).list():
            self.queue.add(key_of(obj), reason="start")
        log.info("controller started", extra={"controller": self.spec.name, "workers": self._workers})
        workers = [
            asyncio.create_task(self._work(), name=f"{self.spec.name}-{number}") for number in range(self._workers)
        ]
        waiting = [
            asyncio.create_task(self._when_served(source.resource), name=f"{self.spec.name}-{source.resource}")
            for source in self.spec.sources
            if source.optional
        ]
        try:
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # workers end only by an error of the machinery itself, which must not go unseen
        finally:
            for task in waiting:
                task.cancel()
            await self._stop(workers)

    async def _when_served(self, resource: Resource[Any]) -> None:
        """A kind that comes later may change what every object needs."""
        if not self._cache.store(resource).synced:
            await self._cache.wait_synced(None, (resource,))
            for obj in self._cache.store(self.spec.subject).list():
                self.queue.add(key_of(obj), reason=f"{resource} is served now")

    async def _stop(self, workers: list[asyncio.Task[None]]) -> None:
        self._stopping = True
        self.queue.shut_down()
        try:
            _, late = await asyncio.wait(workers, timeout=self._grace)
        except asyncio.CancelledError:
            late = {worker for worker in workers if not worker.done()}
        for worker in late:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        log.info("controller stopped", extra={"controller": self.spec.name, "abandoned": len(late)})

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            self._metrics.active.inc()
            try:
                await self._reconcile(key)
            finally:
                self._metrics.active.dec()
                self.queue.done(key)
            # A pass without writes never waits for anything: let the others have the loop.
            await asyncio.sleep(0)

    async def _reconcile(self, key: Key) -> None:
        self._passes += 1
        seed = _mix(self._seed, self.spec.name, key, self._passes)
        context = ReconcileContext(self.spec.name, key, f"{seed:014x}")
        token = RECONCILE.set(context)
        began, time = self._clock.monotonic(), self._clock.now()
        progress: _Pass[S] = _Pass()
        error = ""
        try:
            view = View(self._cache, now=time, seed=seed, gates=self._gates, server_version=self._server_version)
            await self._pass(view, key, progress)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
            log.exception("reconcile failed by an error in the controller", extra=_fields(context))
        finally:
            duration = self._clock.monotonic() - began
            self._metrics.seconds.observe(duration)
            self._settle(key, progress, error)
            self._note(context, time, duration, progress, error)
            RECONCILE.reset(token)

    def _note(self, context: ReconcileContext, time: datetime, duration: float, progress: _Pass[S], error: str) -> None:
        if progress.snapshot is None and not error:
            self.journal.drop(self.spec.name, context.key)
            return
        outcomes = progress.outcomes
        if outcomes is not None and progress.status is not None:
            outcomes = Outcomes((*outcomes, progress.status))
        try:
            self.journal.record(
                controller=self.spec.name,
                key=context.key,
                reconcile_id=context.reconcile_id,
                time=time,
                duration=duration,
                snapshot=progress.snapshot,
                plan=progress.plan,
                outcomes=outcomes,
                conclusion=progress.conclusion,
                error=error,
            )
        except Exception:
            # A snapshot that cannot be written down is a fault of the kind, but no reason to stop its work.
            log.exception("pass not journalled", extra=_fields(context))

    async def _pass(self, view: View, key: Key, progress: _Pass[S]) -> None:
        spec = self.spec
        snapshot = spec.snapshot(view, key)
        if snapshot is None:
            return
        progress.snapshot = snapshot
        if spec.pace is not None:
            self.queue.pace(key, spec.pace(snapshot))
        plan = progress.plan = spec.decide(snapshot)
        # Taken before the writes: the last of them may end the subject, and the events are about this one.
        subject = view.store(spec.subject).get(key.namespace, key.name)
        outcomes = progress.outcomes = await self._applier.apply(plan, stopping=self._is_stopping)
        conclusion = progress.conclusion = spec.conclude(snapshot, plan, outcomes)
        for note in conclusion.events:
            self._recorder.record(
                _regarding(note, spec.subject, key, subject), note.type.value, note.reason, note.message
            )
        if conclusion.status is not None:
            progress.status = await self._applier.carry_out(conclusion.status, stopping=self._is_stopping)

    def _is_stopping(self) -> bool:
        return self._stopping

    def _settle(self, key: Key, progress: _Pass[S], error: str) -> None:
        """When to look at the key again, and how the pass counts."""
        if error:
            self._metrics.panics.inc()
            self._retry(key, RequeueCause.PANIC, error)
            return
        if progress.snapshot is None:
            self.queue.forget(key)
            self.queue.pace(key, 0.0)
            self._overtaken.pop(key, None)
            self._metrics.passes[PassResult.SUCCESS].inc()
            return
        if progress.conclusion is None:
            return  # cancelled in the middle: this process is about to end
        wakes = _wakes(progress.plan, progress.conclusion)
        for reason, after in wakes.items():
            self._metrics.requeues[RequeueCause.WAKE].inc()
            self.queue.add(key, after=after, reason=reason)
        cause, why = _why_again(progress)
        if cause is RequeueCause.MOVED:
            self._again(key, why)
        elif cause is not None:
            self._overtaken.pop(key, None)
            self._retry(key, cause, why)
        else:
            if progress.outcomes is not None and progress.outcomes.of(Result.DEFERRED):
                self._metrics.requeues[RequeueCause.DEFERRED].inc()
                self.queue.add(key, reason="the rest of a long pass")
            self.queue.forget(key)
            self._overtaken.pop(key, None)
            self._metrics.passes[PassResult.REQUEUE_AFTER if wakes else PassResult.SUCCESS].inc()

    def _again(self, key: Key, why: str) -> None:
        count = self._overtaken.get(key, 0)
        self._overtaken[key] = count + 1
        if count == len(_AGAIN):
            # No race lasts that long: more likely a patch never fits what the server holds.
            log.warning("decision overtaken again and again", extra={"controller": self.spec.name, "key": str(key)})
        self._metrics.passes[PassResult.REQUEUE].inc()
        self._metrics.requeues[RequeueCause.MOVED].inc()
        self.queue.add(key, after=_AGAIN[min(count, len(_AGAIN) - 1)], reason=why)

    def _retry(self, key: Key, cause: RequeueCause, why: str) -> None:
        self._metrics.passes[PassResult.ERROR].inc()
        self._metrics.errors.inc()
        self._metrics.requeues[cause].inc()
        self.queue.retry(key, why)


def _why_again(progress: _Pass[Any]) -> tuple[RequeueCause | None, str]:
    outcomes, conclusion, status = progress.outcomes, progress.conclusion, progress.status
    if outcomes is None or conclusion is None:
        return None, ""
    if conclusion.retry:
        return RequeueCause.RETRY, conclusion.retry
    failed = outcomes.failed
    if failed:
        return RequeueCause.FAILED, _describe(failed[0])
    unknown = outcomes.of(Result.UNKNOWN)
    if unknown:
        return RequeueCause.UNKNOWN, _describe(unknown[0])
    if status is not None and status.result in (Result.FAILED, Result.UNKNOWN):
        return RequeueCause.STATUS, _describe(status)
    if outcomes.must_decide_again or (status is not None and status.result is Result.MOVED):
        return RequeueCause.MOVED, "an object changed while the decision was carried out"
    return None, ""


def _describe(outcome: Outcome) -> str:
    return f"{outcome.action.verb.value} {outcome.action.target}: {outcome.error or outcome.result.value}"


def _wakes(plan: Plan | None, conclusion: Conclusion | None) -> dict[str, float]:
    """The earliest moment for each reason."""
    all_wakes: tuple[Wake, ...] = (plan.wakes if plan else ()) + (conclusion.wakes if conclusion else ())
    earliest: dict[str, float] = {}
    for wake in all_wakes:
        earliest[wake.reason] = min(wake.after, earliest.get(wake.reason, wake.after))
    return earliest


def _regarding(note: EventNote, subject: Resource[Any], key: Key, obj: Object | None) -> ObjectReference:
    if note.target is not None:
        resource, key, uid, version = note.target.resource, note.target.key, note.uid, ""
    else:
        resource = subject
        uid = note.uid or (obj.metadata.uid if obj is not None else "")
        version = obj.metadata.resource_version if obj is not None else ""
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=key.namespace,
        name=key.name,
        uid=uid,
        resource_version=version,
    )


def _mix(seed: int, name: str, key: Key, number: int) -> int:
    text = f"{seed}\n{name}\n{key.namespace}\n{key.name}\n{number}"
    # 53 bits: a number that every JSON reader keeps exact.
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 11


def _fields(context: ReconcileContext) -> dict[str, str]:
    return {
        "controller": context.controller,
        "namespace": context.key.namespace,
        "object": context.key.name,
        "reconcile_id": context.reconcile_id,
    }
