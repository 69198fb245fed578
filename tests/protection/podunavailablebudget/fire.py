"""A budget under fire: three managers answer, answers get lost, managers die and freeze, everybody deletes at once.

    python -m tests.protection.podunavailablebudget.fire 1000         # a thousand seeded runs
    python -m tests.protection.podunavailablebudget.fire 1 --seed 42  # one of them again
    python -m tests.protection.podunavailablebudget.fire 100 --hard   # nothing ends a leader that has lost its lease

A run is a CloneSet or StatefulSet under a budget on the local cluster and virtual time. Fifty clients delete, evict,
change images and mark pods, all at random; a rollout, in place or by recreation, begins in the middle. Two of the three
managers only answer webhooks. Their answers to the API server, and the API server's answers to them, get lost now and
then; watches are cut or come late; managers are killed, or frozen for longer than anybody waits for them. What is
checked is read from a watch of the pods, from what the API server was asked and answered, and from the objects in the
end, not from our own counters: at no moment fewer pods serve than the budget promises, nothing is done to a pod that no
manager has let through, and in the end the budget is whole again, with nothing left of what was let through.

In hard runs managers freeze for longer than a lease, a second leader takes over meanwhile, and the first one goes on
for some seconds when it thaws, with all that it was about to send: nothing fences it. Watches lag behind by up to half
a minute.
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
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import Any

from kruise import kinds
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.embedded import embedded_manager, embedded_options, install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.local.webhooks.calling import CallError
from kruise.local.webhooks.inprocess import Handler, Site
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, TransportError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import decode
from kruise.manager import gates
from kruise.manager.options import Options, Role
from tests.scenarios.podlog import PodLog, is_serving
from tests.support.faults import CutWatch, Delay, DropAfter, FaultyTransport, LateEvents, Rule

REPLICAS = 9
CLIENTS = 50
STORM = 15.0
"""Seconds of fire."""
WEBHOOK_TIMEOUT = 10.0
RENEW_DEADLINE = 10.0
MARK = "unavailable-pod.kruise.io/fire"
GATES = "PodUnavailableBudgetUpdateGate=true"
KINDS = ("CloneSet", "StatefulSet", "CloneSet")
FEATURES = ("cloneset", "statefulset", "podunavailablebudget", "readiness")
"""Others have no say here, and would only cost time."""


FEATURES_USED = tuple(feature for feature in kinds.features() if feature.name in FEATURES)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Weather:
    """How bad it gets."""

    freezes: tuple[int, int] = (0, 2)
    frozen: tuple[float, float] = (1.0, 15.0)
    pods_late: float = 0.5
    budgets_late: float = 1.0
    is_fenced: bool = True
    calm: float = 120.0
    """Seconds until all is well again."""


USUAL = Weather()
HARD = Weather(freezes=(1, 3), frozen=(11.0, 14.0), pods_late=30.0, budgets_late=30.0, is_fenced=False, calm=3600.0)


@dataclasses.dataclass(kw_only=True)
class Result:
    seed: int
    floor: int
    lowest: int
    answers: Counter[str]
    kills: int
    freezes: int
    wrong: str = ""


class _Balancer:
    """The Service in front of the managers. Answers get lost on their way to the API server."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.sites: list[Site] = []
        self.frozen: dict[int, asyncio.Event] = {}
        """By the identity of its site: what a frozen manager waits for."""
        self.allowed: Counter[tuple[str, str]] = Counter()
        """What was let through, as it was answered: the operation, and the pod."""
        self.loses = 0.0

    def handler(self, path: str, timeout: float | None) -> Handler | None:
        if not self.sites:
            return None
        site = self._random.choice(self.sites)
        found = site.handler(path, timeout)
        if found is None:
            return None

        async def answer(body: bytes) -> bytes:
            said = await self._thawed(site, found(body), timeout or WEBHOOK_TIMEOUT)
            if path == "/validate-pod" and decode(said, dict)["response"]["allowed"]:
                asked = decode(body, dict)["request"]
                self.allowed[_operation(asked), asked["name"]] += 1
            if path == "/validate-pod" and self._random.random() < self.loses:
                raise CallError("failed to call webhook: the answer got lost")
            return said

        return answer

    async def _thawed(self, site: Site, answering: Awaitable[bytes], timeout: float) -> bytes:
        """A frozen manager may have decided and written: its answer comes when it thaws, to nobody."""
        task = asyncio.ensure_future(answering)
        thawed = self.frozen.get(id(site))
        if thawed is None:
            return await task
        try:
            async with asyncio.timeout(timeout):
                await thawed.wait()
        except TimeoutError:
            raise CallError("failed to call webhook: context deadline exceeded") from None
        return await task


