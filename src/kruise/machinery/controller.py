"""The loop around a kind's decisions: key -> snapshot -> decide -> apply -> conclude -> status and events.

A kind describes itself with a `ControllerSpec`; everything else is the same for all kinds. Sources map changes of
objects to keys. Workers take keys from the queue, at most one worker per key. A pass reads the stores, decides, writes,
and says when to look again and why. Whatever a kind's code raises costs that one key a retry, nobody else.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from kruise.api.meta import Key, key_of
from kruise.api.native.events import ObjectReference
from kruise.api.resource import Resource
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.clock import Clock
from kruise.machinery.codec import evolve
from kruise.machinery.journal import Journal
from kruise.machinery.metrics import Metrics, PassResult, RequeueCause
from kruise.machinery.plan import (
    Action,
    Chain,
    Conclusion,
    EventNote,
    Outcome,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    Weight,
)
from kruise.machinery.queue import Backoff, Queue, QueueShutDown
from kruise.machinery.spec import ControllerSpec, Source, View

log = logging.getLogger(__name__)

S = TypeVar("S")

_STATUS_EVERY = 0.5
"""Seconds between the status writes of an object whose passes follow each other closely."""

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


@dataclasses.dataclass(slots=True)
class _Pass(Generic[S]):
    """How far a pass came."""

    snapshot: S | None = None
    plan: Plan | None = None
    outcomes: Outcomes | None = None
    conclusion: Conclusion | None = None
    status: Outcome | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class _Subject:
    """What a pass is about, as it was before the writes."""

    resource: Resource[Any]
    key: Key
    object: Any


@dataclasses.dataclass(frozen=True, slots=True)
class _Later:
    """Remembers for a pass what its late chains belong to."""

    controller: Controller[Any]
    key: Key
    plan: Plan
    subject: _Subject

    def is_wanted(self) -> bool:
        """Hundreds of chains may wait for their turn. Somebody who pauses, scales in or deletes means these, too."""
        return self.controller.is_unchanged(self.subject)

    def let_go(self, phase: Phase, chain: Chain) -> None:
        self.controller.let_go(self.key, phase, chain)

    def ended(self, phase: Phase, chain: Chain, outcomes: tuple[Outcome, ...]) -> None:
        self.controller.ended(self, phase, chain, outcomes)


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
        self._under_way: dict[Key, dict[Target, str]] = {}
        self._failed_late: dict[Key, dict[str, str]] = {}
        self._told: dict[Key, float] = {}
        """When the status of an object was written last, for those that have much going on."""
        self._telling: dict[Key, asyncio.Task[Outcome]] = {}
        self._quiet: set[Key] = set()
        """Objects whose status is being written that nothing is decided by (`Weight.TOLD`)."""
        self._stopping = False
        self._metrics.workers.set(self._workers)
        self.resources = tuple(self._watch())
        """The kinds whose stores this controller cannot do without."""

    def _watch(self) -> Iterable[Resource[Any]]:
        for source in self.spec.all_sources:
            store = self._cache.add(source.kind)
            store.subscribe(self._handler(source))
            if not source.optional:
                yield source.resource

    def _handler(self, source: Source[Any]) -> Callable[[Any, Any], None]:
        is_subject = source.resource == self.spec.subject

        def on_change(old: Any, new: Any) -> None:
            if is_subject and self._quiet and _is_status_only(old, new) and key_of(new) in self._quiet:
                return
            for key in source.keys(old, new, self._cache):
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
        abandoned = len(late) + await self._applier.ends(self._grace)
        log.info("controller stopped", extra={"controller": self.spec.name, "abandoned": abandoned})

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
            view = View(
                self._cache,
                now=time,
                seed=seed,
                gates=self._gates,
                server_version=self._server_version,
                under_way=dict(self._under_way.get(key, {})),
                failed_before=self._failed_late.pop(key, None),
            )
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
        writes = (*(progress.outcomes or ()), *((progress.status,) if progress.status is not None else ()))
        try:
            self.journal.record(
                controller=self.spec.name,
                key=context.key,
                reconcile_id=context.reconcile_id,
                time=time,
                duration=duration,
                snapshot=progress.snapshot,
                plan=progress.plan,
                outcomes=writes if progress.outcomes is not None else None,
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
        later = _Later(self, key, plan, _Subject(spec.subject, key, subject))
        outcomes = progress.outcomes = await self._applier.apply(plan, stopping=self._is_stopping, later=later)
        conclusion = progress.conclusion = spec.concluded(snapshot, plan, outcomes)
        for note in conclusion.events:
            self.say(note, later.subject)
        if conclusion.status is not None:
            progress.status = await self._tell(key, conclusion.status, conclusion, outcomes)

    def say(self, note: EventNote, subject: _Subject) -> None:
        self._recorder.record(_regarding(note, subject), note.type.value, note.reason, note.message)

    async def _tell(self, key: Key, status: Action, conclusion: Conclusion, outcomes: Outcomes) -> Outcome | None:
        """Write the status. Where other passes follow at once, now and then is enough, and they do not wait for it."""
        before = self._telling.get(key)
        if conclusion.weight is not Weight.MEMORY and (key in self._under_way or outcomes.of(Result.DEFERRED)):
            now = self._clock.monotonic()
            if before is None and now - self._told.get(key, float("-inf")) >= _STATUS_EVERY:
                self._told[key] = now
                task = self._telling[key] = self._applier.begin(status, stopping=self._is_stopping)
                task.add_done_callback(functools.partial(self._has_told, key))
            return None
        if before is not None:
            await asyncio.wait({before})
        self._told.pop(key, None)
        if conclusion.weight is not Weight.TOLD:
            return await self._applier.carry_out(status, stopping=self._is_stopping)
        self._quiet.add(key)
        try:
            outcome = await self._applier.carry_out(status, stopping=self._is_stopping)
        finally:
            self._quiet.discard(key)
        latest = self._cache.find(self.spec.subject, key.namespace, key.name)
        if outcome.result is Result.DONE and _version(latest) != _version(outcome.object):
            self.queue.add(key, reason="somebody else wrote to it besides")
        return outcome

    def _has_told(self, key: Key, task: asyncio.Task[Outcome]) -> None:
        self._telling.pop(key, None)
        if task.cancelled() or self._stopping:
            return
        outcome = task.result()
        if outcome.result in (Result.FAILED, Result.UNKNOWN):
            self._retry(key, RequeueCause.STATUS, _describe(outcome))
        else:
            self.queue.add(key, reason="the status can be written again")

    def is_unchanged(self, subject: _Subject) -> bool:
        """Whether what a pass decided about an object may still begin."""
        if subject.object is None:
            return True  # of a kind that is not in the stores; it was decided about for other reasons
        now = self._cache.find(subject.resource, subject.key.namespace, subject.key.name)
        return now is not None and self.spec.still_holds(subject.object, now)

    def let_go(self, key: Key, phase: Phase, chain: Chain) -> None:
        under_way = self._under_way.setdefault(key, {})
        for action in chain:
            under_way[action.target] = phase.mark

    def ended(self, later: _Later, phase: Phase, chain: Chain, outcomes: tuple[Outcome, ...]) -> None:
        """A chain ended after its pass. Its objects can be decided about again, so the key is looked at in any case."""
        key = later.key
        under_way = self._under_way.get(key, {})
        for action in chain:
            under_way.pop(action.target, None)
        if not under_way:
            self._under_way.pop(key, None)
        if self._stopping:
            return
        for note in self.spec.events_of(later.plan, phase.name, outcomes):
            self.say(note, later.subject)
        bad = next((outcome for outcome in outcomes if outcome.result in (Result.FAILED, Result.UNKNOWN)), None)
        if bad is None:
            # A chain that was not begun is so because of another, which says itself when to look again.
            if any(outcome.result is not Result.SKIPPED for outcome in outcomes):
                self.queue.add(key, reason="writes of an earlier pass ended")
            return
        cause = RequeueCause.FAILED if bad.result is Result.FAILED else RequeueCause.UNKNOWN
        if bad.result is Result.FAILED:
            self._failed_late.setdefault(key, {})[phase.name] = bad.error or _describe(bad)
        self._retry(key, cause, _describe(bad))

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
            for memory in (self._overtaken, self._failed_late, self._told):
                memory.pop(key, None)
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
            if key not in self._under_way:  # how those end, counts too
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


def _is_status_only(old: Any, new: Any) -> bool:
    """Whether nothing but the status differs. The generation stands for the spec."""
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    return bool(evolve(before, resource_version="") == evolve(after, resource_version=""))


def _version(obj: Any) -> str:
    return obj.metadata.resource_version if obj is not None else ""


def _describe(outcome: Outcome) -> str:
    return f"{outcome.action.verb.value} {outcome.action.target}: {outcome.error or outcome.result.value}"


def _wakes(plan: Plan | None, conclusion: Conclusion | None) -> dict[str, float]:
    """The earliest moment for each reason."""
    all_wakes: tuple[Wake, ...] = (plan.wakes if plan else ()) + (conclusion.wakes if conclusion else ())
    earliest: dict[str, float] = {}
    for wake in all_wakes:
        earliest[wake.reason] = min(wake.after, earliest.get(wake.reason, wake.after))
    return earliest


def _regarding(note: EventNote, subject: _Subject) -> ObjectReference:
    resource, key, obj = subject.resource, subject.key, subject.object
    if note.target is not None:
        resource, key, uid, version = note.target.resource, note.target.key, note.uid, ""
    else:
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
