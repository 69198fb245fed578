"""Carrying out a Plan: the one place that writes, the same for every kind.

Phases run in order, the chains of a phase in parallel, the actions of a chain in order. How many writes are in flight
at a time is the limiter's business. Every answer goes into the store before the outcome is returned, so the next
decision sees it.

An answer that does not come leaves open whether the write was done. Such a write is sent again as it is: creates have
their full name, so "already exists, and its owner is ours" means that it worked; patches and deletes carry guards. A
read that finds nothing would prove nothing, because the request may still wait in a webhook. After some tries the
outcome is UNKNOWN, and the next decision takes what the watch shows by then.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import random
from collections.abc import Callable
from typing import Any, Protocol

from kruise.api.meta import controller_of
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ApiError, ClientError, NotFoundError
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.client.retry import NEVER
from kruise.machinery.clock import Clock
from kruise.machinery.course import (
    ANOTHER_FAILED,
    Course,
    ends_phase,
    not_begun,
    rest_of,
    skipped,
    skipped_phase,
    together,
)
from kruise.machinery.guards import EVICTION, Load, Verdict, guarded_body, is_delete, judge
from kruise.machinery.lacking import LackingRights
from kruise.machinery.limiter import WriteLimiter
from kruise.machinery.metrics import Metrics
from kruise.machinery.plan import (
    Action,
    Chain,
    ChainOutcomes,
    Outcome,
    Outcomes,
    Phase,
    PhaseOutcomes,
    Plan,
    Result,
    Urgency,
)

log = logging.getLogger(__name__)

Stopping = Callable[[], bool]
# Answers of these subresources are the object itself; those of others (scale, binding) are of another kind.
_WHOLE_OBJECT = frozenset({"", "status", "resize", "ephemeralcontainers"})
_BINDING = "binding"
_STOPPED = (Result.SKIPPED, "not begun: the controller is shutting down")
_FAILED_BEFORE = (Result.SKIPPED, ANOTHER_FAILED)
_PAUSED = (Result.DEFERRED, "not begun: the phase has taken its time, the rest is decided anew")
_DETACHED = (Result.PENDING, "pending: it ends after this pass")
_OVER = (Result.DEFERRED, "not sent: what permitted it is over, it is decided anew")
_STALE = (Result.DEFERRED, "not begun: the object was changed after this was decided")

Refusal = tuple[Result, str]
"""How a write ends that must not begin, and why."""


def never() -> bool:
    return False


class Run(Protocol):
    """Whose plan is carried out. It hears of chains that are detached (`Phase.detaches`), and how they ended."""

    def is_current(self) -> bool:
        """False: the plan is stale, no further chain of it is begun."""
        ...

    def detached(self, phase: Phase, chain: Chain) -> None: ...

    def ended(self, phase: Phase, chain: Chain, outcomes: ChainOutcomes) -> None: ...


class Memory(Protocol):
    """Where answers go: `kruise.machinery.cache.Cache`."""

    def written(self, resource: Resource[Any], obj: Any) -> None: ...

    def delete_answered(self, resource: Resource[Any], uid: str = "", obj: Any = None) -> None: ...

    def find(self, resource: Resource[Any], namespace: str, name: str) -> Any: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a write is tried whose answer is missing or says "not now", and the pauses between the tries."""

    attempts: int = 5
    first_delay: float = 0.1
    factor: float = 3.0
    longest: float = 30.0
    """A pause the server asks for is kept up to this; past it the decision is made anew instead of waiting."""

    def delay(self, attempt: int, asked: float, rng: random.Random) -> float:
        own = self.first_delay * self.factor**attempt
        return min(self.longest, max(own, asked) * (1 + 0.2 * rng.random()))


