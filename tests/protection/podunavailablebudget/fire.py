"""A budget under fire: three managers answer, answers get lost, managers die, everybody deletes at once.

    python -m tests.protection.podunavailablebudget.fire 100          # a hundred seeded runs
    python -m tests.protection.podunavailablebudget.fire 1 --seed 42  # one of them again

A run is a CloneSet or StatefulSet under a budget on the local cluster and virtual time. Clients delete, evict, change
images and mark pods, all at random; a rollout in place begins in the middle. Two of the three managers only answer
webhooks. Their answers to the API server, and the API server's answers to them, get lost now and then; watches
are cut; managers are killed and started again. What is checked is read from a watch of the pods and from the objects in
the end, not from our own counters: at no moment fewer pods serve than the budget promises, and in the end the budget is
whole again, with nothing left of what was let through.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from kruise import kinds
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.embedded import embedded_manager, embedded_options, install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.local.webhooks.calling import CallError
from kruise.local.webhooks.inprocess import Handler, Site
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.manager import gates
from kruise.manager.options import Options, Role
from tests.scenarios.podlog import PodLog, is_serving
from tests.support.faults import CutWatch, Delay, DropAfter, FaultyTransport, Rule

REPLICAS = 9
STORM = 40.0
"""Seconds of fire."""
CALM = 120.0
MARK = "unavailable-pod.kruise.io/fire"
GATES = "PodUnavailableBudgetUpdateGate=true"
KINDS = ("CloneSet", "StatefulSet", "CloneSet")


@dataclasses.dataclass(kw_only=True)
class Result:
    seed: int
    floor: int
    lowest: int
    answers: Counter[str]
    kills: int
    wrong: str = ""


class _Balancer:
    """The Service in front of the managers. Answers get lost on their way to the API server."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.sites: list[Site] = []
        self.loses = 0.0

    def handler(self, path: str, timeout: float | None) -> Handler | None:
        if not self.sites:
            return None
        found = self._random.choice(self.sites).handler(path, timeout)
        if found is None:
            return None

        async def answer(body: bytes) -> bytes:
            said = await found(body)
            if path == "/validate-pod" and self._random.random() < self.loses:
                raise CallError("failed to call webhook: the answer got lost")
            return said

        return answer


class _Replica:
    """A manager that can be killed."""

    def __init__(self, cluster: LocalCluster, balancer: _Balancer, role: Role, random: Random) -> None:
        self._cluster = cluster
        self._balancer = balancer
        self._role = role
        self._random = random
        self._site: Site | None = None
        self._running: asyncio.Task[None] | None = None
        self.faults = (
            Rule(DropAfter(), verbs={Verb.PATCH}, resource="podunavailablebudgets", probability=0.1),
            Rule(Delay(0.01, 0.2), verbs={Verb.PATCH}, resource="podunavailablebudgets", probability=0.3),
            Rule(CutWatch(after=7), resource="pods", probability=0.2),
        )

    async def start(self) -> None:
        options = dataclasses.replace(
            embedded_options(Options(gates=gates.resolve(gates.parse(GATES)))), role=self._role
        )
        inner = InProcessTransport(self._cluster.core)
        transport = FaultyTransport(inner, self.faults, seed=self._random.getrandbits(32), clock=self._cluster.clock)
        before = len(self._balancer.sites)
        manager = embedded_manager(
            self._cluster, kinds.features(), options, random=Random(self._random.random()), transport=transport
        )
        self._running = asyncio.create_task(manager.run(asyncio.Event()), name="manager")
        await manager.serving.wait()
        self._site = self._balancer.sites[before] if len(self._balancer.sites) > before else None

    async def kill(self) -> None:
        if self._site in self._balancer.sites:
            self._balancer.sites.remove(self._site)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})


