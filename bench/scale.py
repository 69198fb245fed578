"""A fleet of all kinds on a real API server: what the manager takes, how soon it is back, and whom its work delays.

A tenth of it is a team: 100 objects of all kinds, 1,000 pods, 50 simulated nodes. Twenty rollouts go on at a time, one
after the other in each lane, while reviews of pods come at a steady rate as the API server would send them.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import random
import statistics
import time
from collections.abc import Iterator

from bench import processes
from bench.fleet import GATES, NODES_PER_TEAM, OBJECTS_PER_TEAM, PODS_PER_TEAM, Member, members, team_name
from bench.living import WORKLOADS, Fleet, Meter, note, within
from bench.report import Report, Row
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from tests.support.kruisecluster import KruiseCluster
from tests.support.realcluster import ControlPlane

TEAMS = 10
ROLLOUTS = 20
_REVIEWS_A_SECOND = 100
_IDLE_SECONDS = 30.0


@dataclasses.dataclass(slots=True)
class Found:
    seconds: float = 0.0
    memory: dict[str, float] = dataclasses.field(default_factory=dict)
    peak: float = 0.0
    idle: float = 0.0
    latencies: list[float] = dataclasses.field(default_factory=list)
    latencies_first: list[float] = dataclasses.field(default_factory=list)
    """While manager and asker go before whoever else wants their cores."""
    waited: float = 0.0
    busy: float = 0.0
    rollouts: int = 0
    reviews: int = 0
    in_time: float = 0.0
    first: dict[str, float] = dataclasses.field(default_factory=dict)
    done: dict[str, float] = dataclasses.field(default_factory=dict)
    unsettled: int = 0


def measure(scale: float) -> Report:
    teams = [team_name(number) for number in range(max(1, round(TEAMS * scale)))]
    seconds = max(20.0, 60.0 * scale)
    with (
        ControlPlane() as plane,
        KruiseCluster(plane, nodes=NODES_PER_TEAM * len(teams), flags=(f"--feature-gates={GATES}",)) as cluster,
    ):
        found = processes.run(_all(cluster, teams, seconds))
    return _report(found, len(teams))


async def _all(cluster: KruiseCluster, teams: list[str], seconds: float) -> Found:
    found = Found()
    async with Client(HttpTransport(load(cluster.kubeconfig))) as client:
        fleet = Fleet(cluster, client)
        found.memory["without workloads"] = fleet.memory()[0]
        everything = await _make(fleet, teams, found)
        await asyncio.sleep(15)
        meter = Meter(cluster.manager_pid)
        await asyncio.sleep(_IDLE_SECONDS)
        found.idle = meter.share()
        found.memory["idle"] = fleet.memory()[0]
        note(f"idle: {found.idle * 1000:.1f} mCPU, {found.memory['idle']:.0f} MB")
        await _rolling(fleet, everything, found, seconds)
        await fleet.until_settled(everything)
        found.memory["after the rollouts"], found.peak = fleet.memory()
        await asyncio.to_thread(cluster.stop_manager)
        await _restart(fleet, everything, found, "after an orderly end")
        await asyncio.to_thread(cluster.kill_manager)
        await _restart(fleet, everything, found, "after a crash")
        found.memory["after a restart"], peak = fleet.memory()
        found.peak = max(found.peak, peak)
        found.unsettled = len(await fleet.unsettled(everything))
    return found


async def _make(fleet: Fleet, teams: list[str], found: Found) -> list[Member]:
    began = time.perf_counter()
    await fleet.label_nodes(teams)
    everything: list[Member] = []
    for team in teams:
        await fleet.namespace(team)
        ours = list(members(team))
        await fleet.make(ours)
        everything += ours
    await fleet.until_settled(everything)
    found.seconds = time.perf_counter() - began
    found.memory["when all pods are ready"] = fleet.memory()[0]
    note(f"{len(everything)} objects made and settled: {found.seconds:.0f} s")
    return everything


async def _rolling(fleet: Fleet, everything: list[Member], found: Found, seconds: float) -> None:
    """Lanes of rollouts, each going on with its next workload, while somebody asks about pods."""
    rolled = [member for member in everything if member.resource in WORKLOADS]
    rolled = [member for member in rolled if member.resource not in (BROADCAST_JOBS, DEPLOYMENTS)]
    random.Random(0).shuffle(rolled)
    work = iter(rolled)
    ends = time.monotonic() + seconds
    before = within(fleet.samples)
    pid = fleet.cluster.manager_pid
    meter, waited, began = Meter(pid), processes.waiting_seconds(pid), time.perf_counter()

    async def lane() -> None:
        for member in work:
            await fleet.roll(member, "nginx:2")
            found.rollouts += 1
            if time.monotonic() > ends:
                return

    async with asyncio.TaskGroup() as tasks:
        for _ in range(ROLLOUTS):
            tasks.create_task(lane())
        found.latencies = await _asking(fleet, seconds / 2)
        found.busy = meter.share()
        found.waited = (processes.waiting_seconds(pid) - waited) / (time.perf_counter() - began)
        found.latencies_first = await _asking(fleet, seconds / 2, first=True)
    after = within(fleet.samples)
    found.reviews = after["+Inf"] - before["+Inf"] - len(found.latencies) - len(found.latencies_first)
    found.in_time = (after["0.01"] - before["0.01"]) / (after["+Inf"] - before["+Inf"])
    note(f"{found.rollouts} rollouts, {found.reviews} reviews asked by the API server")


async def _asking(fleet: Fleet, seconds: float, *, first: bool = False) -> list[float]:
    """Seconds of each review. `first`: manager and asker go before all others, as if they had cores of their own."""
    address, ca = await fleet.admission()
    with processes.child("asking", address.hostname, address.port, ca, _REVIEWS_A_SECOND, seconds) as (asker, _):
        assert asker.stdout is not None
        with _going_first(asker.pid, fleet.cluster.manager_pid) if first else contextlib.nullcontext():
            found: list[float] = json.loads(await asyncio.to_thread(asker.stdout.readline))
    return found


@contextlib.contextmanager
def _going_first(*chosen: int) -> Iterator[None]:
    """Only root may do that. A nice value would do nothing: it counts among processes of one session."""
    try:
        for pid in chosen:
            os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        note("not root: manager and asker do not go first")
    try:
        yield
    finally:
        for pid in chosen:
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


async def _restart(fleet: Fleet, everything: list[Member], found: Found, how: str) -> None:
    """From the start of the process to its first pass, and until nothing waits for one any more."""
    began = time.perf_counter()
    await asyncio.to_thread(fleet.cluster.start_manager, wait=False)
    while True:
        await asyncio.sleep(0.1)
        try:
            samples = await asyncio.to_thread(fleet.samples)
        except OSError:
            continue  # it does not listen yet
        passes = sum(value for (name, _), value in samples.items() if name == "controller_runtime_reconcile_total")
        if passes:
            found.first.setdefault(how, time.perf_counter() - began)
        waiting = sum(value for (name, _), value in samples.items() if name == "workqueue_depth")
        if passes >= len(everything) and not waiting:
            break
    found.done[how] = time.perf_counter() - began
    note(f"restarted {how}: {found.first[how]:.1f} s to the first pass, {found.done[how]:.1f} s to the last")


def _report(found: Found, teams: int) -> Report:
    hundredths = statistics.quantiles(found.latencies, n=100)
    first = statistics.quantiles(found.latencies_first, n=100)
    rows = [
        Row(what="made and settled", value=found.seconds, unit="s"),
        Row(what="memory of the manager at its highest", value=found.peak, unit="MB", below=250),
        *(Row(what=f"  {when}", value=value, unit="MB") for when, value in found.memory.items()),
        Row(what="idle", value=found.idle * 1000, unit="mCPU", below=20),
        Row(what="admission, 99 of 100", value=hundredths[98] * 1e3, unit="ms", below=10),
        Row(what="  half of all", value=hundredths[49] * 1e3, unit="ms"),
        Row(what="  the longest", value=max(found.latencies) * 1e3, unit="ms"),
        Row(what="  others had the manager's core while it could run", value=found.waited * 100, unit="% of the time"),
        Row(what="  where manager and asker go first, 99 of 100", value=first[98] * 1e3, unit="ms"),
        Row(what="    half of all", value=first[49] * 1e3, unit="ms"),
        Row(what="  answered within 10 ms by the manager's own clock", value=found.in_time * 100, unit="%"),
        Row(what="  the manager's share of a core", value=found.busy * 100, unit="%"),
        Row(what="  rollouts ended meanwhile", value=found.rollouts),
        Row(what="  reviews that the API server asked for meanwhile", value=found.reviews),
    ]
    for how, began in found.first.items():
        limit = 15 if "orderly" in how else None
        rows += [
            Row(what=f"restart {how}: first pass", value=began, unit="s", below=limit),
            Row(what="  all looked at", value=found.done[how], unit="s"),
        ]
    rows.append(Row(what="workloads that are not settled in the end", value=found.unsettled, below=1))
    setting = (
        f"{teams * OBJECTS_PER_TEAM:,} objects of all kinds, {teams * PODS_PER_TEAM:,} pods, "
        f"{teams * NODES_PER_TEAM} simulated nodes; {ROLLOUTS} rollouts at a time, {_REVIEWS_A_SECOND} reviews/s beside"
    )
    return Report(name="scale", setting=setting, rows=tuple(rows))
