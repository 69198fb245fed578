"""From a decoded review to its answer: wait for stores, ask the handler, read and write for it, within the deadline.

The only part of admission that both calls handlers and touches the API. It fails closed: what cannot be decided in time
is refused with a text that says why.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import logging
import random
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeVar

from kruise.admission import review
from kruise.admission.bookkeeping import BookingError, Bookkeeper
from kruise.admission.coming import Coming, Expected
from kruise.admission.decisions import (
    Allow,
    Answer,
    Change,
    Deny,
    Failure,
    HandlerView,
    Invalid,
    Listing,
    Mutation,
    Needs,
    NeedsBooking,
    NeedsReads,
    NeedsWrites,
    Protected,
    PublicNote,
    Read,
    Trial,
)
from kruise.admission.registry import Handler, MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest, UndecodableError
from kruise.api.meta import Object
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError, ClientError, NotFoundError, Status
from kruise.machinery.clock import Clock
from kruise.machinery.patches import json_patch
from kruise.machinery.plan import Action, Outcome, Result, Target
from kruise.machinery.store import Store
from kruise.machinery.watched import watched

T = TypeVar("T", bound=Object)
log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0
MAX_ROUNDS = 8
_PAUSE = 0.02
"""Seconds, at most, before another try after a write that others were faster with: longer each time."""


class Stores(Protocol):
    """What is used of `kruise.machinery.cache.Cache`."""

    def store(self, resource: Resource[T]) -> Store[T]: ...

    def written(self, resource: Resource[T], obj: T) -> None: ...

    async def wait_synced(self, timeout: float | None, resources: Collection[Resource[Any]] | None) -> None: ...


class Hands(Protocol):
    """Does for a handler what a pure decision cannot."""

    async def carry_out(self, action: Action) -> Outcome: ...

    async def read(self, target: Read) -> Any:
        """What the API server has now; None if there is none."""


class _Writer(Protocol):
    async def carry_out(self, action: Action) -> Outcome: ...


class LiveHands:
    """Writes through an applier, reads through a client, and lets the store learn what was read."""

    def __init__(self, writer: _Writer, client: Client, stores: Stores | None = None) -> None:
        self._writer = writer
        self._client = client
        self._stores = stores

    async def carry_out(self, action: Action) -> Outcome:
        return await self._writer.carry_out(action)

    async def read(self, target: Read) -> Any:
        if isinstance(target, Listing):
            return (await self._client.list(target.resource, target.namespace)).items
        if isinstance(target, Trial):
            await self._client.create(target.resource, target.body, target.namespace, dry_run=True)
            return None
        try:
            found = await self._client.get(target.resource, target.name, target.namespace)
        except NotFoundError:
            return None
        if self._stores is not None:
            self._stores.written(target.resource, found)
        return found


def deadline_of(timeout: float | None) -> float:
    """Seconds that a handler may take. The API server rounds the time it sends up to whole seconds, and the answer has
    to travel back, so up to 1.2 s are kept in hand."""
    given = DEFAULT_TIMEOUT if timeout is None or not timeout > 0 else min(timeout, LONGEST_TIMEOUT)
    return given - min(1.2, given / 4)


class _RefusedError(Exception):
    """Ends the questioning with a refusal that is not the handler's own."""

    def __init__(self, answer: Deny) -> None:
        super().__init__(answer.message)
        self.answer = answer


