"""Workloads of all kinds that come, change and go, under new names each time: does the manager's memory grow?

A round makes a few teams in namespaces of their own, rolls and scales their workloads, deletes all of it, and waits
until it is gone. Then there is as much in the cluster as before, and the memory of the manager is taken. The short form
tells the growth by round and what it would come to; the long one (`--hours 2`) sees it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence

from bench import fleet as manifests
from bench import processes
from bench.fleet import GATES, Member
from bench.living import WORKLOADS, Fleet, note
from bench.report import Report, Row
from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.probes import POD_PROBE_MARKERS
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.manager.refusals import COUNTERS
from tests.support.kruisecluster import KruiseCluster
from tests.support.realcluster import ControlPlane

SHORT_SECONDS = 100.0
LONG_HOURS = 2.0
_TEAMS_AT_A_TIME = 3
_ENOUGH_SECONDS = 0.9 * LONG_HOURS * 3600
"""In the third that is left out, 36 minutes, room is filled: what was said in events stays for twenty minutes, and so
many passes as the journal has room for. Counters of refusals stay for a day, one for each team whose budget holds up
the end of its namespace: they are left out of the number of metrics, and the thousand that may be take 0.3 MB."""
HOME = "churn"
"""The team whose nodes all of them use."""
_NODES, NODES_USED = 12, 4
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, PartialObject)


@dataclasses.dataclass(slots=True)
class Found:
    begun: float = 0.0
    memory: list[float] = dataclasses.field(default_factory=list)
    """After each round, in MB."""
    series: list[int] = dataclasses.field(default_factory=list)
    peak: float = 0.0
    seconds: float = 0.0
    passes: float = 0.0
    errors: float = 0.0


def visitors(team: str) -> Iterator[Member]:
    """One of each kind."""
    yield Member(SIDECAR_SETS, "", manifests.sidecar_set(f"mesh-{team}", team))
    yield Member(RESOURCE_DISTRIBUTIONS, "", manifests.distribution(f"pull-{team}", team))
    yield Member(WORKLOAD_SPREADS, team, manifests.spread("web-1"))
    yield Member(POD_UNAVAILABLE_BUDGETS, team, manifests.budget("shop"))
    yield Member(ADVANCED_CRON_JOBS, team, manifests.cron("yearly"))
    yield Member(IMAGE_PULL_JOBS, team, manifests.pull_job("ahead", HOME))
    yield Member(POD_PROBE_MARKERS, team, manifests.probe_marker("probe", "web-0"))
    yield Member(PERSISTENT_POD_STATES, team, manifests.persistent_state("db"))
    yield Member(EPHEMERAL_JOBS, team, manifests.look("look", "web-0"))
    yield Member(CLONE_SETS, team, manifests.clone_set("web-0", 5, labels={"mesh": "yes"}), 5)
    yield Member(CLONE_SETS, team, manifests.clone_set("web-1", 5), 5)
    yield Member(STATEFUL_SETS, team, manifests.stateful_set("db", 3), 3)
    yield Member(DEPLOYMENTS, team, manifests.deployment("shop", 3), 3)
    yield Member(DAEMON_SETS, team, manifests.daemon_set("agent", HOME), NODES_USED)
    yield Member(UNITED_DEPLOYMENTS, team, manifests.united_deployment("wide", 3), 3)
    yield Member(BROADCAST_JOBS, team, manifests.broadcast_job("check", HOME), NODES_USED)


def measure(scale: float, hours: float = 0.0) -> Report:
    seconds = hours * 3600 if hours else SHORT_SECONDS * scale
    with (
        ControlPlane() as plane,
        KruiseCluster(plane, nodes=_NODES, flags=(f"--feature-gates={GATES}",)) as cluster,
    ):
        found = processes.run(_all(cluster, seconds))
    return _report(found, is_long=hours > 0)


async def _all(cluster: KruiseCluster, seconds: float) -> Found:
    found = Found()
    async with Client(HttpTransport(load(cluster.kubeconfig))) as client:
        fleet = Fleet(cluster, client)
        await fleet.label_nodes([HOME], NODES_USED)
        found.begun = fleet.memory()[0]
        began = time.monotonic()
        for number in itertools.count():
            async with asyncio.TaskGroup() as tasks:
                for lane in range(_TEAMS_AT_A_TIME):
                    tasks.create_task(_visit(fleet, f"team-{number}-{lane}"))
            await asyncio.sleep(1)
            memory, found.peak = fleet.memory()
            found.memory.append(memory)
            found.series.append(sum(name not in COUNTERS for name, _ in fleet.samples()))
            found.seconds = time.monotonic() - began
            note(f"round {number + 1}: {found.seconds:.0f} s, {memory:.1f} MB, {found.series[-1]} series")
            if found.seconds >= seconds:
                break
        found.passes = fleet.total("controller_runtime_reconcile_total")
        found.errors = fleet.total("controller_runtime_reconcile_panics_total")
    return found


async def _visit(fleet: Fleet, team: str) -> None:
    client, ours = fleet.client, list(visitors(team))
    await fleet.namespace(team)
    await fleet.make(ours)
    await fleet.until_settled(ours, team)
    rolled = [member for member in ours if member.resource in WORKLOADS and member.resource is not BROADCAST_JOBS]
    async with asyncio.TaskGroup() as tasks:
        for member in rolled:
            tasks.create_task(fleet.roll(member, "nginx:2"))
    await client.patch(CLONE_SETS, "web-0", {"spec": {"replicas": 8}}, team)
    await client.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 2}}, team)
    await fleet.until_settled([member for member in ours if member.pods], team)
    for member in ours:
        if not member.namespace:
            await client.delete(member.resource, member.name)
    await client.delete(_NAMESPACES, team)
    while True:
        try:
            await client.get(_NAMESPACES, team)
        except NotFoundError:
            return
        await asyncio.sleep(0.5)


def growth(values: Sequence[float]) -> float:
    """By which a value grows from one to the next: the median of the slopes between any two, so that a collection of
    garbage here or there says little."""
    pairs = itertools.combinations(enumerate(values), 2)
    slopes = [(after - before) / (later - earlier) for (earlier, before), (later, after) in pairs]
    return statistics.median(slopes) if slopes else float("nan")


def warm(values: Sequence[float]) -> Sequence[float]:
    """Without the first third: code that runs for the first time, and room that is kept from then on."""
    return values[len(values) // 3 :]


def _report(found: Found, *, is_long: bool) -> Report:
    rounds, is_enough = len(found.memory), found.seconds >= _ENOUGH_SECONDS
    per_round = growth(warm(found.memory))
    in_long = LONG_HOURS * 3600 / (found.seconds / rounds)
    rows = (
        Row(what="rounds", value=rounds),
        Row(what="  seconds of each", value=found.seconds / rounds, unit="s"),
        Row(what="memory of the manager before", value=found.begun, unit="MB"),
        Row(what="  after the first round", value=found.memory[0], unit="MB"),
        Row(what="  after a third of the rounds", value=warm(found.memory)[0], unit="MB"),
        Row(what="  in the end", value=found.memory[-1], unit="MB"),
        Row(what="  at its highest", value=found.peak, unit="MB"),
        Row(
            what="growth by round, the first third left out",
            value=per_round * 1000,
            unit="KB",
            below=100 if is_enough else None,
        ),
        Row(
            what="  from then to the end" if is_long else f"  what it would come to in {LONG_HOURS:g} hours",
            value=per_round * (rounds - rounds // 3 if is_long else in_long),
            unit="MB",
            below=5 if is_enough else None,
        ),
        Row(
            what="growth of the metrics by round, refusals left out",
            value=growth(warm(found.series)),
            unit="series",
            below=0.5 if is_enough else None,
        ),
        Row(what="passes", value=found.passes),
        Row(what="passes that ended in a fault", value=found.errors, below=1),
    )
    setting = (
        f"{_TEAMS_AT_A_TIME} teams at a time with one of each kind and 30 pods, made, rolled, scaled and deleted, for "
        f"{found.seconds / 60:.1f} minutes"
    )
    return Report(name="churn", setting=setting, rows=rows)
