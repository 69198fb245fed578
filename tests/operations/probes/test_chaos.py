"""The manager killed again and again, and daemons that stop: probes go on, and nothing of a pod that is gone stays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kruise.api.apps.probes import NODE_POD_PROBES, POD_PROBE_MARKERS
from kruise.api.native.pod import PODS
from tests.scenarios.probing import ProbeStage, exec_probe
from tests.support.dying_both import dies_at_every_write, in_a_storm_of_both, insist
from tests.support.storms import Witness
from tests.support.world import Json, LocalWorld, run_local

KINDS = ("podprobemarker", "nodepodprobe", "readiness")


def test_a_killed_manager_goes_on() -> None:
    """PPM-23, NPP-3: all state is in the objects."""

    async def story(world: LocalWorld) -> None:
        stage = ProbeStage(world, gates=world.options.gates)
        await stage.start(replicas=2)
        await stage.mark(probe=exec_probe("echo fine"))
        for _ in range(6):
            await world.sleep(0.4)
            await world.kill_manager()
            world.start_manager()
        await stage.all_are("True", "fine\n")
        await stage.scale(1)
        await world.kill_manager()
        await world.sleep(3)
        world.start_manager()
        await stage.complete()

        async def one_is_told_of() -> None:
            assert len(await stage.entries()) == 1

        await stage.until(one_is_told_of)

    run_local(story)


def test_a_daemon_that_stops_takes_nothing_back() -> None:
    """DMN-98: what it reported stands, and it goes on when it is back."""

    async def story(world: LocalWorld) -> None:
        stage = ProbeStage(world, gates=world.options.gates)
        [pod] = await stage.start(replicas=1)
        await stage.mark(probe=exec_probe("echo fine"))
        await stage.all_are("True", "fine\n")
        world.cluster.nodes.stop_daemon(pod["spec"]["nodeName"])
        await world.sleep(30)
        assert await stage.conditions() == [("True", "fine\n")]
        world.cluster.nodes.start_daemon(pod["spec"]["nodeName"])
        await world.sleep(30)
        assert await stage.conditions() == [("True", "fine\n")]

    run_local(story)


def _pod(name: str, says: str) -> Json:
    marks = {"sim.kruise.io/exec": f"0 {says}"}
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "nginx:1.27"}]}
    metadata = {"name": name, "labels": {"app": "p"}, "annotations": marks}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def one_comes_back(world: LocalWorld, within: float = 120.0) -> None:
    """Two pods are probed; one goes, and another of its name comes, which says something else."""
    own: dict[str, str] = {}
    """What each pod says, by uid."""

    def of_nodes(kind: str, found: Json) -> None:
        for entry in found.get("status", {}).get("podProbeStatuses", ()):
            for state in entry.get("probeStates", ()):
                told = state.get("message", "")
                assert told in ("", own.get(entry["uid"], told)), f"{entry['name']} was told of by another's {told!r}"

    def of_pods(kind: str, found: Json) -> None:
        own[found["metadata"]["uid"]] = found["metadata"]["annotations"]["sim.kruise.io/exec"].partition(" ")[2] + "\n"
        for one in found.get("status", {}).get("conditions", ()):
            if one["type"] == "game.io/idle":
                assert one.get("message", "") in ("", own[found["metadata"]["uid"]]), "another pod's result"

    async def all_say(*words: str) -> None:
        async def look() -> None:
            found = await world.list(PODS)
            told = [
                [one.get("message") for one in pod["status"].get("conditions", ()) if one["type"] == "game.io/idle"]
                for pod in found
            ]
            assert told == [[f"{word}\n"] for word in words], told
            assert all(pod["metadata"]["labels"].get("idle") == "yes" for pod in found)

        await world.until(look, within=within)

    async with Witness(world, PODS, of_pods), Witness(world, NODE_POD_PROBES, of_nodes):
        await insist(world, lambda: world.create(_pod("p0", "first")))
        await insist(world, lambda: world.create(_pod("p1", "other")))
        marker = {
            "apiVersion": POD_PROBE_MARKERS.api_version,
            "kind": "PodProbeMarker",
            "metadata": {"name": "m"},
            "spec": {
                "selector": {"matchLabels": {"app": "p"}},
                "probes": [
                    {
                        "name": "idle",
                        "containerName": "main",
                        "probe": {"exec": {"command": ["ask"]}, "periodSeconds": 1},
                        "podConditionType": "game.io/idle",
                        "markerPolicy": [{"state": "Succeeded", "labels": {"idle": "yes"}}],
                    }
                ],
            },
        }
        await insist(world, lambda: world.create(marker))
        await all_say("first", "other")
        await insist(world, lambda: world.delete(PODS, "p0"))

        async def gone() -> None:
            assert [pod["metadata"]["name"] for pod in await world.list(PODS)] == ["p1"]

        await world.until(gone, within=within)
        await insist(world, lambda: world.create(_pod("p0", "second")))
        await all_say("second", "other")
        await insist(world, lambda: world.delete(POD_PROBE_MARKERS, "m"))

        async def nobody_is_probed() -> None:
            assert not await world.list(POD_PROBE_MARKERS)
            for found in await world.list(NODE_POD_PROBES):
                assert not found["spec"].get("podProbes")
                assert not found.get("status", {}).get("podProbeStatuses")

        await world.until(nobody_is_probed, within=within)
        await asyncio.sleep(2)


def test_either_may_die_at_every_write() -> None:
    """PPM-23, NPP-3, NPP-10, PRB-1, DMN-98: no result is written for another pod's uid, whoever dies when."""
    manager, daemon = dies_at_every_write(one_comes_back, kinds=KINDS, nodes=1)
    assert manager > 6
    assert daemon > 3


@pytest.mark.parametrize("seed", range(4))
def test_a_storm(seed: int) -> None:
    """NPP-3, PRB-1."""

    async def patient(world: LocalWorld) -> None:
        await one_comes_back(world, within=900.0)

    assert in_a_storm_of_both(patient, kinds=KINDS, nodes=1, seed=seed, rate=0.15) >= 3
