"""The count under fire: three managers answer, 200 pods are created at once, answers get lost, managers die and freeze.

    python -m tests.spread.workloadspread.fire 200              # two hundred seeded runs
    python -m tests.spread.workloadspread.fire 1 --seed 42      # one of them again

A run is a Job that nobody but the run itself looks after (`managedBy`), under a WorkloadSpread of two limited subsets
and one without a limit, on the local cluster and virtual time. Two of the three managers only answer webhooks. Their
answers to the API server, and the API server's answers to them, get lost now and then; watches are cut or come late;
managers are killed, or frozen for longer than anybody waits for them. Meanwhile 200 clients create a pod each, all at
once, and try again until theirs is there; others delete pods, and create them anew. What is checked is read from a
watch of the pods, not from our own counters: at no moment are more pods in a subset than it may have, every pod comes
to be in some subset, and in the end nothing is left in the ledger, and every place that is free is given away again.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from kruise import kinds
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.native.apps import JOBS
from kruise.api.native.pod import PODS, Pod
from kruise.embedded import install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ClientError
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.manager.options import Role
from kruise.spread.workloadspread.matched import mark_of
from tests.spread.workloadspread.stories import spread, subset, workload
from tests.support.faults import CutWatch, Delay, DropAfter, LateEvents, Rule
from tests.support.replicas import Balancer, Replica

PODS_WANTED = 200
JOB = ("batch/v1", "Job")
NAMESPACE = "default"
FIRE = 10.0
"""Seconds of it."""
CALM = 120.0
FEATURES = tuple(feature for feature in kinds.features() if feature.name == "workloadspread")
"""Others have no say here, and would only cost time."""
SERVED = tuple(feature for feature in kinds.features() if feature.name in ("workloadspread", "cloneset", "statefulset"))
"""Kinds that a WorkloadSpread looks at, and that are to be there."""
FAULTS = (
    Rule(DropAfter(), verbs={Verb.PATCH}, resource="workloadspreads", probability=0.1),
    Rule(Delay(0.01, 0.2), verbs={Verb.PATCH}, resource="workloadspreads", probability=0.3),
    Rule(CutWatch(after=7), resource="pods", probability=0.2),
    Rule(LateEvents(0.5), resource="pods", probability=0.3),
    Rule(LateEvents(1.0), resource="workloadspreads", probability=0.5),
)


@dataclasses.dataclass(kw_only=True)
class Result:
    seed: int
    limits: dict[str, int]
    most: Counter[str]
    answers: Counter[str]
    kills: int
    freezes: int
    disturbed: int
    wrong: str = ""


class Counted:
    """The pods of each subset, at every change that a watch tells of."""

    def __init__(self) -> None:
        self.subsets: dict[str, str] = {}
        """By name of the pod; those that are in none have an empty one."""
        self.most: Counter[str] = Counter()

    async def run(self, client: Client, version: str) -> None:
        async with client.watch(PODS, NAMESPACE, resource_version=version, bookmarks=False) as events:
            async for event in events:
                self._saw(event.type, event.object)

    def _saw(self, type: str, pod: Pod) -> None:
        if type == "DELETED" or pod.metadata.deletion_timestamp is not None:
            self.subsets.pop(pod.metadata.name, None)
            return
        mark = mark_of(pod)
        self.subsets[pod.metadata.name] = mark.subset if mark is not None else ""
        for name, count in self.counts.items():
            self.most[name] = max(self.most[name], count)

    @property
    def counts(self) -> Counter[str]:
        return Counter(self.subsets.values())


class Clients:
    """Those who create and delete pods, each until it is done."""

    def __init__(self, client: Client, random: Random, owner: dict[str, Any], counted: Counted) -> None:
        self._client = client
        self._random = random
        self._owner = owner
        self._counted = counted
        self.answers: Counter[str] = Counter()
        self.names: set[str] = set()

    async def create(self, name: str) -> None:
        """Under its name, or under one that the server chooses: then nobody knows which pod an answer was about."""
        metadata: dict[str, Any] = {"labels": {"app": "web"}, "ownerReferences": [self._owner]}
        is_named = self._random.random() < 0.7
        metadata |= {"name": name} if is_named else {"generateName": f"{name}-"}
        pod = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}
        while True:
            try:
                made = await self._client.create(PODS, pod, NAMESPACE)
            except AlreadyExistsError:
                self.names.add(name)
                return
            except ClientError as error:
                self.answers[f"create {getattr(error, 'code', 'lost')}"] += 1
                await asyncio.sleep(self._random.uniform(0.05, 1))
            else:
                self.answers["create done"] += 1
                self.names.add(made.metadata.name)
                return

    async def replace(self, name: str) -> None:
        """Delete a pod, and create one in its place, now and then under the same name."""
        try:
            if self._random.random() < 0.3:
                await self._client.evict(PODS, name, NAMESPACE)
            else:
                await self._client.delete(PODS, name, NAMESPACE, grace_period_seconds=0)
        except ClientError as error:
            self.answers[f"delete {getattr(error, 'code', 'lost')}"] += 1
            return
        self.answers["delete done"] += 1
        self.names.discard(name)
        await self.create(name if self._random.random() < 0.5 else f"{name}-next")

    async def shoot(self) -> None:
        ends = asyncio.get_running_loop().time() + FIRE
        while asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(self._random.choice((0.05, 0.3, 1.0)))
            there = sorted(self._counted.subsets)
            if there:
                await self.replace(self._random.choice(there))


class Fire:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._counted = Counted()
        self._kills = 0
        self._freezes = 0
        first, second = self._random.randint(5, 40), self._random.randint(5, 40)
        self._limits = {"a": PODS_WANTED * first // 100, "b": PODS_WANTED * second // 100}
        sizes: list[Any] = [f"{first}%", f"{second}%"]
        if self._random.random() < 0.6:
            sizes = list(self._limits.values())
        self._spread = spread(subset("a", size=sizes[0]), subset("b", size=sizes[1]), subset("rest"), target=JOB)

    async def run(self) -> Result:
        cluster = LocalCluster(ClusterOptions(nodes=0, seed=self._seed), clock=VirtualClock(asyncio.get_running_loop()))
        balancer = Balancer(cluster, self._random, losing={"/mutate-pod", "/validate-pod"})
        running = asyncio.create_task(cluster.run(), name="cluster")
        await cluster.ready.wait()
        await install(cluster, SERVED)
        replicas = [
            Replica(cluster, balancer, role, self._random, features=FEATURES, faults=FAULTS)
            for role in (Role.ALL, Role.WEBHOOK, Role.WEBHOOK)
        ]
        for replica in replicas:
            await replica.start()
        try:
            return await self._play(cluster.client("clients"), balancer, replicas)
        finally:
            for replica in replicas:
                await replica.kill()
            running.cancel()
            await asyncio.wait({running})

    async def _play(self, client: Client, balancer: Balancer, replicas: list[Replica]) -> Result:
        await asyncio.sleep(1)
        # Ours alone: the Job controller leaves it to whoever is named.
        job = await client.create(JOBS, workload(PODS_WANTED, JOB, managedBy="example.io/fire"), NAMESPACE)
        await client.create(WORKLOAD_SPREADS, self._spread, NAMESPACE)
        await self._until_settled(client)
        await asyncio.sleep(2)  # until the last of them has heard of it: before that, pods pass as they are
        listed = await client.list(PODS, NAMESPACE)
        counting = asyncio.create_task(self._counted.run(client, listed.resource_version))
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "web",
            "uid": job.metadata.uid,
            "controller": True,
        }
        clients = Clients(client, self._random, owner, self._counted)
        balancer.loses = 0.1
        async with asyncio.TaskGroup() as tasks:
            for number in range(PODS_WANTED):
                tasks.create_task(clients.create(f"pod-{number}"))
            for _ in range(10):
                tasks.create_task(clients.shoot())
            tasks.create_task(self._killer(replicas))
            tasks.create_task(self._freezer(replicas))
        balancer.loses = 0.0
        for replica in replicas:
            replica.calm()
        wrong = await self._judged(client, clients)
        counting.cancel()
        for replica in replicas:
            await replica.kill()
        return Result(
            seed=self._seed,
            limits=self._limits,
            most=self._counted.most,
            answers=clients.answers,
            kills=self._kills,
            freezes=self._freezes,
            disturbed=balancer.lost + sum(replica.disturbed for replica in replicas),
            wrong=wrong,
        )

    async def _judged(self, client: Client, clients: Clients) -> str:
        try:
            await self._until_settled(client, within=CALM)
        except AssertionError as error:
            return f"the ledger did not settle: {error}"
        lost = clients.names - self._counted.subsets.keys()
        if lost:
            return f"pods are not there: {sorted(lost)}"
        if self._counted.most[""]:
            return f"{self._counted.most['']} pods were let in without a subset"
        # Places that nobody has are there to be had: whoever comes next gets them, in order. Before, all managers must
        # have heard of the last count.
        await asyncio.sleep(2)
        there = self._counted.counts
        free = {name: limit - there[name] for name, limit in self._limits.items()}
        for number in range(sum(free.values())):
            await clients.create(f"more-{number}")
        await self._until_settled(client, within=CALM)
        for name, limit in self._limits.items():
            if self._counted.counts[name] != limit:
                return f"{name} has {self._counted.counts[name]} pods, {limit} would fit; {free} were free"
            if self._counted.most[name] > limit:
                return f"{name} had {self._counted.most[name]} pods, {limit} are allowed"
        return ""

    async def _until_settled(self, client: Client, within: float = 30.0) -> None:
        """The count is that of the pods, and nobody comes or goes."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + within
        while True:
            found: WorkloadSpread = await client.get(WORKLOAD_SPREADS, "ws", NAMESPACE)
            there = self._counted.counts
            told = {item.name: item.replicas for item in found.status.subset_statuses}
            ledgers = found.status.versioned_subset_statuses.values()
            entries = [
                name for ledger in ledgers for item in ledger for name in (*item.creating_pods, *item.deleting_pods)
            ]
            missing = {item.name: item.missing_replicas for item in found.status.subset_statuses if item.name != "rest"}
            wanted = {name: limit - there[name] for name, limit in self._limits.items()}
            if told == {name: there[name] for name in ("a", "b", "rest")} and missing == wanted and not entries:
                return
            assert loop.time() < ends, f"{told} {missing} {dict(there)} {entries}"
            await asyncio.sleep(0.5)

    async def _killer(self, replicas: list[Replica]) -> None:
        for _ in range(self._random.randint(1, 3)):
            await asyncio.sleep(self._random.uniform(0.05, FIRE / 3))
            self._kills += 1
            await self._random.choice(replicas).restart(self._random.uniform(0, 3))

    async def _freezer(self, replicas: list[Replica]) -> None:
        for _ in range(self._random.randint(0, 2)):
            await asyncio.sleep(self._random.uniform(0.05, FIRE / 2))
            self._freezes += 1
            await self._random.choice(replicas).freeze(self._random.uniform(1, 15))


def play(seed: int) -> Result:
    async def main() -> Result:
        return await Fire(seed).run()

    return run_virtual(main())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # every disturbance is a line in some log
    began, total, failed = time.monotonic(), Counter[str](), 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        result = play(seed)
        total += result.answers
        print(f"seed {seed}: {json.dumps(result.most)} at most, {json.dumps(result.limits)} allowed", flush=True)
        if result.wrong:
            failed += 1
            print(f"seed {seed}: {result.wrong}", flush=True)
    said = ", ".join(f"{what} {number}" for what, number in sorted(total.items()))
    print(f"{chosen.runs} runs, {failed} wrong, {time.monotonic() - began:.0f} s; {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
