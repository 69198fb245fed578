"""Leader election on virtual time: one leader at a time, a fence that a frozen leader cannot pass."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.events import LEASES
from kruise.local.apicore.core import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import ManualClock, VirtualClock, run_virtual
from kruise.machinery.election import Fence, FencedTransport, LeaderElector, LeadershipLostError

LEASE_SECONDS = 15.0


class Gate:
    """A transport that can be cut off from its server."""

    def __init__(self, inner: InProcessTransport) -> None:
        self.inner = inner
        self.open = True

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0.01)
        if not self.open:
            raise TransportError("cut off", sent=False)
        return await self.inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


@dataclasses.dataclass
class Replica:
    elector: LeaderElector
    gate: Gate
    fenced: Client
    led: list[tuple[float, float]] = dataclasses.field(default_factory=list)


class World:
    """A server and replicas that write a mark every tenth of a second while they lead."""

    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = ApiCore(native_registry(), clock=self.clock)
        self.writes: list[tuple[float, str]] = []
        self.numbers = itertools.count()

    def replica(self, name: str) -> Replica:
        gate = Gate(InProcessTransport(self.core))
        elector = LeaderElector(
            Client(gate, clock=self.clock),
            identity=name,
            namespace="kruise-system",
            name="kruise-manager",
            clock=self.clock,
            random=Random(name),
        )
        return Replica(elector, gate, Client(FencedTransport(gate, elector.fence), clock=self.clock))

    async def run(self, replica: Replica, name: str) -> str:
        async def lead() -> None:
            began = self.clock.monotonic()
            try:
                for number in self.numbers:
                    body = {"metadata": {"name": f"{name}-{number}", "namespace": "default"}}
                    try:
                        await replica.fenced.create(CONFIG_MAPS, body, "default")
                        self.writes.append((self.clock.monotonic(), name))
                    except TransportError:
                        pass
                    await asyncio.sleep(0.1)
            finally:
                replica.led.append((began, self.clock.monotonic()))

        try:
            await replica.elector.run(lead)
        except LeadershipLostError:
            return "lost"
        return "ended"


def virtually(scenario: Callable[[World], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await scenario(World())

    return run_virtual(main())


def test_the_first_takes_the_lease_and_the_second_waits() -> None:
    async def scenario(world: World) -> None:
        one, two = world.replica("one"), world.replica("two")
        tasks = [asyncio.create_task(world.run(one, "one"))]
        await asyncio.sleep(1)
        tasks.append(asyncio.create_task(world.run(two, "two")))
        await asyncio.sleep(60)
        assert {name for _, name in world.writes} == {"one"}
        assert two.elector.holder == "one"
        lease = await Client(one.gate).get(LEASES, "kruise-manager", "kruise-system")
        assert lease.spec.holder_identity == "one"
        assert lease.spec.lease_duration_seconds == 15
        assert lease.spec.renew_time is not None
        assert world.clock.now() - lease.spec.renew_time < timedelta(seconds=3)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtually(scenario)


def test_a_clean_end_hands_over_at_once() -> None:
    async def scenario(world: World) -> None:
        one, two = world.replica("one"), world.replica("two")
        first = asyncio.create_task(world.run(one, "one"))
        await asyncio.sleep(1)
        second = asyncio.create_task(world.run(two, "two"))
        await asyncio.sleep(5)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        ended = world.clock.monotonic()
        await asyncio.sleep(6)
        taken_over = min(moment for moment, name in world.writes if name == "two")
        assert taken_over - ended < 5  # a retry period with its jitter, not the lease duration
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    virtually(scenario)


def test_a_leader_that_is_cut_off_stops_before_another_begins() -> None:
    async def scenario(world: World) -> None:
        one, two = world.replica("one"), world.replica("two")
        first = asyncio.create_task(world.run(one, "one"))
        await asyncio.sleep(1)
        second = asyncio.create_task(world.run(two, "two"))
        await asyncio.sleep(5)
        one.gate.open = False
        assert await first == "lost"
        stopped = one.led[0][1]
        await asyncio.sleep(30)
        taken_over = min(moment for moment, name in world.writes if name == "two")
        assert stopped < taken_over <= 6 + LEASE_SECONDS + 2 * 2.2 + 1
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    virtually(scenario)


def test_the_process_that_lost_the_lease_learns_it_from_the_error() -> None:
    async def scenario(world: World) -> str:
        one = world.replica("one")
        task = asyncio.create_task(world.run(one, "one"))
        await asyncio.sleep(1)
        body = {"spec": {"holderIdentity": "thief", "renewTime": "2030-01-01T00:00:09.000000Z"}}
        await Client(one.gate).patch(LEASES, "kruise-manager", body, "kruise-system")
        outcome = await task
        lease = await Client(one.gate).get(LEASES, "kruise-manager", "kruise-system")
        assert lease.spec.holder_identity == "thief"
        return outcome

    assert virtually(scenario) == "lost"


def test_what_lead_raises_comes_out() -> None:
    async def scenario(world: World) -> None:
        async def broken() -> None:
            raise RuntimeError("out of order")

        with pytest.raises(RuntimeError, match="out of order"):
            await world.replica("one").elector.run(broken)

    virtually(scenario)


def test_durations_that_cannot_work_are_refused() -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="lease duration > renew deadline"):
        LeaderElector(
            None,  # type: ignore[arg-type]
            identity="x",
            namespace="n",
            name="l",
            clock=clock,
            random=Random(0),
            lease_duration=10,
            renew_deadline=10,
        )


class Recording:
    def __init__(self) -> None:
        self.sent: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(request)
        return Response(200, b"{}")

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise AssertionError("not used")

    async def close(self) -> None: ...


def write(timeout: float | None = None) -> Request:
    return Request(Verb.CREATE, CONFIG_MAPS, "default", body=b"{}", timeout=timeout)


def fence_of(clock: ManualClock) -> Fence:
    return Fence(clock, lease_duration=15, renew_deadline=10)


async def test_a_closed_fence_lets_no_write_through_but_every_read() -> None:
    clock = ManualClock()
    inner = Recording()
    transport = FencedTransport(inner, fence_of(clock))
    with pytest.raises(
        LeadershipLostError, match="does not hold the lease: create /api/v1/namespaces/default/configmaps"
    ):
        await transport.send(write())
    await transport.send(Request(Verb.GET, CONFIG_MAPS, "default", "a"))
    assert [request.verb for request in inner.sent] == [Verb.GET]


async def test_a_process_that_wakes_up_late_does_not_write() -> None:
    """The clock goes on while a process is frozen; the check is made at the moment of sending."""
    clock = ManualClock()
    fence = fence_of(clock)
    fence.renew(clock.monotonic())
    clock.advance(9.9)
    inner = Recording()
    await FencedTransport(inner, fence).send(write())
    clock.advance(60)
    with pytest.raises(LeadershipLostError):
        await FencedTransport(inner, fence).send(write())
    assert len(inner.sent) == 1


@given(
    sent_after=st.floats(0, 9.99),
    asked=st.none() | st.floats(0.1, 100),
)
@settings(deadline=None)
def test_a_write_is_over_before_the_lease_can_pass_on(sent_after: float, asked: float | None) -> None:
    clock = ManualClock()
    fence = fence_of(clock)
    fence.renew(0.0)
    clock.advance(sent_after)
    inner = Recording()
    asyncio.run(FencedTransport(inner, fence).send(write(asked)))
    request = inner.sent[0]
    assert request.timeout is not None
    assert clock.monotonic() + request.timeout < LEASE_SECONDS
    assert asked is None or request.timeout <= asked
    server_side = float(request.parameter("timeout").removesuffix("s"))
    assert clock.monotonic() + server_side < LEASE_SECONDS


@given(
    st.lists(st.tuples(st.sampled_from(["cut one", "cut two", "mend one", "mend two"]), st.floats(0.1, 20)), max_size=8)
)
@settings(max_examples=40, deadline=None)
def test_two_never_write_at_the_same_time(faults: list[tuple[str, float]]) -> None:
    """Whatever connections break and mend, the writes of two replicas never interleave."""

    async def scenario(world: World) -> None:
        replicas = {name: world.replica(name) for name in ("one", "two")}

        async def forever(name: str) -> None:
            while True:
                await world.run(replicas[name], name)

        tasks = [asyncio.create_task(forever(name)) for name in replicas]
        for fault, pause in faults:
            action, name = fault.split()
            replicas[name].gate.open = action == "mend"
            await asyncio.sleep(pause)
        for replica in replicas.values():
            replica.gate.open = True
        await asyncio.sleep(40)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ends)
        turns = sorted((begin, end) for replica in replicas.values() for begin, end in replica.led)
        assert turns
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(turns))
        assert max(moment for moment, _ in world.writes) > world.clock.monotonic() - 30

    virtually(scenario)


@pytest.mark.parametrize("jump", [-86_400, 86_400])
def test_a_wall_clock_that_jumps_changes_nothing(jump: float) -> None:
    """Leases are counted on monotonic time, on both sides: neither is the leader lost nor the lease taken early."""

    async def scenario(world: World) -> None:
        one, two = world.replica("one"), world.replica("two")
        tasks = [asyncio.create_task(world.run(one, "one"))]
        await asyncio.sleep(1)
        tasks.append(asyncio.create_task(world.run(two, "two")))
        await asyncio.sleep(5)
        world.clock.shift(jump)
        await asyncio.sleep(60)
        assert {name for _, name in world.writes} == {"one"}
        assert max(moment for moment, _ in world.writes) > world.clock.monotonic() - 1
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtually(scenario)
