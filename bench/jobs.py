"""Jobs: a BroadcastJob over a thousand nodes, a thousand AdvancedCronJobs that are due at the same second, and an
EphemeralJob for a thousand pods.

All in one process, on virtual time: the figures are CPU seconds of cluster, nodes and manager together. Memory is
measured in a process of its own.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from bench import processes
from bench.memory import memory
from bench.report import Report, Row
from kruise import kinds
from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.native.apps import JOBS
from kruise.feature import Feature
from kruise.kinds import feature_of
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.codec import decode, encode
from kruise.machinery.store import Store
from kruise.manager.options import Options
from kruise.workloads.advancedcronjob.admission import ADMISSION as CRONS
from kruise.workloads.broadcastjob.admission import ADMISSION as JOBS_ON_NODES
from tests.support.admission import Server
from tests.support.world import LocalWorld, run_local
from tests.workloads.broadcastjob.modelled import ModelledJob
from tests.workloads.broadcastjob.test_local import job
from tests.workloads.ephemeraljob.model import RUNNING
from tests.workloads.ephemeraljob.modelled import ModelledDebug, document

HOUR = 3600.0
KINDS = ("BroadcastJob", "AdvancedCronJob", "EphemeralJob")


def measure(scale: float) -> Report:
    jobs, nodes = max(int(1000 * scale), 1), max(int(1000 * scale), 3)
    started, late, writes = _all_at_once(jobs)
    idle = _idle(jobs) - _idle(0)
    made, ended = _broadcast(nodes)
    cluster = _broadcast_on_cluster(nodes)
    injected, look = _debug(nodes)
    with processes.child("jobs", jobs) as (_, kept):
        rss = tuple(
            Row(what=f"memory of {jobs} {kind}s", value=megabytes, unit="MB", below=10 * scale + 2)
            for kind, megabytes in kept.items()
        )
    rows = (
        Row(
            what=f"{jobs} AdvancedCronJobs due at one second: CPU until all have started",
            value=started,
            unit="s",
            below=10,
        ),
        Row(what="latest start after that second", value=late, unit="s", below=10),
        Row(what="writes for each run: itself, two statuses, events", value=writes / jobs, below=6),
        Row(what=f"{jobs} AdvancedCronJobs, none due for an hour", value=idle / HOUR * 1000, unit="mCPU", below=5),
        Row(what=f"BroadcastJob over {nodes} nodes: writes for each pod created", value=made / nodes, below=1.1),
        Row(what="writes when all of them have finished", value=ended, below=2),
        Row(
            what=f"the same on {nodes} simulated nodes: CPU of cluster, nodes and manager", value=cluster.cpu, unit="s"
        ),
        Row(what="pods made for each node", value=cluster.pods / nodes, below=1.01),
        Row(what="writes of its status", value=cluster.statuses, below=max(nodes / 10, 20)),
        Row(what="writes of the manager in the ten minutes after its end", value=cluster.later, below=1),
        Row(what=f"EphemeralJob for {nodes} pods at once: writes for each pod", value=injected / nodes, below=1.01),
        Row(what="a look at them when nothing has changed", value=look * 1000, unit="ms", below=100),
        *rss,
    )
    setting = (
        f"{jobs} AdvancedCronJobs of paused Jobs; {nodes} nodes and pods in the model of a cluster; as many simulated "
        "nodes; one process, virtual time"
    )
    return Report(name="jobs", setting=setting, rows=rows)


def cron(number: int, schedule: str) -> dict[str, Any]:
    pods = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1.36"}]}
    # Suspended, so that what is measured is not the work of pods.
    template = {"jobTemplate": {"spec": {"suspend": True, "template": {"spec": pods}}}}
    return {"metadata": {"name": f"cron-{number}"}, "spec": {"schedule": schedule, "template": template}}


def _world(story: Any) -> None:
    features = [feature_of("apps.kruise.io", kind) for kind in ("BroadcastJob", "AdvancedCronJob")]
    run_local(story, nodes=1, features=features)


def _all_at_once(jobs: int) -> tuple[float, float, int]:
    found: list[tuple[float, float, int]] = []

    async def story(world: LocalWorld) -> None:
        for number in range(jobs):
            await world.client.create(ADVANCED_CRON_JOBS, cron(number, "0 3 * * *"), "default")
        await world.sleep(3 * HOUR - 60 - world.clock.monotonic() % 60)
        version = await _version(world)
        began = time.process_time()
        for _ in range(300):
            await world.sleep(1)
            page = await world.client.list(JOBS, "default")
            if len(page.items) >= jobs:
                break
        last = max(job.metadata.creation_timestamp for job in page.items)
        used = time.process_time() - began
        await world.sleep(5)
        found.append((used, (last.minute * 60 + last.second) % 3600, await _version(world) - version))

    _world(story)
    return found[0]


async def _version(world: LocalWorld) -> int:
    """Every write raises it by one."""
    return int((await world.client.list(BROADCAST_JOBS, "default")).resource_version)


def _idle(jobs: int) -> float:
    found: list[float] = []

    async def story(world: LocalWorld) -> None:
        for number in range(jobs):
            await world.client.create(ADVANCED_CRON_JOBS, cron(number, "@yearly"), "default")
        await world.sleep(30)
        began = time.process_time()
        await world.sleep(HOUR)
        found.append(time.process_time() - began)

    _world(story)
    return found[0]


def _broadcast(nodes: int) -> tuple[int, int]:
    model = ModelledJob(nodes=nodes)
    model.passes(2)
    made = model.writes - 1  # the status
    for node in model.served:
        model.end(node)
    before = model.writes
    model.passes(3)
    return made, model.writes - before


@dataclasses.dataclass(frozen=True, slots=True)
class OnCluster:
    cpu: float
    pods: int
    statuses: int
    later: int


class _Counting:
    """The manager's way to the API; counts what it writes."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.writes: Counter[tuple[str, str]] = Counter()

    async def send(self, request: Request) -> Response:
        if request.verb.writes and request.resource is not None:
            self.writes[request.resource.plural, request.verb.value] += 1
        return await self._inner.send(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _broadcast_on_cluster(nodes: int) -> OnCluster:
    found: list[OnCluster] = []

    async def story(world: LocalWorld) -> None:
        transport = _Counting(InProcessTransport(world.cluster.core))
        world.start_manager(transport)
        await world.sleep(2)
        began = time.process_time()
        await world.create(job("task", "sleep 1", version="v1beta1"))
        while True:
            await world.sleep(1)
            status = (await world.get(BROADCAST_JOBS, "task")).get("status", {})
            if status.get("phase") == "completed":
                break
        used = time.process_time() - began
        assert status["succeeded"] == nodes
        await world.sleep(60)
        writes = transport.writes.copy()
        await world.sleep(600)
        later = transport.writes.total() - writes.total()
        found.append(OnCluster(used, writes["pods", "create"], writes["broadcastjobs", "patch"], later))

    features = [feature for feature in kinds.features() if feature.name in ("broadcastjob", "readiness")]
    run_local(story, nodes=nodes, features=features, start=False)
    return found[0]


def _debug(pods: int) -> tuple[int, float]:
    model = ModelledDebug(document(parallelism=pods), pods=pods)
    model.reconcile()
    injected = model.writes - 2  # the finalizer and the status
    for number in range(pods):
        model.report(number, RUNNING)
    model.reconcile()
    before = model.writes
    began = time.process_time()
    model.reconcile()
    look = time.process_time() - began
    assert model.writes == before
    return injected, look


# Memory


def _stored(feature: Feature, count: int) -> list[bytes]:
    """Objects as a server sends them: with what admission has written into them, and their status."""
    if feature.name == "advancedcronjob":
        given = Server(admission=CRONS).defaults({"kind": "AdvancedCronJob", **cron(0, "0 3 * * *")})
        status: dict[str, Any] = {"type": "Job", "lastScheduleTime": "2030-01-01T03:00:00Z"}
    elif feature.name == "broadcastjob":
        given = Server(admission=JOBS_ON_NODES).defaults(job("task", "sleep 1", version="v1beta1"))
        counts = {"active": 0, "desired": 3, "failed": 0, "succeeded": 3, "phase": "completed"}
        status = {**counts, "startTime": "2030-01-01T03:00:00Z", "completionTime": "2030-01-01T03:00:04Z"}
    else:
        given, status = document(), {"match": 3, "phase": "Running", "startTime": "2030-01-01T03:00:00Z"}
    made = []
    for number in range(count):
        name = {"name": f"job-{number}", "namespace": f"team-{number % 10}", "uid": f"{number:032x}"}
        times = {"creationTimestamp": f"2030-01-01T{number % 24:02}:{number % 60:02}:00Z", "generation": 1}
        metadata = {**given["metadata"], **name, **times, "resourceVersion": str(number + 1)}
        made.append(encode({**given, "metadata": metadata, "status": status}))
    return made


def _kept(feature: Feature, count: int) -> float:
    """What a controller's store of them takes, in MB."""
    [controller] = feature.controllers(Options())
    [source] = [one for one in controller.sources if one.resource == controller.subject]
    raw, store = _stored(feature, count), Store[Any](source.watched)
    decode(raw[0], controller.subject.type)
    gc.collect()
    before = memory()["rss"]
    store.replace([decode(one, controller.subject.type) for one in raw], count + 1)
    gc.collect()
    assert len(store) == count
    return memory()["rss"] - before


def main(count: int) -> None:
    kept = {}
    for kind in KINDS:
        feature = feature_of("apps.kruise.io", kind)
        assert feature is not None
        kept[kind] = _kept(feature, count)
    processes.say(kept)
    processes.run(processes.until_input_ends())


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]))
