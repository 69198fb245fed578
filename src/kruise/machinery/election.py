"""Leader election on a Lease, and the fence that keeps a former leader from writing.

A Lease alone does not stop a process that was frozen and goes on: it believes for a moment that it still leads. So
every write of a leader passes a `FencedTransport`, which asks the `Fence` at the moment of sending. The fence knows
two moments, both counted on a monotonic clock from *before* the last successful renewal was sent:

- `renewed + renew_deadline`: from here on nothing is sent any more;
- `renewed + lease_duration`: from here on another replica may take over. Requests in flight are given up before, and
  the server is told to give them up, too (`timeout` parameter), so that none is carried out after that moment.

Others count the lease duration from the moment they saw the record change, which is after our renewal was sent, so
their count ends later than ours. Wall clocks play no part.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from random import Random
from typing import Any

from kruise.api.native.events import LEASES, Lease
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ClientError, ConflictError, NotFoundError
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import Clock
from kruise.machinery.times import format_micro_time

log = logging.getLogger(__name__)

NEVER = float("-inf")
_JITTER = 1.2
_CLOCK_MARGIN = 0.5
"""Seconds that requests end before the lease could pass on: covers clocks that run at slightly different speeds."""


class LeadershipLostError(ClientError):
    """This process does not lead (any more); nothing was sent."""


class Fence:
    """Until when this process may write."""

    def __init__(self, clock: Clock, *, lease_duration: float, renew_deadline: float) -> None:
        self._clock = clock
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._renewed = NEVER

    def renew(self, sent_at: float) -> None:
        """The lease was renewed by a request that was sent at `sent_at`."""
        self._renewed = max(self._renewed, sent_at)

    def close(self) -> None:
        """Nothing may be sent from now on, whatever the lease says."""
        self._renewed = NEVER

    @property
    def may_send_for(self) -> float:
        """Seconds in which new writes may still be sent; zero or less when the fence is closed."""
        return self._renewed + self._renew_deadline - self._clock.monotonic()

    @property
    def answers_within(self) -> float:
        """Seconds in which a write that is sent now must be over."""
        return self._renewed + self._lease_duration - _CLOCK_MARGIN - self._clock.monotonic()


class FencedTransport:
    """Lets writes through only while this process leads. Reads always pass."""

    def __init__(self, inner: Transport, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    async def send(self, request: Request) -> Response:
        if request.verb.writes:
            if self._fence.may_send_for <= 0:
                raise LeadershipLostError(f"not sent, because this process does not hold the lease: {request}")
            limit = self._fence.answers_within
            timeout = limit if request.timeout is None else min(request.timeout, limit)
            query = (*request.query, ("timeout", f"{max(1, int(timeout))}s"))
            request = dataclasses.replace(request, timeout=timeout, query=query)
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


@dataclasses.dataclass(frozen=True, slots=True)
class _Observed:
    """A lease record as last seen to change, and when that was on our own clock."""

    record: tuple[str, datetime | None, datetime | None, int]
    at: float


class LeaderElector:
    """Takes the lease, keeps it, and runs something for as long as it is held.

    The client must not pass the fence: the lease itself has to be written by those who do not lead yet.
    """

    def __init__(
        self,
        client: Client,
        *,
        identity: str,
        namespace: str,
        name: str,
        clock: Clock,
        random: Random,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        on_change: Callable[[bool], None] | None = None,
    ) -> None:
        if not lease_duration > renew_deadline > retry_period * _JITTER > 0:
            raise ValueError(
                f"leader election needs lease duration > renew deadline > {_JITTER} x retry period, "
                f"got {lease_duration}, {renew_deadline}, {retry_period}"
            )
        self._client = client
        self._identity = identity
        self._namespace = namespace
        self._name = name
        self._clock = clock
        self._random = random
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._on_change = on_change or (lambda leading: None)
        self._observed: _Observed | None = None
        self.fence = Fence(clock, lease_duration=lease_duration, renew_deadline=renew_deadline)
        self.holder = ""
        """Who held the lease when it was last seen."""

    @property
    def is_leading(self) -> bool:
        return self.holder == self._identity

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, then run `lead` while it is held.

        Returns when `lead` returns; raises `LeadershipLostError` when the lease could not be kept: the caller is
        expected to end the process. The lease is given back when `lead` has come to its end, not when it was lost.
        """
        while not await self._try_to_hold():  # noqa: ASYNC110 - the lease is in another process, nobody can notify us
            await asyncio.sleep(self._retry_period * (1 + _JITTER * self._random.random()))
        log.info("became leader", extra={"lease": f"{self._namespace}/{self._name}", "identity": self._identity})
        self._on_change(True)
        work = asyncio.ensure_future(lead())
        renewals = asyncio.create_task(self._keep(), name="lease-renewal")
        try:
            await asyncio.wait({work, renewals}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost = renewals.done()
            if lost:
                self.fence.close()
            await _cancelled(work)
            await _cancelled(renewals)
            self.fence.close()
            self._on_change(False)
            if not lost:
                await asyncio.shield(self._give_back())
        if lost:
            raise LeadershipLostError(
                f"the lease {self._namespace}/{self._name} could not be renewed within {self._renew_deadline} s"
            )
        await work

    async def _keep(self) -> None:
        while self.fence.may_send_for > 0:
            await asyncio.sleep(min(self._retry_period, max(0.0, self.fence.may_send_for)))
            if not await self._try_to_hold() and self.holder not in ("", self._identity):
                log.warning("lease was taken by another", extra={"holder": self.holder})
                return

    async def _try_to_hold(self) -> bool:
        """One attempt to take or renew the lease; whatever goes wrong only means that it did not work this time."""
        sent_at = self._clock.monotonic()
        try:
            held = await self._hold()
        except (ConflictError, AlreadyExistsError):
            return False  # someone else was quicker
        except ClientError as error:
            log.warning("lease could not be renewed", extra={"error": str(error), "identity": self._identity})
            return False
        if held:
            self.fence.renew(sent_at)
        return held

    async def _hold(self) -> bool:
        timeout = max(self._retry_period, self._renew_deadline / 2)
        now = format_micro_time(self._clock.now())
        mine: dict[str, Any] = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._lease_duration)),
            "renewTime": now,
        }
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace, timeout=timeout)
        except NotFoundError:
            body = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": {"name": self._name, "namespace": self._namespace},
                "spec": {**mine, "acquireTime": now, "leaseTransitions": 0},
            }
            await self._client.create(LEASES, body, self._namespace, timeout=timeout)
            self.holder = self._identity
            return True
        self._observe(lease)
        if lease.spec.holder_identity != self._identity:
            if lease.spec.holder_identity and not self._expired(lease):
                return False
            mine |= {"acquireTime": now, "leaseTransitions": lease.spec.lease_transitions + 1}
        elif self.fence.may_send_for <= 0:
            return False  # too late to renew: whoever was frozen here must not touch the lease with old knowledge
        guard = {"uid": lease.metadata.uid, "resourceVersion": lease.metadata.resource_version}
        await self._client.patch(
            LEASES, self._name, {"metadata": guard, "spec": mine}, self._namespace, timeout=timeout
        )
        self.holder = self._identity
        return True

    def _observe(self, lease: Lease) -> None:
        spec = lease.spec
        self.holder = spec.holder_identity
        record = (spec.holder_identity, spec.acquire_time, spec.renew_time, spec.lease_transitions)
        if self._observed is None or self._observed.record != record:
            self._observed = _Observed(record, self._clock.monotonic())

    def _expired(self, lease: Lease) -> bool:
        """The holder has not renewed for the whole duration, by our own clock since we saw the last renewal."""
        assert self._observed is not None
        duration = max(self._lease_duration, float(lease.spec.lease_duration_seconds))
        return self._clock.monotonic() >= self._observed.at + duration

    async def _give_back(self) -> None:
        """Let another take over at once. Failing here only costs the others the lease duration."""
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace, timeout=self._retry_period)
            if lease.spec.holder_identity == self._identity:
                guard = {"uid": lease.metadata.uid, "resourceVersion": lease.metadata.resource_version}
                spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
                body = {"metadata": guard, "spec": spec}
                await self._client.patch(LEASES, self._name, body, self._namespace, timeout=self._retry_period)
        except ClientError as error:
            log.info("lease was not given back", extra={"error": str(error)})


async def _cancelled(task: asyncio.Future[None]) -> None:
    """Cancel a task and wait for its end; its own failure is reported where it is awaited."""
    task.cancel()
    await asyncio.wait({task})
