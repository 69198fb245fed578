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
from kruise.machinery.delays import LONGEST_WAIT
from kruise.machinery.journal import Journal
from kruise.machinery.key_state import KeyState, KeyStates
from kruise.machinery.metrics import Metrics, PassResult, RequeueCause
from kruise.machinery.plan import (
    Chain,
    ChainOutcomes,
    Conclusion,
    EventNote,
    JobState,
    Outcome,
    Outcomes,
    Phase,
    Plan,
    Result,
    Wake,
)
from kruise.machinery.queue import Backoff, Queue, QueueShutDown
from kruise.machinery.spec import ControllerSpec, Source, View
from kruise.machinery.status_writes import StatusWriter

log = logging.getLogger(__name__)

S = TypeVar("S")

# A decision that was stale is made again at once; if that goes on, a little later each time.
_STALE_DELAYS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


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


class OutsideError(Exception):
    """What is outside of the API could not be seen; it is tried again, as after a failed write."""


class Outside(Protocol):
    """What a controller sees and does beside the API: see `kruise.daemon`."""

    async def look(self, key: Key, /) -> Any:
        """Whatever the snapshot needs of it; None: there is nothing to do. Raises OutsideError."""

    def jobs(self, key: Key, /) -> Mapping[str, JobState]: ...

    def carry_out(self, key: Key, plan: Plan, /) -> None:
        """Drop and begin the jobs of a plan whose writes are done."""

    def drop(self, key: Key, names: Iterable[str], /) -> None:
        """Drop these jobs, whatever became of the writes."""

    def forget(self, key: Key, /) -> None:
        """There is nothing more to do about the key."""


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
class _Run:
    """A plan that is carried out, and what its detached chains belong to (`kruise.machinery.apply.Run`)."""

    controller: Controller[Any]
    key: Key
    plan: Plan
    subject: _Subject

    def is_current(self) -> bool:
        """Hundreds of chains may wait for their turn. Somebody who pauses, scales in or deletes means these, too."""
        return self.controller.is_unchanged(self.subject)

    def detached(self, phase: Phase, chain: Chain) -> None:
        self.controller.detached(self, phase, chain)

    def ended(self, phase: Phase, chain: Chain, outcomes: ChainOutcomes) -> None:
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
        outside: Outside | None = None,
    ) -> None:
        """`seed` should be random in production: names are drawn from it. `grace` is how long passes in progress
        may take to end when the controller is cancelled."""
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
        self._outside = outside
        self._states = KeyStates()
        self._stopping = False
        self._statuses = StatusWriter(
            spec.subject,
            cache=cache,
            applier=applier,
            clock=clock,
            queue=self.queue,
            states=self._states,
            stopping=self._is_stopping,
            failed=lambda key, outcome: self._retry(key, RequeueCause.STATUS, _describe(outcome)),
        )
        self._metrics.workers.set(self._workers)
        self.resources = tuple(self._watch())
        """The kinds whose stores this controller cannot do without."""

    def _watch(self) -> Iterable[Resource[Any]]:
        # All kinds are watched before the first change is looked at: sources look at each other's stores, and what is
        # there already is a change.
        stores = [(source, self._cache.add(source.kind)) for source in self.spec.all_sources]
        for source, store in stores:
            store.subscribe(self._handler(source))
            if not source.optional:
                yield source.resource

    def _handler(self, source: Source[Any]) -> Callable[[Any, Any], None]:
        is_subject = source.resource == self.spec.subject

        def on_change(old: Any, new: Any) -> None:
            if is_subject and self._statuses.is_echo(old, new):
                return
            for key in source.keys(old, new, self._cache):
                self.queue.add(key)

        on_change.__qualname__ = f"{self.spec.name}: source {source.resource}"
        return on_change

    async def run(self) -> None:
        """Work until cancelled. Then no further write is begun, and those in flight have `grace` seconds to end."""
        await self._cache.wait_synced(self._sync_timeout, self.resources)
        for obj in self._cache.store(self.spec.subject).list():
            if self.spec.at_start is None or self.spec.at_start(obj):
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
        abandoned = len(late) + await self._applier.drain(self._grace)
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
        error, cause = "", RequeueCause.PANIC
        try:
            seen = await self._outside.look(key) if self._outside is not None else None
            state = self._states.get(key)
            if self._outside is not None:
                time = self._clock.now()  # the look may have taken its time
            view = View(
                self._cache,
                now=time,
                seed=seed,
                gates=self._gates,
                server_version=self._server_version,
                pending=dict(state.pending) if state is not None else None,
                failures=state.take_failures() if state is not None else None,
                outside=seen,
                jobs=self._outside.jobs(key) if self._outside is not None else None,
            )
            if self._outside is None or seen is not None:
                await self._pass(view, key, progress)
            if self._outside is not None and progress.snapshot is None:
                self._outside.forget(key)
        except OutsideError as raised:
            error, cause = str(raised), RequeueCause.RETRY
            log.warning("reconcile failed", extra={**_fields(context), "error": error})
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
            log.exception("reconcile failed by an error in the controller", extra=_fields(context))
        finally:
            duration = self._clock.monotonic() - began
            self._metrics.seconds.observe(duration)
            self._requeue(key, progress, error, cause)
            self._states.tidy(key)
            self._journal_pass(context, time, duration, progress, error)
            RECONCILE.reset(token)

    def _journal_pass(
        self, context: ReconcileContext, time: datetime, duration: float, progress: _Pass[S], error: str
    ) -> None:
        if progress.snapshot is None and not error:
            self.journal.drop(self.spec.name, context.key)
            return
        writes = (*(progress.outcomes or ()), *((progress.status,) if progress.status is not None else ()))
        try:
            snapshot, plan = progress.snapshot, progress.plan
            if snapshot is not None:
                snapshot, plan = self.spec.shown(snapshot, plan)
            self.journal.record(
                controller=self.spec.name,
                key=context.key,
                reconcile_id=context.reconcile_id,
                time=time,
                duration=duration,
                snapshot=snapshot,
                plan=plan,
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
        run = _Run(self, key, plan, _Subject(spec.subject, key, subject))
        outcomes = progress.outcomes = await self._applier.apply(plan, stopping=self._is_stopping, run=run)
        if self._outside is not None and all(outcome.result is Result.DONE for outcome in outcomes):
            self._outside.carry_out(key, plan)
        conclusion = progress.conclusion = spec.concluded(snapshot, plan, outcomes)
        if self._outside is not None:
            self._outside.drop(key, conclusion.drops)
        self._record_events(conclusion.events, run.subject)
        if conclusion.status is not None:
            progress.status = await self._statuses.write(key, conclusion.status, conclusion.effect, outcomes)

    def _record_events(self, notes: Iterable[EventNote], subject: _Subject) -> None:
        for note in notes:
            self._recorder.record(_regarding(note, subject), note.type.value, note.reason, note.message)

    def is_unchanged(self, subject: _Subject) -> bool:
        """Whether what a pass decided about an object may still begin."""
        if subject.object is None:
            return True  # of a kind that is not in the stores; it was decided about for other reasons
        now = self._cache.find(subject.resource, subject.key.namespace, subject.key.name)
        return now is not None and self.spec.still_holds(subject.object, now)

    def detached(self, run: _Run, phase: Phase, chain: Chain) -> None:
        self._states.of(run.key).add_pending(chain, phase.mark)

    def ended(self, run: _Run, phase: Phase, chain: Chain, outcomes: ChainOutcomes) -> None:
        """A chain ended after its pass. Its objects can be decided about again, so the key is looked at in any case."""
        key, state = run.key, self._states.of(run.key)
        state.remove_pending(chain)
        self._states.tidy(key)
        if self._stopping:
            return
        self._requeue_late(key, phase, outcomes)
        try:
            self._record_events(self.spec.events_of(run.plan, phase.name, outcomes), run.subject)
        except Exception:
            # A kind that cannot tell its events must not take the requeue of the key with it.
            self._metrics.panics.inc()
            log.exception("events of a late write not told", extra={"controller": self.spec.name, "key": str(key)})

    def _requeue_late(self, key: Key, phase: Phase, outcomes: ChainOutcomes) -> None:
        bad = next((outcome for outcome in outcomes if outcome.result in (Result.FAILED, Result.UNKNOWN)), None)
        if bad is None:
            # A chain that was not begun is so because of another, which requeues the key itself.
            if any(outcome.result is not Result.SKIPPED for outcome in outcomes):
                self.queue.add(key, reason="writes of an earlier pass ended")
            return
        cause = RequeueCause.FAILED if bad.result is Result.FAILED else RequeueCause.UNKNOWN
        if bad.result is Result.FAILED:
            self._states.of(key).failures[phase.name] = bad.error or _describe(bad)
        self._retry(key, cause, _describe(bad))

    def _is_stopping(self) -> bool:
        return self._stopping

    def _requeue(self, key: Key, progress: _Pass[S], error: str, cause: RequeueCause) -> None:
        """When to look at the key again, and how the pass counts."""
        if error:
            if cause is RequeueCause.PANIC:
                self._metrics.panics.inc()
            self._retry(key, cause, error)
            return
        if progress.snapshot is None:
            self.queue.forget(key)
            self.queue.pace(key, 0.0)
            if (state := self._states.get(key)) is not None:
                state.forget()
            self._metrics.passes[PassResult.SUCCESS].inc()
            return
        if progress.conclusion is None:
            return  # cancelled in the middle: this process is about to end
        wakes = _wakes(progress.plan, progress.conclusion)
        again, why = _why_again(progress)
        for reason, after in wakes.items():
            if again is not None and after <= 0:
                continue  # the key is looked at again anyway, after a pause that grows while it fails
            self._metrics.requeues[RequeueCause.WAKE].inc()
            self.queue.add(key, after=after, reason=reason)
        state = self._states.of(key)
        if again is RequeueCause.MOVED:
            self._decide_again(key, state, why)
            return
        state.stale = 0
        if again is not None:
            self._retry(key, again, why)
        else:
            if progress.outcomes is not None and progress.outcomes.of(Result.DEFERRED):
                self._metrics.requeues[RequeueCause.DEFERRED].inc()
                self.queue.add(key, reason="the rest of a long pass")
            if not state.pending:  # how those end, counts too
                self.queue.forget(key)
            self._metrics.passes[PassResult.REQUEUE_AFTER if wakes else PassResult.SUCCESS].inc()

    def _decide_again(self, key: Key, state: KeyState, why: str) -> None:
        count = state.stale
        state.stale += 1
        if count == len(_STALE_DELAYS):
            # No race lasts that long: more likely a patch never fits what the server holds.
            log.warning("decision stale again and again", extra={"controller": self.spec.name, "key": str(key)})
        self._metrics.passes[PassResult.REQUEUE].inc()
        self._metrics.requeues[RequeueCause.MOVED].inc()
        self.queue.add(key, after=_STALE_DELAYS[min(count, len(_STALE_DELAYS) - 1)], reason=why)

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
    """The earliest moment for each reason, none of them far away: plans go by the clock on the wall, which may be set
    meanwhile, and waits by one that only runs."""
    all_wakes: tuple[Wake, ...] = (plan.wakes if plan else ()) + (conclusion.wakes if conclusion else ())
    earliest: dict[str, float] = {}
    for wake in all_wakes:
        earliest[wake.reason] = min(wake.after, LONGEST_WAIT, earliest.get(wake.reason, wake.after))
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
        field_path=note.field_path,
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