@dataclasses.dataclass(frozen=True, slots=True)
class Answerer:
    """Answers reviews. `gates` and `server_version` are passed on to handlers."""

    clock: Clock
    stores: Stores | None = None
    hands: Hands | None = None
    gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    server_version: Callable[[], Any] = lambda: None
    record: Callable[[Protected, str], None] = lambda refusal, username: None
    """Is told of refusals that are to be counted, and of who was refused."""
    publish: Callable[[PublicNote], None] = lambda note: None
    """Is told of events about refusals."""
    _coming: Coming = dataclasses.field(default_factory=Coming, init=False, repr=False, compare=False)
    _bookkeepers: list[Bookkeeper] = dataclasses.field(default_factory=list, init=False, repr=False, compare=False)

    async def answer(self, handler: Handler, version: str, request: AdmissionRequest, timeout: float | None) -> bytes:
        """The encoded AdmissionReview. Raises nothing but cancellation: every failure is a refusal with a text."""
        try:
            said = await self._question(handler, request, deadline_of(timeout))
            if isinstance(said, Change) and not isinstance(handler, MutatingHandler):
                raise TypeError(f"{handler.path} validates, so it cannot change the object")
            if isinstance(said, Deny) and said.record is not None:
                self.record(said.record, request.user_info.username)
            if isinstance(said, Deny) and said.note is not None:
                self.publish(said.note)
            if isinstance(said, Allow) and isinstance(handler, ValidatingHandler) and handler.awaited is not None:
                self._coming.note(handler.awaited, request, self.clock.now())
            return _encode(version, request, said)
        except _RefusedError as refused:
            return _encode(version, request, refused.answer)
        except UndecodableError as error:
            return _encode(version, request, Deny(message=str(error), code=400, reason="BadRequest"))
        except Exception as error:
            # A defect in one handler must neither end the server nor let the request pass (PW-4).
            log.exception("admission handler failed", extra={"path": handler.path, "request": str(request)})
            return _encode(version, request, _step_error(handler, f"{type(error).__name__}: {error}"))

    async def _question(self, handler: Handler, request: AdmissionRequest, seconds: float) -> Answer:
        view = HandlerView(
            now=self.clock.now(),
            seed=zlib.crc32(request.uid.encode()),
            gates=self.gates,
            server_version=self.server_version(),
        )
        if self.stores is not None:
            stores = functools.partial(_store, self.stores, handler)
            view = dataclasses.replace(view, stores=stores, coming=functools.partial(self._awaited, stores))
        said: Mutation | None = None
        if not handler.needs:
            # Most requests need nothing but themselves: no timer is set for them.
            said = handler.decide(request, view)
            if not isinstance(said, Needs):
                return said
        doing = "waiting for the first list of " + ", ".join(str(resource) for resource in _waited_for(handler))
        give_up = asyncio.get_running_loop().time() + seconds
        lost = 0
        try:
            async with asyncio.timeout_at(give_up):
                await self._stores_filled(handler)
                for rounds in range(1, MAX_ROUNDS + 1):
                    if said is None:
                        said = handler.decide(request, view)
                    if isinstance(said, NeedsReads):
                        doing = "reading " + ", ".join(str(target) for target in said.targets)
                        found = await asyncio.gather(
                            *(self._read(request, target, may_fail=said.may_fail) for target in said.targets)
                        )
                        reads = dict(zip(said.targets, found, strict=True))
                        view = dataclasses.replace(view, reads={**view.reads, **reads})
                    elif isinstance(said, NeedsWrites):
                        doing = "writing " + ", ".join(str(action.target) for action in said.actions)
                        if lost:
                            await asyncio.sleep(random.uniform(0, _PAUSE * lost))
                        before = len(view.outcomes)
                        view = await self._write(request, view, said.actions)
                        lost += any(item.result is Result.MOVED for item in view.outcomes[before:])
                    elif isinstance(said, NeedsBooking):
                        doing = f"writing {said.target}"
                        booked = await self._booked(request, said, give_up - seconds / 20)
                        view = dataclasses.replace(view, bookings={**view.bookings, said.target: booked})
                    else:
                        return said
                    said = None
                    late = asyncio.get_running_loop().time() > give_up - seconds / 4
                    view = dataclasses.replace(view, now=self.clock.now(), last_try=late or rounds == MAX_ROUNDS - 1)
        except BookingError as error:
            raise _RefusedError(_step_error(handler, f"{request}: {error}")) from None
        except TimeoutError:
            raise _RefusedError(
                _step_error(handler, f"{request}: no decision within {seconds:.1f} s, while {doing}; try again", 500)
            ) from None
        raise _RefusedError(
            _step_error(handler, f"{request}: other writers were faster {MAX_ROUNDS} times, while {doing}; try again")
        )

    def _awaited(self, stores: Callable[[Resource[Any]], Store[Any]], resource: Resource[Any]) -> tuple[Expected, ...]:
        return self._coming.awaited(stores(resource), self.clock.now()) if self._coming else ()

    async def _stores_filled(self, handler: Handler) -> None:
        if not handler.needs:
            return
        if self.stores is None:
            raise LookupError(f"{handler.path} needs stores, but this server has none")
        resources = _waited_for(handler)
        if not all(self.stores.store(resource).synced for resource in resources):
            await self.stores.wait_synced(None, resources)

    async def _read(self, request: AdmissionRequest, target: Read, *, may_fail: bool = False) -> Any:
        try:
            return await self._hands(request).read(target)
        except ClientError as error:
            if may_fail:
                status = error.status if isinstance(error, ApiError) else Status()
                return Failure(status.code, status.reason, str(error))
            raise LookupError(f"cannot read {target}: {error}") from error

    async def _write(self, request: AdmissionRequest, view: HandlerView, actions: tuple[Action, ...]) -> HandlerView:
        outcomes = list(view.outcomes)
        reads = dict(view.reads)
        stopped = request.is_dry_run
        for action in actions:
            if stopped:
                outcomes.append(Outcome(action=action, result=Result.SKIPPED))
                continue
            outcome = await self._hands(request).carry_out(action)
            outcomes.append(outcome)
            stopped = outcome.result is not Result.DONE
            if outcome.result is Result.DONE:
                if action.target in reads:
                    reads[action.target] = outcome.object
            elif outcome.result in (Result.MOVED, Result.GONE, Result.UNKNOWN):
                # The store may lag behind the write that was faster: decide again on what is there now.
                reads[action.target] = await self._read(request, action.target)
        return dataclasses.replace(view, outcomes=tuple(outcomes), reads=reads)

    async def _booked(self, request: AdmissionRequest, needs: NeedsBooking, give_up: float) -> Any:
        keeper = self._bookkeeper(request)
        booking = keeper.tried(needs) if request.is_dry_run else keeper.book(needs)
        if not needs.may_fail:
            return await booking
        try:
            async with asyncio.timeout_at(give_up):
                return await booking
        except (BookingError, ClientError) as error:
            return Failure(0, "", str(error))
        except TimeoutError:
            return Failure(504, "Timeout", f"{needs.target} could not be written in time; try again")

    def _bookkeeper(self, request: AdmissionRequest) -> Bookkeeper:
        """One for all requests, made with the first that needs it."""
        if not self._bookkeepers:
            hands, stores = self._hands(request), self.stores

            def newest(target: Target) -> Any:
                return stores.store(target.resource).get(target.namespace, target.name) if stores is not None else None

            self._bookkeepers.append(Bookkeeper(self.clock, newest=newest, read=hands.read, write=hands.carry_out))
        return self._bookkeepers[0]

    def _hands(self, request: AdmissionRequest) -> Hands:
        if self.hands is None:
            raise LookupError(f"{request}: this server can neither read nor write for handlers")
        return self.hands


