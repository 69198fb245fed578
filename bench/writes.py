"""Writes through client and apply on a real API server, against a bare aiohttp loop there.

Both sides send the same verbs and bodies over TLS connections of the same pool size, in the same process, in turns. The
bare loop gets its bodies encoded beforehand, decodes nothing and keeps a fixed number in flight; of two such numbers
the better one counts. Ours does what it always does: guards, limiter, decoding, the store, metrics.
"""

from __future__ import annotations

import asyncio
import dataclasses
import statistics
import time
from collections.abc import Sequence

import aiohttp

from bench import processes
from bench.pods import new_pod
from bench.report import Report, Row
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import decode, encode
from kruise.machinery.guards import guarded_body
from kruise.machinery.limiter import WriteLimiter
from kruise.machinery.plan import Action, Plan, Result, Target, create, delete, patch, single
from kruise.machinery.spec import OWNER_INDEX
from kruise.machinery.watched import Watched
from tests.support.realcluster import ControlPlane

NAMESPACE = "bench"
STEPS = ("create", "status", "patch", "delete")
IN_FLIGHT = (40, WriteLimiter(clock=RealClock()).maximum)
ROUNDS = 12
WARM_UP = 1
STATUS = {
    "metadata": {"labels": {"lifecycle": "Normal"}},
    "status": {
        "conditions": [
            {"type": "InPlaceUpdateReady", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"},
        ]
    },
}
IMAGE = {"spec": {"containers": [{"name": "main", "image": "registry.example.com/shop/checkout:2.15.0"}]}}
_METHODS = {Verb.CREATE: "POST", Verb.PATCH: "PATCH", Verb.DELETE: "DELETE"}


@dataclasses.dataclass(frozen=True, slots=True)
class Cost:
    wall: float
    cpu: float


class Stopwatch:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> Cost:
        return Cost(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def creations(prefix: str, pods: int) -> list[Action]:
    return [create(PODS, new_pod(f"{prefix}-{number:05d}", NAMESPACE), reason="bench") for number in range(pods)]


def next_actions(done: str, pods: Sequence[Pod]) -> list[Action]:
    """What a controller would plan after a step for the pods that it answered with; nothing after the last."""
    made = []
    for pod in pods:
        target, uid = Target.of(PODS, pod), pod.metadata.uid
        if done == "create":
            made.append(
                patch(target, STATUS, uid=uid, reason="bench", patch_type=PatchType.STRATEGIC, subresource="status")
            )
        elif done == "status":
            made.append(patch(target, IMAGE, uid=uid, reason="bench", patch_type=PatchType.STRATEGIC))
        elif done == "patch":
            made.append(delete(target, uid=uid, reason="bench", grace_period_seconds=0))
    return made


class Ours:
    """A manager's way to write. Limiter and store are new in each round, as after a start."""

    name = "kruise"

    def __init__(self, client: Client) -> None:
        self._client = client

    def begin(self, plan: list[Action]) -> None:
        self._plan = plan
        cache = Cache(self._client, clock=RealClock())
        cache.add(Watched(PODS, indexes=OWNER_INDEX))
        self._applier = Applier(self._client, cache, clock=RealClock())

    async def write(self, step: str) -> Cost:
        plan = Plan(phases=(single(step, *self._plan, slow_start=step == "create"),))
        watch = Stopwatch()
        outcomes = await self._applier.apply(plan)
        cost = watch.stop()
        bad = [outcome for outcome in outcomes if outcome.result is not Result.DONE]
        if bad:
            raise RuntimeError(f"{len(bad)} of {len(self._plan)} writes failed, the first: {bad[0].error}")
        self._plan = next_actions(step, [outcome.object for outcome in outcomes])
        return cost


class Bare:
    """The least that aiohttp needs for the same requests."""

    def __init__(self, session: aiohttp.ClientSession, url: str, in_flight: int) -> None:
        self.name = f"bare, {in_flight} in flight"
        self._session = session
        self._url = url
        self._in_flight = in_flight

    def begin(self, plan: list[Action]) -> None:
        self._plan = plan

    async def write(self, step: str) -> Cost:
        requests = [self._request(action) for action in self._plan]
        watch = Stopwatch()
        answers = await self._send(requests)
        cost = watch.stop()
        self._plan = next_actions(step, [decode(answer, Pod) for answer in answers])
        return cost

    def _request(self, action: Action) -> tuple[str, str, bytes, dict[str, str]]:
        target, body = action.target, guarded_body(action)
        name = "" if action.verb is Verb.CREATE else target.name
        if action.verb is Verb.DELETE:
            guard = {"preconditions": {"uid": action.uid}, "gracePeriodSeconds": action.grace_period_seconds}
            body = encode({"apiVersion": "v1", "kind": "DeleteOptions", **guard})
        kind = action.patch_type.value if action.patch_type else "application/json"
        url = self._url + PODS.path(target.namespace, name, action.subresource)
        headers = {"Content-Type": kind, "Accept": "application/json", "User-Agent": "bench"}
        return _METHODS[action.verb], url, body, headers

    async def _send(self, requests: Sequence[tuple[str, str, bytes, dict[str, str]]]) -> list[bytes]:
        answers: list[bytes] = [b""] * len(requests)
        left = iter(enumerate(requests))

        async def lane() -> None:
            for index, (method, url, body, headers) in left:
                async with self._session.request(method, url, data=body, headers=headers) as response:
                    answers[index] = await response.read()
                    if response.status >= 300:
                        raise RuntimeError(f"{method} {url}: {response.status} {answers[index][:300]!r}")

        async with asyncio.TaskGroup() as group:
            for _ in range(self._in_flight):
                group.create_task(lane())
        return answers


def measure(scale: float) -> Report:
    pods = max(50, int(400 * scale))
    # Nothing else may write: no scheduler, no controllers.
    with ControlPlane(controller_manager=False, scheduler=False) as cluster:
        cluster.create_namespace(NAMESPACE)
        costs = processes.run(_rounds(cluster, pods))
    return _report(costs, pods)


async def _rounds(cluster: ControlPlane, pods: int) -> dict[str, list[dict[str, Cost]]]:
    client = Client(HttpTransport(load(cluster.kubeconfig)))
    connector = aiohttp.TCPConnector(ssl=cluster.ssl_context(), limit=0)
    async with client, aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        sides: list[Ours | Bare] = [Ours(client), *(Bare(session, cluster.url, number) for number in IN_FLIGHT)]
        costs: dict[str, list[dict[str, Cost]]] = {side.name: [] for side in sides}
        for number in range(WARM_UP + ROUNDS):
            if number == WARM_UP:
                processes.settle_heap()
            for index, side in enumerate(sides):
                side.begin(creations(f"round-{number}-{index}", pods))
                costs[side.name].append({})
            for step in STEPS:
                # The same verb of all sides within seconds: what disturbs the machine then disturbs all of them.
                for side in sides:
                    costs[side.name][-1][step] = await side.write(step)
            sides.append(sides.pop(0))  # another one begins each round
    return {name: rounds[WARM_UP:] for name, rounds in costs.items()}


def _report(costs: dict[str, list[dict[str, Cost]]], pods: int) -> Report:
    def seconds(side: str, *steps: str) -> float:
        return statistics.median(sum(cost[step].wall for step in steps) for cost in costs[side])

    def micros(side: str) -> float:
        total = statistics.median(sum(cost[step].cpu for step in STEPS) for cost in costs[side])
        return total / (pods * len(STEPS)) * 1e6

    writes = pods * len(STEPS)
    best = min((side for side in costs if side != Ours.name), key=lambda side: seconds(side, *STEPS))
    rows = [Row(what=side, value=writes / seconds(side, *STEPS), unit="writes/s") for side in costs]
    rows.append(Row(what=f"ratio to {best}", value=seconds(best, *STEPS) / seconds(Ours.name, *STEPS), at_least=0.8))
    rows += [Row(what=f"  of it {step}", value=seconds(best, step) / seconds(Ours.name, step)) for step in STEPS]
    rows += [Row(what=f"CPU, {side}", value=micros(side), unit="us/write") for side in (Ours.name, best)]
    rows.append(Row(what="CPU ratio", value=micros(Ours.name) / micros(best)))
    setting = f"{pods:,} pods created, patched twice (one status) and deleted, {ROUNDS} rounds in turns; medians"
    return Report(name="writes", setting=setting, rows=tuple(rows))
