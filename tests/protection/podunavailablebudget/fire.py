"""A budget under fire: three managers answer, answers get lost, managers die and freeze, everybody deletes at once.

    python -m tests.protection.podunavailablebudget.fire 1000         # a thousand seeded runs
    python -m tests.protection.podunavailablebudget.fire 1 --seed 42  # one of them again
    python -m tests.protection.podunavailablebudget.fire 100 --late-evictions

A run is a CloneSet, StatefulSet, DaemonSet or Deployment under a budget on the local cluster and virtual time, with a
SidecarSet over it now and then. Fifty clients delete, evict, change images and mark pods, all at random, for up to a
minute: longer than any unit is held. A rollout, in place or by recreation, begins in the middle; so does one of the
sidecars. Two of the three managers only answer webhooks. Their answers to the API server come late, by up to as long
as it waits, or get lost; so do the API server's answers to them. Watches are cut, or lag behind without a limit, those
of workloads as those of pods and budgets. The clocks of the managers differ by up to two seconds. Managers are killed,
or freeze, several at a time, with all that they were about to send: often for seconds, now and then for so long that
nothing they remember is as it was. Where the leader freezes for longer than a lease, another one takes over meanwhile,
and the first goes on for some seconds as if it still led: nothing fences it, which is worse than ours, who ask the
clock before they send.

What is checked is read from watches of the pods and of the budget, and from what the API server was asked and answered
(`checker`): at no moment fewer pods serve than the budget promises, no pod goes down for which no unit was taken,
nothing is done to a pod that no manager has let through, and in the end the budget is whole again, with nothing left of
what was let through.

Answers about evictions get lost, but never come late. The API server asks about an eviction once, by the name of a
pod: where it hears seconds later that the pod may go, the pod may have become ready meanwhile, or be another one. No
validating webhook can do anything about that; `--late-evictions` shows it.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from random import Random
from typing import Any

from kruise import kinds
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.apps import DEPLOYMENTS, REPLICA_SETS
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.embedded import install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import Clock, VirtualClock, run_virtual
from kruise.machinery.codec import decode
from kruise.manager import gates
from kruise.manager.options import Options, Role
from tests.protection.podunavailablebudget.checker import breaches
from tests.protection.podunavailablebudget.crowd import NODES, Crowd
from tests.support.faults import CutWatch, Delay, DropAfter, LateEvents, Rule
from tests.support.replicas import Balancer, Replica

STORMS = (15.0, 30.0, 60.0)
"""Seconds of fire."""
GATES = "PodUnavailableBudgetUpdateGate=true"
FEATURES = ("cloneset", "statefulset", "daemonset", "sidecarset", "podunavailablebudget", "readiness")
"""Others have no say here, and would only cost time."""
WORKLOADS: tuple[Resource[Any], ...] = (CLONE_SETS, STATEFUL_SETS, DAEMON_SETS, DEPLOYMENTS)

FOLLOWED: tuple[Resource[Any], ...] = (PODS, POD_UNAVAILABLE_BUDGETS)
FEATURES_USED = tuple(feature for feature in kinds.features() if feature.name in FEATURES)
CALM = 3600.0
"""Seconds until all is well again: no watch lags for so long."""
LAGS = (0.5, 1.0, 10.0, 60.0, 300.0)
"""Seconds by which a watch may lag behind, one of them for each manager."""
FREEZES = (15.0, 15.0, 60.0, 600.0)
"""Seconds for which a manager freezes at the most, one of them each time. A unit is held for 20."""
SKEW = 1.0
"""Seconds by which the clock of a manager may go wrong, either way."""


@dataclasses.dataclass(kw_only=True)
class Result:
    seed: int
    what: str
    floor: int
    lowest: int
    replicas: int
    answers: Counter[str]
    kills: int
    freezes: int
    wrong: str = ""


def _operation(asked: Mapping[str, Any]) -> str:
    return "eviction" if asked.get("subResource") == "eviction" else str(asked["operation"]).lower()


class _Allowed:
    """What was let through, as it was answered: the operation, and the pod."""

    def __init__(self) -> None:
        self.count: Counter[tuple[str, str]] = Counter()

    def hear(self, path: str, asked: bytes, said: bytes) -> None:
        if path == "/validate-pod" and decode(said, dict)["response"]["allowed"]:
            request = decode(asked, dict)["request"]
            self.count[_operation(request), request["name"]] += 1


class _Audited:
    """The clients' way to the API: what was asked for, and done."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.done: Counter[tuple[str, str]] = Counter()

    async def send(self, request: Request) -> Response:
        answer = await self._inner.send(request)
        is_about_pods = request.resource is not None and request.resource.plural == "pods"
        if is_about_pods and request.verb.writes and answer.status < 300:
            verb = "eviction" if request.subresource else "update" if request.verb is Verb.PATCH else "delete"
            self.done[verb, request.name] += 1
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _is_no_eviction(asked: bytes) -> bool:
    return _operation(decode(asked, dict)["request"]) != "eviction"