class Fire:
    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._seed = seed
        self._limit = self._random.randint(1, 4)
        self._kind = self._random.choice(KINDS)
        self._answers: Counter[str] = Counter()
        self._kills = 0

    async def run(self) -> Result:
        cluster = LocalCluster(ClusterOptions(nodes=3, seed=self._seed), clock=VirtualClock(asyncio.get_running_loop()))
        balancer = _Balancer(self._random)
        mount = cluster.webhooks.mount

        def mounted(prefix: str, site: Any) -> None:
            balancer.sites.append(site)
            mount(prefix, balancer)

        cluster.webhooks.mount = mounted  # type: ignore[method-assign]
        cluster.webhooks.unmount = lambda prefix: None  # type: ignore[method-assign]
        running = asyncio.create_task(cluster.run(), name="cluster")
        await cluster.ready.wait()
        await install(cluster, kinds.features())
        replicas = [_Replica(cluster, balancer, role, self._random) for role in (Role.ALL, Role.WEBHOOK, Role.WEBHOOK)]
        for replica in replicas:
            await replica.start()
        client = cluster.client("clients")
        try:
            return await self._play(cluster, client, balancer, replicas)
        finally:
            for replica in replicas:
                await replica.kill()
            running.cancel()
            await asyncio.wait({running})

    async def _play(
        self, cluster: LocalCluster, client: Client, balancer: _Balancer, replicas: list[_Replica]
    ) -> Result:
        await asyncio.sleep(1)
        await client.create(*self._workload())
        await client.create(POD_UNAVAILABLE_BUDGETS, self._budget(), "default")
        await self._is_whole(client, 60)
        listed = await client.list(PODS, "default")
        log = PodLog(cluster.clock, listed.items)
        following = asyncio.create_task(self._follow(client, log, listed.resource_version))
        balancer.loses = 0.1
        async with asyncio.TaskGroup() as tasks:
            for _ in range(12):
                tasks.create_task(self._client(client))
            tasks.create_task(self._rollout(client))
            tasks.create_task(self._killer(replicas))
        balancer.loses = 0.0
        await self._unmark(client)
        wrong = ""
        try:
            await self._is_whole(client, CALM)
        except AssertionError as error:
            wrong = f"the budget did not become whole again: {error}"
        following.cancel()
        lowest = log.lowest(lambda pod: is_serving(pod) and MARK not in pod.metadata.labels)
        floor = REPLICAS - self._limit
        if lowest < floor:
            wrong = f"{lowest} pods served, {floor} were promised"
        return Result(
            seed=self._seed, floor=floor, lowest=lowest, answers=self._answers, kills=self._kills, wrong=wrong
        )

    # Objects

    def _workload(self) -> tuple[Any, dict[str, Any], str]:
        from kruise.api.apps.cloneset import CLONE_SETS
        from kruise.api.apps.statefulset import STATEFUL_SETS

        resource = CLONE_SETS if self._kind == "CloneSet" else STATEFUL_SETS
        rolling: dict[str, Any] = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": REPLICAS}
        spec: dict[str, Any] = {
            "replicas": REPLICAS,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        }
        if self._kind == "StatefulSet":
            spec |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
            spec["template"]["spec"]["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
        self._resource = resource
        return (
            resource,
            {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "web"}, "spec": spec},
            "default",
        )

    def _budget(self) -> dict[str, Any]:
        which: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}}
        if self._random.random() < 0.5:
            reference = {"apiVersion": self._resource.api_version, "kind": self._resource.kind, "name": "web"}
            which = {"targetRef": reference}
        much: dict[str, Any] = {"maxUnavailable": self._limit}
        if self._random.random() < 0.3:
            much = {"minAvailable": REPLICAS - self._limit}
        return {
            "apiVersion": POD_UNAVAILABLE_BUDGETS.api_version,
            "kind": POD_UNAVAILABLE_BUDGETS.kind,
            "metadata": {"name": "pub"},
            "spec": {**which, **much},
        }

    # Who shoots

    async def _client(self, client: Client) -> None:
        ends = asyncio.get_running_loop().time() + STORM
        while asyncio.get_running_loop().time() < ends:
            # Many at the same moment, now and then.
            step = self._random.choice((0.0, 0.1, 1.0, 3.0))
            await asyncio.sleep(step - asyncio.get_running_loop().time() % step if step else 0.05)
            pods = [pod for pod in (await client.list(PODS, "default")).items if is_serving(pod)]
            if not pods:
                continue
            pod = self._random.choice(pods)
            action = self._random.choice((self._delete, self._evict, self._image, self._mark, self._dry))
            name = action.__name__.strip("_")
            try:
                await action(client, pod.metadata.name)
            except ClientError as error:
                self._answers[f"{name} {getattr(error, 'code', 'lost')}"] += 1
            else:
                self._answers[f"{name} done"] += 1

    async def _delete(self, client: Client, pod: str) -> None:
        await client.delete(PODS, pod, "default", grace_period_seconds=self._random.choice((0, 1, None)))

    async def _evict(self, client: Client, pod: str) -> None:
        await client.evict(PODS, pod, "default")

    async def _dry(self, client: Client, pod: str) -> None:
        await client.evict(PODS, pod, "default", dry_run=True)

    async def _image(self, client: Client, pod: str) -> None:
        change = [{"op": "replace", "path": "/spec/containers/0/image", "value": f"nginx:{self._random.randint(1, 9)}"}]
        await client.patch(PODS, pod, change, "default", patch_type=PatchType.JSON)

    async def _mark(self, client: Client, pod: str) -> None:
        await client.patch(PODS, pod, {"metadata": {"labels": {MARK: "1"}}}, "default")
        await asyncio.sleep(self._random.random() * 5)
        await client.patch(PODS, pod, {"metadata": {"labels": {MARK: None}}}, "default")

    async def _unmark(self, client: Client) -> None:
        for pod in (await client.list(PODS, "default")).items:
            if MARK in pod.metadata.labels:
                with contextlib.suppress(ClientError):
                    await client.patch(PODS, pod.metadata.name, {"metadata": {"labels": {MARK: None}}}, "default")

    async def _rollout(self, client: Client) -> None:
        await asyncio.sleep(STORM * self._random.uniform(0.1, 0.5))
        change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.26"}]}}}}
        for _ in range(20):
            with contextlib.suppress(ClientError):
                await client.patch(self._resource, "web", change, "default")
                return
            await asyncio.sleep(1)

    async def _killer(self, replicas: list[_Replica]) -> None:
        for _ in range(self._random.randint(1, 3)):
            await asyncio.sleep(self._random.uniform(2, STORM / 3))
            victim = self._random.choice(replicas)
            self._kills += 1
            await victim.kill()
            await asyncio.sleep(self._random.uniform(0, 4))
            await victim.start()

    # Who looks

    async def _follow(self, client: Client, log: PodLog, version: str) -> None:
        async with client.watch(PODS, "default", resource_version=version, bookmarks=False) as events:
            async for event in events:
                log.note(event.type, event.object)

    async def _is_whole(self, client: Client, within: float) -> None:
        loop = asyncio.get_running_loop()
        ends = loop.time() + within
        while True:
            found = await client.get(POD_UNAVAILABLE_BUDGETS, "pub", "default")
            status = found.status
            numbers = (status.unavailable_allowed, status.current_available, status.total_replicas)
            records = {**status.disrupted_pods, **status.unavailable_pods, **status.identities}
            if numbers == (self._limit, REPLICAS, REPLICAS) and not records:
                return
            assert loop.time() < ends, f"{numbers} {sorted(records)}"
            await asyncio.sleep(0.5)


def play(seed: int) -> Result:
    async def main() -> Result:
        return await Fire(seed).run()

    return run_virtual(main())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # every refusal is a line in the protection log
    began, total, failed = time.monotonic(), Counter[str](), 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        result = play(seed)
        total += result.answers
        print(f"seed {seed}: {result.lowest} of {REPLICAS} at worst, {result.floor} promised", flush=True)
        if result.wrong:
            failed += 1
            print(f"seed {seed}: {result.wrong}", flush=True)
    said = ", ".join(f"{what} {number}" for what, number in sorted(total.items()))
    print(f"{chosen.runs} runs, {failed} wrong, {time.monotonic() - began:.0f} s; {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
