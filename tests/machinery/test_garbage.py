"""What a pass makes goes with the pass.

Python searches for cycles after so many new containers, and structs are none: a cycle that holds what was worked out of
2,000 pods stays for hundreds of passes, and the memory of a manager is what it once needed.
"""

from __future__ import annotations

import gc
from collections import Counter

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.nodes import NAMESPACES
from tests.support.applied_twice import GATES
from tests.support.every_kind import one_of_each_kind
from tests.support.world import LocalWorld, run_local

OTHER = {"metadata": {"annotations": {"changed": "yes"}}}


def test_no_pass_of_any_kind_leaves_cycles() -> None:
    async def story(world: LocalWorld) -> None:
        gc.collect()
        gc.disable()
        try:
            await one_of_each_kind(world)
            for resource in (CLONE_SETS, STATEFUL_SETS, DAEMON_SETS):
                for workload in await world.list(resource):
                    await world.patch(resource, workload["metadata"]["name"], {"spec": {"template": OTHER}})
            await world.sleep(120)
            found = left_in_cycles()
        finally:
            gc.enable()
        assert not found, f"cycles keep {dict(found)} alive: break them, or Python's collector has to find them"

    run_local(story, feature_gates=GATES)


def test_no_write_that_is_refused_leaves_cycles() -> None:
    """An error knows the frames that it passed. One of them that knows the error holds the plan, and all that it is
    about, and its controller writes again and again."""

    async def story(world: LocalWorld) -> None:
        world.namespace = "short"
        await world.client.create(NAMESPACES, {"metadata": {"name": "short"}})
        gc.collect()
        gc.disable()
        try:
            await one_of_each_kind(world)
            await world.client.delete(NAMESPACES, "short")
            await world.sleep(120)
            samples = [sample for metric in world.manager.registry.collect() for sample in metric.samples]
            writes = [sample for sample in samples if sample.name == "kruise_writes_total"]
            assert sum(write.value for write in writes if write.labels["result"] == "failed") > 20
            found = left_in_cycles()
        finally:
            gc.enable()
        assert not found, f"cycles keep {dict(found)} alive: break them, or Python's collector has to find them"

    run_local(story, feature_gates=GATES)


def left_in_cycles() -> Counter[str]:
    """What of ours is garbage that only the collector finds, by type."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(
            f"{kind.__module__}.{kind.__qualname__}"
            for kind in map(type, gc.garbage)
            if kind.__module__.startswith("kruise.")
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
