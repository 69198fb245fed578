"""What comes and goes leaves nothing behind: after each round the manager holds what it held after the round before.

A round makes one of each kind in a new namespace, rolls and scales what has pods, and deletes all of it. Whatever
remembers by name, key or uid and does not forget would grow by the round, however little.
"""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from bench import fleet
from bench.churn import HOME, NODES_USED, visitors
from bench.fleet import TEAM_LABEL, Member, is_settled
from bench.living import WORKLOADS, new_image
from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.kinds import features
from kruise.local.apicore.storage import MemoryStorage
from kruise.local.collector import GarbageCollector
from kruise.machinery.journal import Journal
from kruise.machinery.sharing import Sharing
from kruise.manager.refusals import Counters
from tests.support.applied_twice import GATES, served
from tests.support.holdings import held_by
from tests.support.world import LocalWorld, run_local

WARM_UP, ROUNDS = 1, 5
QUIET = 1500.0
"""Seconds after a round: events of silent objects are remembered for less, if none was told more than five times, and
nobody waits that long."""
BOUNDED = (Journal, Sharing, Counters)
"""What keeps so much of what was last, and no more. Their own tests show their bounds."""
BOUNDED_IN_CLUSTER = (*BOUNDED, MemoryStorage, GarbageCollector)
NOT_OF_MANAGER = ("kruise.local", "kruise.machinery.clock", "tests.")
NOT_OF_CLUSTER = ("kruise.manager", "kruise.embedded", "kruise.admission", "kruise.machinery.clock", "tests.")
BY_ITSELF = {"NodeImage", "NodePodProbe"}
"""Kinds that the manager makes for nodes and pods."""


def test_a_manager_holds_no_more_after_each_round_of_all_kinds() -> None:
    manager: list[Counter[str]] = []
    cluster: list[Counter[str]] = []
    stored: list[Counter[str]] = []

    async def story(world: LocalWorld) -> None:
        for node in (await world.list(NODES))[:NODES_USED]:
            await world.patch(NODES, node["metadata"]["name"], {"metadata": {"labels": {TEAM_LABEL: HOME}}})
        for number in range(ROUNDS):
            await come_and_go(world, f"team-{number}")
            if number < WARM_UP:
                continue
            gc.collect()
            roots = {**{one.spec.name: one for one in world.manager._controllers}, "manager": world.manager}
            manager.append(held_by(roots, not_in=NOT_OF_MANAGER, but=BOUNDED))
            cluster.append(held_by({"cluster": world.cluster}, not_in=NOT_OF_CLUSTER, but=BOUNDED_IN_CLUSTER))
            tables = world.cluster.core.storage._tables
            stored.append(Counter({resource: len(table.objects) for resource, table in tables.items()}))

    run_local(story, feature_gates=GATES, nodes=NODES_USED + 1)
    assert manager[0].total() > 10_000, "hardly anything was found: what is asked leads past the manager"
    for whose, looks in (("manager", manager), ("local cluster", cluster), ("local API server", stored)):
        assert not growing(looks), f"the {whose} holds more of these after each round: {growing(looks)}"


def growing(looks: Sequence[Counter[str]]) -> Mapping[str, list[int]]:
    """What was more at each look than at the one before. What is filled once and emptied later is not."""
    sizes = {what: [look[what] for look in looks] for look in looks for what in look}
    return {what: ones for what, ones in sizes.items() if all(b > a for a, b in pairwise(ones))}


def test_a_leak_would_be_seen() -> None:
    class Thing:
        pass

    class Leaky:
        def __init__(self) -> None:
            self.by_uid: dict[str, Thing] = {}
            self.latest: list[str] = []

    leaky, looks = Leaky(), []
    for number in range(4):
        leaky.by_uid[f"uid-{number}"] = Thing()
        leaky.latest = [f"uid-{number}"]
        looks.append(held_by({"leaky": leaky}))
    assert growing(looks) == {"leaky.by_uid": [1, 2, 3, 4], f"{Thing.__module__}.{Thing.__qualname__}": [1, 2, 3, 4]}


async def come_and_go(world: LocalWorld, team: str) -> None:
    world.namespace = team
    labels = {TEAM_LABEL: team}
    await world.client.create(NAMESPACES, {"metadata": {"name": team, "labels": labels}})
    ours = [*visitors(team), *further(team)]
    kinds = {member.resource.kind for member in ours} | {REQUESTS.kind} | BY_ITSELF
    assert kinds >= {kind for _, kind in served(features())}
    for member in ours:
        await world.client.create(member.resource, member.body, member.namespace)
    await until_settled(world, ours)
    pod = (await world.pods("app=web-1"))[0]["metadata"]["name"]
    again = {"podName": pod, "containers": [{"name": "main"}]}
    await world.client.create(REQUESTS, {"metadata": {"name": "again"}, "spec": again}, team)
    await world.sleep(60)
    for member in ours:
        if member.resource in WORKLOADS and member.resource is not BROADCAST_JOBS:
            await world.patch(member.resource, member.name, new_image(member, "nginx:2"))
    await world.patch(CLONE_SETS, "web-0", {"spec": {"replicas": 6}})
    await world.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 2}})
    await until_settled(world, [member for member in ours if member.pods])
    for member in ours:
        if not member.namespace:
            await world.delete(member.resource, member.name)
    await world.client.delete(NAMESPACES, team)
    await asyncio.sleep(QUIET)
    assert team not in {namespace["metadata"]["name"] for namespace in await world.list(NAMESPACES)}


def further(team: str) -> Iterator[Member]:
    often = fleet.cron("often")
    often["spec"]["schedule"] = "* * * * *"
    yield Member(ADVANCED_CRON_JOBS, team, often)
    pulled = fleet.pull_job("both", HOME)
    images = {key: value for key, value in pulled["spec"].items() if key != "image"} | {"images": ["one:1", "two:1"]}
    yield Member(IMAGE_LIST_PULL_JOBS, team, {**pulled, "kind": IMAGE_LIST_PULL_JOBS.kind, "spec": images})


async def until_settled(world: LocalWorld, members: Sequence[Member]) -> None:
    async def settled() -> None:
        for member in members:
            if member.resource in WORKLOADS:
                found: dict[str, Any] = await world.get(member.resource, member.name)
                assert is_settled({"kind": member.resource.kind, **found}, member.pods), member.name

    await world.until(settled, within=300, every=2)