class Applier:
    def __init__(
        self,
        client: Client,
        cache: Memory | None,
        *,
        clock: Clock,
        limiter: WriteLimiter | None = None,
        metrics: Metrics | None = None,
        patience: Patience | None = None,
        timeout: float = 30.0,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        # Every refusal must reach the limiter and the rules here, so nothing is retried below.
        self._writer = Client(client.transport, clock=clock, field_manager=client.field_manager, retry=NEVER)
        self._timeout = timeout
        self._cache = cache
        self._clock = clock
        self._limiter = limiter or WriteLimiter(clock=clock)
        self._metrics = metrics or Metrics()
        self._metrics.observe_writes(lambda: self._limiter.limit, lambda: self._limiter.in_flight)
        self._patience = patience or Patience()
        self._rng = rng or random.Random(0)
        self._lacking = LackingRights(clock)
        self._detached: set[asyncio.Task[Any]] = set()
        """Writes that may outlast their pass."""

    async def apply(self, plan: Plan, *, stopping: Stopping = never, run: Run | None = None) -> Outcomes:
        """Carry out a plan; the outcomes are in plan order. Once `stopping` says so, no action is begun any more.

        Without a `run` nothing is detached: every chain is waited for.
        """
        outcomes: list[PhaseOutcomes] = []
        course = Course()
        for group in together(plan.phases):
            reasons = {phase.name: reason for phase in group if (reason := course.reason_to_skip(phase))}
            begun = [phase for phase in group if phase.name not in reasons]
            # The more urgent one first, where there is room for all at once, too: plans foresee this order.
            begun.sort(key=lambda phase: phase.urgency)
            runs = [_PhaseRun(phase, stopping, self._clock, run) for phase in begun]
            if len(runs) == 1:
                results = [await self._phase(runs[0])]
            else:
                async with asyncio.TaskGroup() as tasks:
                    running = [tasks.create_task(self._phase(one)) for one in runs]
                results = [task.result() for task in running]
            ended = {phase.name: result for phase, result in zip(begun, results, strict=True)}
            for phase in group:
                if phase.name in reasons:
                    outcomes.append(skipped_phase(phase, reasons[phase.name]))
                else:
                    outcomes.append(PhaseOutcomes(phase.name, ended[phase.name]))
                    course.ended(phase, outcomes[-1])
        return Outcomes(tuple(outcomes))

    async def carry_out(self, action: Action, *, stopping: Stopping = never) -> Outcome:
        """One write."""
        return await self._write(action, _Turn(lambda: _STOPPED if stopping() else None, Urgency.SOON), stopping)

    def begin(self, action: Action, *, stopping: Stopping = never) -> asyncio.Task[Outcome]:
        """One write that nobody waits for here; `drain` does."""
        task = asyncio.create_task(self.carry_out(action, stopping=stopping))
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)
        return task

    async def drain(self, grace: float) -> int:
        """Wait for detached writes, and abandon those that take longer; how many these are."""
        if not self._detached:
            return 0
        _, late = await asyncio.wait(self._detached, timeout=grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return len(late)

    async def _phase(self, run: _PhaseRun) -> tuple[ChainOutcomes, ...]:
        chains = run.phase.chains
        if run.owner is not None and run.phase.detaches and chains:
            return await self._detaching(run, run.owner)
        results: list[ChainOutcomes] = [()] * len(chains)
        indexes = iter(range(len(chains)))

        async def lane() -> None:
            for index in indexes:
                results[index] = await self._chain(chains[index], run)

        lanes = min(len(chains), self._limiter.maximum)
        if lanes == 1:
            await lane()
        elif lanes:
            async with asyncio.TaskGroup() as group:
                for _ in range(lanes):
                    group.create_task(lane())
        return tuple(results)

    async def _detaching(self, run: _PhaseRun, owner: Run) -> tuple[ChainOutcomes, ...]:
        """A phase whose chains may outlast the pass. Those that still wait for their turn are detached, too: they
        would have to queue again behind everybody else."""
        phase = run.phase
        tasks = [asyncio.create_task(self._chain(chain, run)) for chain in phase.chains]
        self._detached.update(tasks)
        for task in tasks:
            task.add_done_callback(self._detached.discard)
        try:
            await asyncio.wait(tasks, timeout=phase.pause_after)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
        outcomes: list[ChainOutcomes] = []
        for chain, task in zip(phase.chains, tasks, strict=True):
            if task.done():
                outcomes.append(task.result())
            else:
                outcomes.append(tuple(not_begun(action, *_DETACHED) for action in chain))
                owner.detached(phase, chain)
                task.add_done_callback(functools.partial(_report_end, owner, phase, chain))
        return tuple(outcomes)

    async def _chain(self, chain: Chain, run: _PhaseRun) -> ChainOutcomes:
        if run.permits is None:
            return await self._actions(chain, run)
        await run.permits.acquire()
        try:
            return await self._actions(chain, run)
        finally:
            run.permits.release()
            run.permits.release()

    async def _actions(self, chain: Chain, run: _PhaseRun) -> ChainOutcomes:
        outcomes: list[Outcome] = []
        for position, action in enumerate(chain):
            turn = run.next_turn() if position else run.first_turn()
            outcome = await self._write(action, turn, run.stopping)
            outcomes.append(outcome)
            if outcome.result is not Result.DONE:
                run.closed |= ends_phase(run.phase, outcome.result)
                outcomes += rest_of(chain, position)
                break
        return tuple(outcomes)

    async def _write(self, action: Action, turn: _Turn, stopping: Stopping) -> Outcome:
        if (refusal := turn.refusal()) is not None:
            return not_begun(action, *refusal)
        try:
            body = guarded_body(action)
        except (TypeError, ValueError) as error:
            outcome = Outcome(action=action, result=Result.FAILED, error=f"{action.target}: cannot be sent: {error}")
        else:
            outcome = await self._try(action, body, turn, stopping)
        if outcome.result not in (Result.SKIPPED, Result.DEFERRED):
            kind = action.target.resource.group_resource
            resource = f"{kind}/{action.subresource}" if action.subresource else kind
            self._metrics.wrote(action.verb.value, resource, outcome.result.value)
        return outcome

    async def _try(self, action: Action, body: bytes, turn: _Turn, stopping: Stopping) -> Outcome:
        may_have_acted = False
        attempt = 0
        failure: ClientError | None = None
        while True:
            urgency, until = (Urgency.NOW, None) if attempt else (turn.urgency, turn.until)
            began = await self._limiter.acquire(until=until, urgency=urgency)
            if began is None:
                return not_begun(action, *(turn.refusal() or _PAUSED))
            refusal = _OVER if turn.is_over() else turn.refusal() if attempt == 0 else None
            if refusal is not None:
                self._limiter.release(began, Load.SILENT)
                if failure is not None and may_have_acted:
                    return _ended(action, Result.UNKNOWN, failure)
                return not_begun(action, *refusal)
            load = Load.SILENT
            try:
                answer = await self._send(action, body)
                load = Load.FINE
            except ClientError as error:
                failure = error.with_traceback(
                    None
                )  # a traceback knows this frame, and the frame would know the error: a cycle
                verdict = judge(action, error)
                load = verdict.load
                self._lacking.tell(action, error)
            except ValueError as error:
                return Outcome(action=action, result=Result.FAILED, error=f"cannot be sent: {error}")
            except asyncio.CancelledError:
                log.warning("write abandoned without waiting for its answer", extra={"target": str(action.target)})
                raise
            else:
                return self._settled(action, answer)
            finally:
                self._limiter.release(began, load)
            if isinstance(failure, AlreadyExistsError):
                known = await self._existing(action, failure, may_have_acted)
                if known is not None:
                    return known
                verdict = Verdict(result=None, cause="vanished")
            may_have_acted |= verdict.may_have_acted
            if verdict.result is Result.FAILED and may_have_acted and action.verb is Verb.CREATE:
                # A quota may refuse the second try because the first one has used it up.
                return _ended(action, Result.UNKNOWN, failure)
            if verdict.result is not None:
                return _ended(action, verdict.result, failure)
            attempt += 1
            if attempt >= self._patience.attempts or verdict.retry_after > self._patience.longest or stopping():
                return _ended(action, Result.UNKNOWN if may_have_acted else Result.FAILED, failure)
            self._metrics.tried_again(verdict.cause)
            await asyncio.sleep(self._patience.delay(attempt - 1, verdict.retry_after, self._rng))

    async def _send(self, action: Action, body: bytes) -> Any:
        target = action.target
        if action.subresource == EVICTION:
            return await self._writer.evict(
                target.resource,
                target.name,
                target.namespace,
                uid=action.uid,
                grace_period_seconds=action.grace_period_seconds,
                timeout=self._timeout,
            )
        if action.subresource == _BINDING:
            return await self._writer.bind(
                target.resource,
                target.name,
                target.namespace,
                node=action.body["node"],
                uid=action.uid,
                timeout=self._timeout,
            )
        if action.verb is Verb.DELETE:
            return await self._writer.delete(
                target.resource,
                target.name,
                target.namespace,
                uid=action.uid,
                resource_version=action.resource_version,
                grace_period_seconds=action.grace_period_seconds,
                propagation=action.propagation,
                timeout=self._timeout,
            )
        if action.verb is Verb.CREATE:
            return await self._writer.create(
                target.resource,
                body,
                target.namespace,
                subresource=action.subresource,
                name=_parent(action),
                timeout=self._timeout,
            )
        return await self._writer.patch(
            target.resource,
            target.name,
            body,
            target.namespace,
            patch_type=action.patch_type or PatchType.MERGE,
            subresource=action.subresource,
            field_manager=action.field_manager,
            force=action.force,
            timeout=self._timeout,
        )

    def _settled(self, action: Action, answer: Any) -> Outcome:
        """The server did it. The store learns of it before anyone else."""
        resource = action.target.resource
        if is_delete(action):
            obj = getattr(answer, "object", None)
            if self._cache is not None:
                self._cache.delete_answered(resource, getattr(answer, "uid", "") or action.uid, obj)
            return Outcome(action=action, result=Result.DONE, object=obj)
        if action.subresource in _WHOLE_OBJECT:
            if self._cache is not None:
                self._cache.written(resource, answer)
            if action.uid and answer.metadata.uid not in ("", action.uid):
                # The server ignored the guard (see `guards`): another object got the status of ours.
                text = f"{action.target} was replaced by another object of this name"
                return Outcome(action=action, result=Result.MOVED, object=answer, error=text)
        return Outcome(action=action, result=Result.DONE, object=answer)

    async def _existing(self, action: Action, error: AlreadyExistsError, may_have_acted: bool) -> Outcome | None:
        """Look at what is there under the name; None: it has gone again, or could not be read."""
        target = action.target
        if not action.owner_uid:
            return _ended(action, Result.UNKNOWN if may_have_acted else Result.FAILED, error)
        known = self._cache.find(target.resource, target.namespace, target.name) if self._cache is not None else None
        if known is None or not _is_owned(known, action.owner_uid) or known.metadata.deletion_timestamp is not None:
            try:
                known = await self._client.get(target.resource, target.name, target.namespace, timeout=self._timeout)
            except NotFoundError:
                return None
            except ClientError as failure:
                log.info("existing object not readable", extra={"target": str(target), "error": str(failure)})
                return None
            if self._cache is not None:
                self._cache.written(target.resource, known)
        if not _is_owned(known, action.owner_uid):
            return _ended(action, Result.FAILED, error)
        if known.metadata.deletion_timestamp is not None:
            # Ours, but of an earlier life: the new one can be made when it has gone.
            return dataclasses.replace(_ended(action, Result.MOVED, error), object=known)
        return Outcome(action=action, result=Result.DONE, object=known)


@dataclasses.dataclass(frozen=True, slots=True)
class _Turn:
    """How a write comes to its turn."""

    refusal: Callable[[], Refusal | None]
    """None: it may begin."""
    urgency: Urgency
    until: float | None = None
    """It gives up then."""
    is_over: Callable[[], bool] = never
    """What permits it is over: it must not be sent any more, whether or not it was before."""


class _PhaseRun:
    """What the chains of a phase know of each other."""

    def __init__(self, phase: Phase, stopping: Stopping, clock: Clock, owner: Run | None = None) -> None:
        self._clock = clock
        waits_for_all = owner is None or not phase.detaches
        self._ends = clock.monotonic() + phase.pause_after if phase.pause_after is not None and waits_for_all else None
        self.phase = phase
        self.stopping = stopping
        self.closed = False
        """No further chain may begin."""
        self.owner = owner
        self.permits = asyncio.Semaphore(1) if phase.slow_start else None
        """Each success permits two more: with n successes at most 2n + 1 chains were begun."""

    def first_turn(self) -> _Turn:
        return _Turn(self.refuse_chain, self.phase.urgency, until=self._ends, is_over=self.is_over)

    def next_turn(self) -> _Turn:
        return _Turn(self.refuse_action, Urgency.NOW, is_over=self.is_over)

    def is_over(self) -> bool:
        return self.phase.not_after is not None and self._clock.now() >= self.phase.not_after

    def refuse_chain(self) -> Refusal | None:
        if self.closed:
            return _FAILED_BEFORE
        if self._ends is not None and self._clock.monotonic() > self._ends:
            return _PAUSED
        if self.owner is not None and not self.owner.is_current():
            return _STALE
        return self.refuse_action()

    def refuse_action(self) -> Refusal | None:
        return _STOPPED if self.stopping() else None


def _report_end(owner: Run, phase: Phase, chain: Chain, task: asyncio.Task[ChainOutcomes]) -> None:
    if task.cancelled():
        outcomes = skipped(chain, "abandoned: the controller is shutting down")
    elif (error := task.exception()) is not None:
        log.error("chain ended by an error of the machinery", exc_info=error)
        outcomes = tuple(not_begun(action, Result.UNKNOWN, str(error)) for action in chain)
    else:
        outcomes = task.result()
    owner.ended(phase, chain, outcomes)


def _parent(action: Action) -> str:
    """A create of a subresource names the object it belongs to in the path."""
    return action.target.name if action.subresource else ""


def _is_owned(obj: Any, owner_uid: str) -> bool:
    owner = controller_of(obj)
    return owner is not None and owner.uid == owner_uid


def _ended(action: Action, result: Result, error: ClientError) -> Outcome:
    if result is Result.DONE:
        return Outcome(action=action, result=result)
    code, reason = (error.code, error.reason) if isinstance(error, ApiError) else (0, "")
    return Outcome(action=action, result=result, error=str(error), error_code=code, error_reason=reason)