def _operation(asked: Mapping[str, Any]) -> str:
    return "eviction" if asked.get("subResource") == "eviction" else str(asked["operation"]).lower()


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


class _Freezing:
    """The way of a manager to the API: nothing goes through while it is frozen."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.thawed: asyncio.Event | None = None
        self.is_fenced = False
        """The lease was lost meanwhile: nothing is sent any more."""

    async def send(self, request: Request) -> Response:
        if self.thawed is not None:
            await self.thawed.wait()
        if self.is_fenced:
            raise TransportError("the lease was lost", sent=False)
        return await self._inner.send(request)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        async with self._inner.stream(request) as lines:
            yield self._lines(lines)

    async def _lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines:
            if self.thawed is not None:
                await self.thawed.wait()
            yield line

    async def close(self) -> None:
        await self._inner.close()


class _Replica:
    """A manager that can be killed."""

    def __init__(
        self, cluster: LocalCluster, balancer: _Balancer, role: Role, random: Random, weather: Weather
    ) -> None:
        self._weather = weather
        self._cluster = cluster
        self._balancer = balancer
        self._role = role
        self._random = random
        self._site: Site | None = None
        self._running: asyncio.Task[None] | None = None
        self._transport: _Freezing | None = None
        self._changing = asyncio.Lock()
        self.faults = (
            Rule(DropAfter(), verbs={Verb.PATCH}, resource="podunavailablebudgets", probability=0.1),
            Rule(Delay(0.01, 0.2), verbs={Verb.PATCH}, resource="podunavailablebudgets", probability=0.3),
            Rule(CutWatch(after=7), resource="pods", probability=0.2),
            Rule(LateEvents(weather.pods_late), resource="pods", probability=0.3),
            Rule(LateEvents(weather.budgets_late), resource="podunavailablebudgets", probability=0.5),
        )

    async def start(self) -> None:
        options = dataclasses.replace(
            embedded_options(Options(gates=gates.resolve(gates.parse(GATES)))), role=self._role
        )
        inner = self._transport = _Freezing(InProcessTransport(self._cluster.core))
        transport = FaultyTransport(inner, self.faults, seed=self._random.getrandbits(32), clock=self._cluster.clock)
        before = len(self._balancer.sites)
        manager = embedded_manager(
            self._cluster, FEATURES_USED, options, random=Random(self._random.random()), transport=transport
        )
        self._running = asyncio.create_task(manager.run(asyncio.Event()), name="manager")
        await manager.serving.wait()
        self._site = self._balancer.sites[before] if len(self._balancer.sites) > before else None

    async def freeze(self, seconds: float) -> None:
        """It decides and writes nothing, and answers nobody; then it goes on as if no time had passed. A leader that
        could not renew its lease sends nothing more, and ends."""
        async with self._changing:
            if self._site is None or self._transport is None:
                return
            thawed = asyncio.Event()
            self._balancer.frozen[id(self._site)] = self._transport.thawed = thawed
            loses_lease = self._role is Role.ALL and seconds >= RENEW_DEADLINE
            if loses_lease and not self._weather.is_fenced:
                await self._with_successor(seconds, thawed)
                return
            await asyncio.sleep(seconds)
            self._thaw(thawed, is_fenced=loses_lease)
            if loses_lease:
                await self.kill()
                await self.start()

    def _thaw(self, thawed: asyncio.Event, *, is_fenced: bool) -> None:
        assert self._transport is not None
        self._balancer.frozen.pop(id(self._site), None)
        self._transport.is_fenced = is_fenced
        self._transport.thawed = None
        thawed.set()

    async def _with_successor(self, seconds: float, thawed: asyncio.Event) -> None:
        """Another leader takes over, and this one does not notice for a while."""
        successor = _Replica(self._cluster, self._balancer, Role.ALL, self._random, self._weather)
        await asyncio.sleep(RENEW_DEADLINE)
        await successor.start()
        await asyncio.sleep(seconds - RENEW_DEADLINE)
        self._thaw(thawed, is_fenced=False)
        await asyncio.sleep(self._random.uniform(1, 5))
        await self.kill()
        self._site, self._running, self._transport = successor._site, successor._running, successor._transport

    async def restart(self, pause: float) -> None:
        async with self._changing:
            await self.kill()
            await asyncio.sleep(pause)
            await self.start()

    async def kill(self) -> None:
        if self._site in self._balancer.sites:
            self._balancer.sites.remove(self._site)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})


class Fire:
    def __init__(self, seed: int, weather: Weather = USUAL) -> None:
        self._random = Random(seed)
        self._weather = weather
        self._seed = seed
        self._limit = self._random.randint(1, 4)
        self._kind = self._random.choice(KINDS)
        self._answers: Counter[str] = Counter()
        self._kills = 0
        self._freezes = 0
        self._there: dict[str, Pod] = {}
        """The pods as the watch told them last."""

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
        await install(cluster, FEATURES_USED)
        roles = (Role.ALL, Role.WEBHOOK, Role.WEBHOOK)
        replicas = [_Replica(cluster, balancer, role, self._random, self._weather) for role in roles]
        for replica in replicas:
            await replica.start()
        audited = _Audited(InProcessTransport(cluster.core))
        client = Client(audited, clock=cluster.clock, field_manager="clients")
        try:
            result = await self._play(cluster, client, balancer, replicas)
            past = audited.done - balancer.allowed
            return dataclasses.replace(result, wrong=f"past the webhook: {past}") if past else result
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
        await self._is_whole(client, self._weather.calm)
        listed = await client.list(PODS, "default")
        log = PodLog(cluster.clock, listed.items)
        self._there = {pod.metadata.name: pod for pod in listed.items}
        following = asyncio.create_task(self._follow(client, log, listed.resource_version))
        balancer.loses = 0.1
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CLIENTS):
                tasks.create_task(self._client(client))
            tasks.create_task(self._rollout(client))
            tasks.create_task(self._killer(replicas))
            tasks.create_task(self._freezer(replicas))
        balancer.loses = 0.0
        await self._unmark(client)
        wrong = ""
        try:
            await self._is_whole(client, self._weather.calm)
        except AssertionError as error:
            wrong = f"the budget did not become whole again: {error}"
        following.cancel()
        lowest = log.lowest(lambda pod: is_serving(pod) and MARK not in pod.metadata.labels)
        floor = REPLICAS - self._limit
        if lowest < floor:
            wrong = f"{lowest} pods served, {floor} were promised"
        return Result(
            seed=self._seed,
            floor=floor,
            lowest=lowest,
            answers=self._answers,
            kills=self._kills,
            freezes=self._freezes,
            wrong=wrong,
        )

    # Objects

    def _workload(self) -> tuple[Any, dict[str, Any], str]:
        from kruise.api.apps.cloneset import CLONE_SETS
        from kruise.api.apps.statefulset import STATEFUL_SETS

        resource = CLONE_SETS if self._kind == "CloneSet" else STATEFUL_SETS
        policy = self._random.choice(("InPlaceIfPossible", "ReCreate"))
        rolling: dict[str, Any] = {"podUpdatePolicy": policy, "maxUnavailable": REPLICAS}
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
            pods = [pod for pod in self._there.values() if is_serving(pod)]
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
            await asyncio.sleep(self._random.uniform(1, STORM / 3))
            victim = self._random.choice(replicas)
            self._kills += 1
            await victim.restart(self._random.uniform(0, 4))

    async def _freezer(self, replicas: list[_Replica]) -> None:
        for _ in range(self._random.randint(*self._weather.freezes)):
            await asyncio.sleep(self._random.uniform(1, STORM / 2))
            self._freezes += 1
            await self._random.choice(replicas).freeze(self._random.uniform(*self._weather.frozen))

    # Who looks

    async def _follow(self, client: Client, log: PodLog, version: str) -> None:
        async with client.watch(PODS, "default", resource_version=version, bookmarks=False) as events:
            async for event in events:
                log.note(event.type, event.object)
                if event.type == "DELETED":
                    self._there.pop(event.object.metadata.name, None)
                else:
                    self._there[event.object.metadata.name] = event.object

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


def play(seed: int, weather: Weather = USUAL) -> Result:
    async def main() -> Result:
        return await Fire(seed, weather).run()

    return run_virtual(main())


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hard", action="store_true")
    chosen = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # every refusal is a line in the protection log
    began, total, failed = time.monotonic(), Counter[str](), 0
    for seed in range(chosen.seed, chosen.seed + chosen.runs):
        result = play(seed, HARD if chosen.hard else USUAL)
        total += result.answers
        faults = f"{result.kills} kills, {result.freezes} freezes"
        print(f"seed {seed}: {result.lowest} of {REPLICAS} at worst, {result.floor} promised; {faults}", flush=True)
        if result.wrong:
            failed += 1
            print(f"seed {seed}: {result.wrong}", flush=True)
    said = ", ".join(f"{what} {number}" for what, number in sorted(total.items()))
    print(f"{chosen.runs} runs, {failed} wrong, {time.monotonic() - began:.0f} s; {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
