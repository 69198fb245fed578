"""The whole manager in one process on virtual time, with the toy kind: work, hand-over, waiting, and an orderly end."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from kruise.api.native.events import EVENTS, LEASES
from kruise.api.native.pod import PODS, condition
from kruise.feature import Feature
from kruise.local.apicore.builtin import custom_kind
from kruise.local.apicore.core import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import VIRTUAL_EPOCH, RealClock, VirtualClock, run_virtual
from kruise.machinery.election import LeadershipLostError
from kruise.machinery.plan import Conclusion, Plan
from kruise.manager import old_lease
from kruise.manager.options import Options, Role
from kruise.manager.process import AdmissionParts, HistoryLostError, Manager, https_webhooks
from tests.machinery.applying import run
from tests.support.faults import Answer, Rule
from tests.support.inprocess import InProcess
from tests.support.ports import free_port
from tests.toy.api import TROUPES
from tests.toy.controller import FEATURE, SPEC
from tests.toy.decide import SEEN, Snapshot


class World:
    def __init__(self, tmp: str) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = ApiCore(native_registry([custom_kind(TROUPES)]), clock=self.clock, seed=1)
        self.transport = InProcessTransport(self.core)
        self.client = Client(self.transport, clock=self.clock)
        self.tmp = tmp

    def options(self, **changes: object) -> Options:
        settings = {
            "role": Role.CONTROLLERS,
            "metrics_address": "",
            "journal_address": "",
            "health_address": "",
            "protection_log_path": self.tmp,
        }
        return Options(**{**settings, **changes})  # type: ignore[arg-type]

    def manager(
        self,
        seed: int = 1,
        features: Sequence[Feature] = (FEATURE,),
        admission: Callable[[AdmissionParts], Any] = https_webhooks,
        **changes: object,
    ) -> Running:
        made: list[Any] = []

        def make(parts: AdmissionParts) -> Any:
            made.append(admission(parts))
            return made[-1]

        transport = InProcessTransport(self.core)
        options = self.options(**changes)
        manager = Manager(options, features, transport, clock=self.clock, random=Random(seed), admission=make)
        return Running(manager, made[0] if made else None)

    async def troupe(self, name: str, **spec: object) -> None:
        body = {"apiVersion": TROUPES.api_version, "kind": "Troupe", "metadata": {"name": name}, "spec": spec}
        await self.client.create(TROUPES, body, "default")

    async def images(self) -> dict[str, str]:
        pods = (await self.client.list(PODS, "default")).items
        return {pod.metadata.name: pod.spec.containers[0].image for pod in pods}


class Running:
    def __init__(self, manager: Manager, admission: Any = None) -> None:
        self.manager = manager
        self.admission = admission
        self._stop = asyncio.Event()
        self.task = asyncio.create_task(manager.run(self._stop))

    async def stop(self) -> None:
        self._stop.set()
        await self.task


@pytest.fixture
def virtually(tmp_path: object) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    def run(scenario: Callable[[World], Awaitable[None]]) -> None:
        async def main() -> None:
            await scenario(World(str(tmp_path)))

        run_virtual(main())

    return run


def test_a_kind_is_kept_as_it_should_be(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        running = world.manager()
        await world.troupe("band", replicas=3, image="a:1")
        await asyncio.sleep(10)
        assert await world.images() == {"band-0": "a:1", "band-1": "a:1", "band-2": "a:1"}
        pods = (await world.client.list(PODS, "default")).items
        assert all(condition(pod, SEEN) is not None for pod in pods)
        uids = {pod.metadata.uid for pod in pods}

        await world.client.patch(TROUPES, "band", {"spec": {"image": "a:2", "replicas": 2}}, "default")
        await asyncio.sleep(10)
        assert await world.images() == {"band-0": "a:2", "band-1": "a:2"}
        assert {pod.metadata.uid for pod in (await world.client.list(PODS, "default")).items} < uids
        troupe = await world.client.get(TROUPES, "band", "default")
        assert (troupe.status.observed_generation, troupe.status.pods, troupe.status.updated) == (2, 2, 2)
        events = (await world.client.list(EVENTS, "default")).items
        assert sorted(event.message for event in events) == [f"created pod band-{number}" for number in range(3)]
        await running.stop()

    virtually(scenario)


def test_nothing_is_written_while_nothing_changes(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        running = world.manager(elect=False)
        await world.troupe("band", replicas=2, image="a:1")
        await asyncio.sleep(10)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before
        await running.stop()

    virtually(scenario)


def test_a_second_replica_takes_over_when_the_first_ends(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        first = world.manager(1)
        await asyncio.sleep(1)
        second = world.manager(2)
        await asyncio.sleep(5)
        await first.stop()
        await world.troupe("band", replicas=1, image="a:1")
        await asyncio.sleep(6)
        assert await world.images() == {"band-0": "a:1"}
        lease = await world.client.get(LEASES, "kruise-manager", "kruise-system")
        assert lease.spec.lease_transitions == 1
        await second.stop()
        lease = await world.client.get(LEASES, "kruise-manager", "kruise-system")
        assert lease.spec.holder_identity == ""

    virtually(scenario)


@pytest.mark.parametrize("is_kept", [False, True])
def test_one_that_is_not_elected_takes_an_old_lease_away(
    virtually: Callable[..., None], caplog: pytest.LogCaptureFixture, is_kept: bool
) -> None:
    """By it, every command would say that no manager is at work. That of a manager which is at work stays."""

    async def scenario(world: World) -> None:
        first = world.manager(1)
        await asyncio.sleep(5)
        if not is_kept:
            first.task.cancel()  # killed: it gives nothing up
            await asyncio.wait({first.task})
            await asyncio.sleep(60)
        second = world.manager(2, elect=False)
        await asyncio.sleep(5)
        leases = (await world.client.list(LEASES, "kruise-system")).items
        assert [lease.metadata.name for lease in leases] == (["kruise-manager"] if is_kept else [])
        await second.stop()
        if is_kept:
            await first.stop()

    virtually(scenario)
    warnings = [one for one in caplog.messages if one.startswith("another manager holds the lease")]
    assert len(warnings) == is_kept


def test_an_old_lease_that_may_not_be_deleted_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """As by a manager with the roles of an installation that somebody has started without election."""

    async def scene(env: InProcess) -> None:
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "kruise-manager"}}
        await env.direct.create(LEASES, {**body, "spec": {"holderIdentity": ""}}, "default")
        await old_lease.forget(env.client, "default", "kruise-manager", clock=env.clock)
        [line] = [one for one in caplog.records if one.name == old_lease.__name__]
        assert (line.levelname, line.lease) == ("WARNING", "default/kruise-manager")  # type: ignore[attr-defined]
        assert "cannot delete resource" in line.error  # type: ignore[attr-defined]

    words = 'leases "kruise-manager" is forbidden: User "x" cannot delete resource "leases" in API group ""'
    run(scene, Rule(Answer(403, "Forbidden", words), verbs={Verb.DELETE}))


class Answering:
    """The admission side of a manager, as it is told to begin and to end."""

    def __init__(self, parts: AdmissionParts) -> None:
        self._clock = parts.clock
        self._delay = parts.options.shutdown_delay
        self.said: list[tuple[str, float]] = []

    async def start(self) -> None:
        self._say("start")

    async def run(self) -> None:
        await asyncio.get_running_loop().create_future()

    async def leave(self) -> None:
        self._say("leave")
        await asyncio.sleep(self._delay)

    async def stop(self) -> None:
        self._say("stop")

    async def ready(self) -> str:
        return ""

    def leadership_changed(self) -> None:
        """Nobody registers here."""

    def _say(self, what: str) -> None:
        self.said.append((what, round(self._clock.monotonic(), 3)))


def test_another_leads_at_once_while_webhooks_are_still_answered(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        first = world.manager(1, role=Role.ALL, admission=Answering, shutdown_delay=15.0)
        await asyncio.sleep(1)
        second = world.manager(2)
        await asyncio.sleep(4)
        began = world.clock.monotonic()
        ending = asyncio.create_task(first.stop())
        await world.troupe("band", replicas=1, image="a:1")
        await asyncio.sleep(5)
        assert await world.images() == {"band-0": "a:1"}
        assert await first.manager._ready() == "this process ends"
        [_, leave, *stopped] = first.admission.said
        assert (leave, stopped) == (("leave", began), [])
        await ending
        assert first.admission.said[2:] == [("stop", began + 15.0)]
        await second.stop()

    virtually(scenario)


def test_whoever_lost_the_lease_answers_webhooks_for_a_while(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        first = world.manager(1, role=Role.ALL, admission=Answering, shutdown_delay=15.0)
        await asyncio.sleep(1)
        await world.client.patch(LEASES, "kruise-manager", {"spec": {"holderIdentity": "another"}}, "kruise-system")
        with pytest.raises(LeadershipLostError):
            await first.task
        [_, leave, stop] = first.admission.said
        assert (leave[0], stop) == ("leave", ("stop", leave[1] + 15.0))

    virtually(scenario)


def test_whose_knowledge_is_of_no_use_answers_nobody_any_more(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        async def lose() -> None:
            raise HistoryLostError("the API server's history went back")

        other = world.manager(2, role=Role.ALL, admission=Answering, shutdown_delay=15.0)
        other.manager._watch_history = lose  # type: ignore[method-assign]
        with pytest.raises(HistoryLostError):
            await other.task
        assert [what for what, _ in other.admission.said] == ["start", "stop"]

    virtually(scenario)


def test_a_kind_that_is_not_installed_is_waited_for(virtually: Callable[..., None]) -> None:  # MGR-22, MGR-85
    async def scenario(world: World) -> None:
        world.core.registry = native_registry()
        running = world.manager(elect=False)
        await asyncio.sleep(300)
        assert not running.task.done()
        world.core.registry = native_registry([custom_kind(TROUPES)])
        await world.troupe("band", replicas=1, image="a:1")
        await asyncio.sleep(120)
        assert await world.images() == {"band-0": "a:1"}
        await running.stop()

    virtually(scenario)


def test_a_sync_period_looks_at_everything_again(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        passes = []

        def decide(snapshot: Snapshot) -> Plan:
            passes.append(snapshot.now)
            return Plan()

        spec = dataclasses.replace(SPEC, decide=decide, conclude=lambda *_: Conclusion())
        feature = Feature(name="idle", controllers=lambda _: [spec])
        running = world.manager(elect=False, sync_period=600.0, features=[feature])
        await world.troupe("band", replicas=1, image="a:1")
        await asyncio.sleep(3700)
        assert [round((now - VIRTUAL_EPOCH).total_seconds()) for now in passes] == [
            0,
            600,
            1200,
            1800,
            2400,
            3000,
            3600,
        ]
        await running.stop()

    virtually(scenario)


def test_work_goes_on_when_the_wall_clock_jumps(virtually: Callable[..., None]) -> None:
    async def scenario(world: World) -> None:
        running = world.manager()
        await world.troupe("band", replicas=1, image="a:1")
        await asyncio.sleep(5)
        for jump in (-86_400, 7 * 86_400):
            world.clock.shift(jump)
            await world.client.patch(TROUPES, "band", {"spec": {"image": f"a:{jump}"}}, "default")
            await asyncio.sleep(5)
            assert await world.images() == {"band-0": f"a:{jump}"}
        assert not running.task.done()
        await running.stop()

    virtually(scenario)


@pytest.mark.parametrize("has_memory_files", [True, False])
async def test_a_manager_that_may_write_no_file_works_all_the_same(
    has_memory_files: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a read-only file system. Its journal is served if a certificate can be loaded, and is missing otherwise."""

    def no_files_in_memory(name: str) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    if not has_memory_files:
        monkeypatch.setattr(os, "memfd_create", no_files_in_memory)
    port = free_port()
    clock = RealClock()
    core = ApiCore(native_registry([custom_kind(TROUPES)]), clock=clock, seed=1)
    chosen = Options(
        role=Role.CONTROLLERS,
        elect=False,
        metrics_address="",
        journal_address=f"127.0.0.1:{port}",
        health_address="",
        protection_log_path=str(tmp_path),
    )
    manager = Manager(chosen, (FEATURE,), InProcessTransport(core), clock=clock, random=Random(1))
    running = Running(manager)
    ready = asyncio.create_task(manager.serving.wait())
    await asyncio.wait({ready, running.task}, return_when=asyncio.FIRST_COMPLETED)
    assert ready.done()
    said = [record.getMessage() for record in caplog.records if "no journal is served" in record.getMessage()]
    assert len(said) == (0 if has_memory_files else 1)
    if has_memory_files:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
    else:
        assert "TMPDIR" in said[0]
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    await running.stop()


