"""Spreading: what a WorkloadSpread costs each pod that it lets in, and what a pass over many subsets costs.

The local cluster in one process, with the manager in it: server and manager share the core, so that what counts is the
ratio between the two runs. Pods are created by a CloneSet, once without and once with a WorkloadSpread of three subsets
over it, two of them with a limit.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench import processes
from bench.report import Report, Row
from kruise import kinds
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.pod import PODS
from kruise.embedded import install
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.clock import RealClock
from kruise.manager.options import Options
from kruise.spread.uniteddeployment.decide import decide
from kruise.spread.uniteddeployment.situation import Snapshot
from tests.spread.uniteddeployment.objects import NOW, child, pods, revision_of, united
from tests.support.world import LocalWorld

_NAMESPACE = "default"


def _clones(name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"containers": [{"name": "main", "image": "nginx:1.25"}], "nodeName": "nowhere"}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _spread(name: str, replicas: int) -> dict[str, Any]:
    target = {"apiVersion": CLONE_SETS.api_version, "kind": CLONE_SETS.kind, "name": name}
    subsets = [{"name": "a", "maxReplicas": replicas // 4}, {"name": "b", "maxReplicas": replicas // 2}, {"name": "c"}]
    return {"metadata": {"name": name}, "spec": {"targetRef": target, "subsets": subsets}}


async def _created(client: Client, name: str, count: int) -> float:
    """Pods a second."""
    processes.settle_heap()
    began = time.perf_counter()
    await client.create(CLONE_SETS, _clones(name, count), _NAMESPACE)
    while True:
        found = await client.list(PODS, _NAMESPACE, labels=f"app={name}")
        if len(found.items) >= count:
            return count / (time.perf_counter() - began)
        await asyncio.sleep(0.05)


async def _rates(count: int) -> tuple[float, float]:
    """Without and with a WorkloadSpread."""
    cluster = LocalCluster(ClusterOptions(nodes=0, seed=1), clock=RealClock())
    running = asyncio.create_task(cluster.run())
    await cluster.ready.wait()
    await install(cluster, kinds.features())
    world = LocalWorld(cluster, Options(), kinds.features(), 1)
    world.start_manager()
    await asyncio.sleep(2)
    client = cluster.client("bench")
    await _created(client, "warm", max(count // 10, 10))
    await client.create(WORKLOAD_SPREADS, _spread("spread", count), _NAMESPACE)
    await asyncio.sleep(1)
    without = await _created(client, "plain", count)
    spread = await _created(client, "spread", count)
    found = (await client.get(WORKLOAD_SPREADS, "spread", _NAMESPACE)).status.subset_statuses
    assert all(one.missing_replicas != 0 or one.replicas <= count // 2 for one in found)
    await world.kill_manager()
    running.cancel()
    await asyncio.wait({running})
    return without, spread


def _pass(subsets: int, each: int) -> float:
    """Milliseconds of a decision about so many subsets that are as they should be."""
    subject = united([{"name": f"s{number}"} for number in range(subsets)], replicas=subsets * each)
    children = [child(subject, f"s{number}", each) for number in range(subsets)]
    members = tuple(pod for one in children for pod in pods(one, each))
    snapshot = Snapshot(
        united=subject, clone_sets=tuple(children), pods=members, revisions=(revision_of(subject),), now=NOW
    )
    assert not list(decide(snapshot).actions())
    began = time.perf_counter()
    for _ in range(5):
        decide(snapshot)
    return (time.perf_counter() - began) / 5 * 1000


def measure(scale: float) -> Report:
    count = max(100, int(1000 * scale))
    without, spread = processes.run(_rates(count))
    subsets, each = max(5, int(50 * scale)), 40
    return Report(
        name="spread",
        setting=f"{count} pods of a CloneSet without and with a WorkloadSpread over it, all in one process; a "
        f"UnitedDeployment of {subsets} subsets with {subsets * each} pods",
        rows=(
            Row(what="pods created without", value=without, unit="/s"),
            Row(what="pods created through a WorkloadSpread", value=spread, unit="/s"),
            Row(what="with / without", value=spread / without, at_least=0.5),
            Row(what="a pass over all subsets, nothing to do", value=_pass(subsets, each), unit="ms", below=250),
        ),
    )