class _Skewed:
    """A clock that goes wrong by as much all the time."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._skew = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return self._clock.now() + self._skew

    def monotonic(self) -> float:
        return self._clock.monotonic()


class Fire:
    def __init__(self, seed: int, *, late_evictions: bool = False) -> None:
        self._late_evictions = late_evictions
        self._random = Random(seed)
        self._seed = seed
        self._storm = self._random.choice(STORMS)
        self._kills = 0
        self._freezes = 0

    async def run(self) -> Result:
        cluster = LocalCluster(
            ClusterOptions(nodes=NODES, seed=self._seed), clock=VirtualClock(asyncio.get_running_loop())
        )
        allowed = _Allowed()
        balancer = Balancer(
            cluster,
            self._random,
            losing={"/validate-pod"},
            delaying=lambda asked: self._late_evictions or _is_no_eviction(asked),
            heard=allowed.hear,
        )
        running = asyncio.create_task(cluster.run(), name="cluster")
        await cluster.ready.wait()
        await install(cluster, FEATURES_USED)
        roles = (Role.ALL, Role.WEBHOOK, Role.WEBHOOK)
        replicas = [self._replica(cluster, balancer, role) for role in roles]
        for replica in replicas:
            await replica.start()
        audited = _Audited(InProcessTransport(cluster.core))
        client = Client(audited, clock=cluster.clock, field_manager="clients")
        try:
            result = await self._play(cluster, client, balancer, replicas)
            past = audited.done - allowed.count
            return dataclasses.replace(result, wrong=f"past the webhook: {past}") if past else result
        finally:
            for replica in replicas:
                await replica.kill()
            running.cancel()
            await asyncio.wait({running})

    def _replica(self, cluster: LocalCluster, balancer: Balancer, role: Role) -> Replica:
        return Replica(
            cluster,
            balancer,
            role,
            self._random,
            features=FEATURES_USED,
            faults=self._faults(),
            options=Options(gates=gates.resolve(gates.parse(GATES))),
            is_fenced=False,
            clock=_Skewed(cluster.clock, self._random.uniform(-SKEW, SKEW)),
        )

    def _faults(self) -> tuple[Rule, ...]:
        return (
            Rule(DropAfter(), verbs={Verb.PATCH}, resource="podunavailablebudgets", probability=0.1),
            Rule(Delay(0.01, 0.2), verbs={Verb.PATCH}, resource="podunavailablebudgets", probability=0.3),
            Rule(Delay(0.0, 30.0), verbs={Verb.PATCH, Verb.DELETE}, resource="pods", probability=0.05),
            Rule(CutWatch(after=7), resource="pods", probability=0.2),
            Rule(LateEvents(self._random.choice(LAGS)), resource="pods", probability=0.5),
            Rule(LateEvents(self._random.choice(LAGS)), resource="podunavailablebudgets", probability=0.5),
            *(
                Rule(LateEvents(self._random.choice(LAGS)), resource=f"{kind.plural}.{kind.group}", probability=0.3)
                for kind in (*WORKLOADS, REPLICA_SETS, SIDECAR_SETS)
            ),
        )

    async def _play(self, cluster: LocalCluster, client: Client, balancer: Balancer, replicas: list[Replica]) -> Result:
        await asyncio.sleep(1)
        crowd = Crowd(client, self._random, namespace="default", storm=self._storm, calm=CALM, kinds=WORKLOADS)
        if self._random.random() < 0.4:
            await crowd.put_sidecars()
        begins = await crowd.gather()
        following = [asyncio.create_task(self._follow(client, crowd, what, begins)) for what in FOLLOWED]
        balancer.loses, balancer.delays = 0.1, self._random.choice((0.0, 0.02, 0.1))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(crowd.shoot())
            tasks.create_task(self._killer(replicas))
            for _ in range(2):
                tasks.create_task(self._freezer(replicas))
        balancer.loses = balancer.delays = 0.0
        await crowd.unmark()
        wrong: list[str] = []
        try:
            await crowd.until_whole()
        except AssertionError as error:
            wrong.append(f"the budget did not become whole again: {error}")
        for task in following:
            task.cancel()
        return Result(
            seed=self._seed,
            what=crowd.resource.kind + (" with sidecars" if crowd.has_sidecars else ""),
            floor=crowd.floor,
            lowest=crowd.history.lowest(),
            replicas=crowd.replicas,
            answers=crowd.answers,
            kills=self._kills,
            freezes=self._freezes,
            wrong="; ".join([*breaches(crowd.history, crowd.floor), *wrong]),
        )

    async def _killer(self, replicas: list[Replica]) -> None:
        for _ in range(self._random.randint(1, 3)):
            await asyncio.sleep(self._random.uniform(1, self._storm / 3))
            victim = self._random.choice(replicas)
            self._kills += 1
            await victim.restart(self._random.uniform(0, 4))

    async def _freezer(self, replicas: list[Replica]) -> None:
        for _ in range(self._random.randint(0, 2)):
            await asyncio.sleep(self._random.uniform(1, self._storm / 2))
            self._freezes += 1
            await self._random.choice(replicas).freeze(self._random.uniform(1, self._random.choice(FREEZES)))

    async def _follow(self, client: Client, crowd: Crowd, what: Resource[Any], version: int) -> None:
        loop = asyncio.get_running_loop()
        async with client.watch(what, "default", resource_version=str(version), bookmarks=False) as events:
            async for event in events:
                crowd.saw(event.type, event.object, loop.time())


def play(seed: int, *, late_evictions: bool = False) -> Result:
    async def main() -> Result:
        return await Fire(seed, late_evictions=late_evictions).run()

    return run_virtual(main())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late-evictions", action="store_true")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # every refusal is a line in the protection log
    began, total, failed = time.monotonic(), Counter[str](), 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        result = play(seed, late_evictions=chosen.late_evictions)
        total += result.answers
        held = f"{result.lowest} of {result.replicas} at worst, {result.floor} promised"
        print(f"seed {seed}: {result.what}: {held}; {result.kills} kills, {result.freezes} freezes", flush=True)
        if result.wrong:
            failed += 1
            print(f"seed {seed}: WRONG: {result.wrong}", flush=True)
    said = ", ".join(f"{what} {number}" for what, number in sorted(total.items()))
    print(f"{chosen.runs} runs, {failed} wrong, {time.monotonic() - began:.0f} s; {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