async def test_a_manager_without_webhooks_serves_its_journal_over_https_and_to_no_stranger(tmp_path: object) -> None:
    """Its certificate is its own. An API server that reviews no tokens lets nobody in."""
    port, plain = free_port(), free_port()
    clock = RealClock()
    core = ApiCore(native_registry([custom_kind(TROUPES)]), clock=clock, seed=1)
    chosen = Options(
        role=Role.CONTROLLERS,
        elect=False,
        metrics_address=f"127.0.0.1:{plain}",
        journal_address=f"127.0.0.1:{port}",
        health_address="",
        protection_log_path=str(tmp_path),
    )
    manager = Manager(chosen, (FEATURE,), InProcessTransport(core), clock=clock, random=Random(1))
    running = Running(manager)
    await manager.serving.wait()
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    async with aiohttp.ClientSession() as session:

        async def code(url: str, **headers: str) -> int:
            async with session.get(url, ssl=unchecked, headers=headers) as answer:
                return answer.status

        assert await code(f"https://127.0.0.1:{port}/journal") == 401
        assert await code(f"https://127.0.0.1:{port}/journal", Authorization="Bearer x") == 503
        assert await code(f"http://127.0.0.1:{plain}/journal") == 404
        assert await code(f"http://127.0.0.1:{plain}/metrics") == 200
    await running.stop()
