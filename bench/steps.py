"""Single steps that the loop waits for, each beside other work of the same run: machines differ, ratios hardly do."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable
from datetime import timedelta

from bench.pods import stored_pod
from bench.report import Report, Row
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.availability import is_available, is_update_ready
from kruise.local.crds.schema import Schema
from kruise.local.scheduler import specs
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import decode, encode
from kruise.machinery.digest import digest
from kruise.workloads.cloneset.deletion_order import HOST_NAME, choose_for_deletion
from kruise.workloads.cloneset.numbers import ScaleNumbers
from kruise.workloads.shared.pod_facts import PodFacts
from tests.local.crds.spelled_out import workload
from tests.local.workloads import bodies
from tests.local.workloads.world import World
from tests.support.pods import NOW, make_pod

ROUNDS = 5
ZONE = "topology.kubernetes.io/zone"
NODES = 200


def _seconds(work: Callable[[], object]) -> float:
    """Of this process; the best of a few, since this is about our work and not about what else the machine does."""
    taken = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def _digest(count: int) -> tuple[float, float]:
    """Seconds for the digest of a snapshot's pods, and for encoding them once."""
    pods = tuple(decode(encode(stored_pod(number, str(number + 1))), Pod) for number in range(count))
    return _seconds(lambda: digest(pods)), _seconds(lambda: [encode(pod) for pod in pods])


def _fact(number: int) -> PodFacts:
    pod = make_pod(
        f"p{number}",
        node=f"n{number % NODES}",
        ready_since=NOW - timedelta(seconds=number % 97),
        created=NOW - timedelta(seconds=number % 89),
        restarts=(number % 3,),
    )
    return PodFacts(
        pod=pod,
        name=pod.metadata.name,
        state="",
        is_new=True,
        is_available=is_available(pod, 0, NOW),
        is_ready=is_update_ready(pod, 0, NOW),
        is_specified=False,
        is_preparing_delete=False,
    )


def _deletion_order(count: int) -> float:
    """Seconds for the choice of half of the pods, spread over zones and hosts."""
    labels = {f"n{number}": {ZONE: f"z{number % 3}", HOST_NAME: f"n{number}"} for number in range(NODES)}
    facts = [_fact(number) for number in range(count)]
    numbers = ScaleNumbers(down=count // 2)
    return _seconds(lambda: choose_for_deletion(facts, numbers, topologies=(ZONE, HOST_NAME), node_labels=labels))


def _schema(count: int) -> tuple[float, float]:
    """Seconds to prune, default and validate an object of a few kilobytes so often, and to copy it."""
    source, obj = workload()
    schema = Schema(source)
    numbers = range(count)
    checked = _seconds(lambda: [schema.problems(schema.shape(obj), None) for _ in numbers])
    return checked, _seconds(lambda: [copy.deepcopy(obj) for _ in numbers])


def _scheduling(count: int) -> float:
    """Seconds of the local cluster's scheduler for so many pods on as many nodes as always."""

    async def main() -> float:
        world = World(specs)
        async with world.running():
            await world.add_nodes(NODES)
            for number in range(count):
                await world.create(PODS, bodies.pod(f"p{number}", node=""))
            began = time.process_time()
            await asyncio.sleep(10)
            taken = time.process_time() - began
            if any(not pod.spec.node_name for pod in (await world.pods()).values()):
                raise RuntimeError("not all pods are scheduled: this is not what was to be measured")
        return taken

    return run_virtual(main())


def measure(scale: float) -> Report:
    many, fewer = max(1000, int(10_000 * scale)), max(500, int(5_000 * scale))
    waiting = max(100, int(400 * scale))
    digested, encoded = _digest(many)
    chosen, chosen_of_half = _deletion_order(many), _deletion_order(fewer)
    objects = max(300, int(3_000 * scale))
    checked, copied = _schema(objects)
    scheduled, scheduled_half = _scheduling(waiting), _scheduling(waiting // 2)
    rows = (
        Row(what=f"digest of {many} pods", value=digested * 1e6 / many, unit="us per pod"),
        Row(what="  of what encoding them takes", value=digested / encoded, below=0.2),
        Row(what=f"deletion order of {many} pods", value=chosen * 1000, unit="ms"),
        Row(what="  of half as many: times", value=chosen / chosen_of_half, below=3),
        Row(what="schema of an object of a few KB", value=checked * 1e6 / objects, unit="us"),
        Row(what="  beside copying it: times", value=checked / copied, below=4.5),
        Row(what=f"scheduling {waiting} pods on {NODES} nodes", value=scheduled * 1000, unit="ms"),
        Row(what="  of half as many: times", value=scheduled / scheduled_half, below=3),
    )
    return Report(
        name="steps", setting=f"in process, the best of {ROUNDS}; twice the work takes about twice as long", rows=rows
    )