def _waited_for(handler: Handler) -> list[Resource[Any]]:
    kinds = [watched(kind) for kind in handler.needs]
    return [kind.resource for kind in kinds if not kind.optional]


def _store(stores: Stores, handler: Handler, resource: Resource[Any]) -> Store[Any]:
    """Only stores that were waited for: an empty one that is not filled yet would look like an empty cluster. One that
    is optional says itself whether it is filled."""
    if all(watched(kind).resource != resource for kind in handler.needs):
        raise LookupError(f"{handler.path} asked for the store of {resource} but does not name it in its `needs`")
    return stores.store(resource)


def _step_error(handler: Handler, text: str, code: int = 0) -> Deny:
    """PW-4: an error inside a mutating step is 500, inside a validating one 400."""
    if not code:
        code = 500 if isinstance(handler, MutatingHandler) else 400
    return Deny(message=text, code=code, reason="InternalError" if code == 500 else "BadRequest")


def _encode(version: str, request: AdmissionRequest, answer: Answer) -> bytes:
    patch: list[dict[str, Any]] = []
    status: dict[str, Any] | None = None
    if isinstance(answer, Change):
        # Against the object as received, decoded anew: a handler that changed its own copy in place does no harm.
        patch = json_patch.diff(request.body(), answer.object)
    elif isinstance(answer, Deny):
        details: dict[str, Any] = {}
        if answer.causes:
            details["causes"] = [
                {"reason": item.reason, "message": item.message, "field": item.field} for item in answer.causes
            ]
        if answer.retry_after_seconds:
            details["retryAfterSeconds"] = answer.retry_after_seconds
        status = review.status(answer.code, answer.reason, answer.message, details=details)
    elif isinstance(answer, Invalid):
        status = review.invalid_status(request, answer.causes)
    return review.encode_admission(
        version,
        request.uid,
        allowed=isinstance(answer, Allow | Change),
        status=status,
        patch=patch,
        warnings=answer.warnings,
        audit_annotations=answer.audit_annotations,
    )
