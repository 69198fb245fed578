"""Every scenario on the local cluster and virtual time, with the product's gates but for those that it asks for.

`test_scenarios_everything_on` plays them once more with all gates on.
"""

from __future__ import annotations

import dataclasses

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.manager import gates
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import ANNOTATION
from tests.scenarios.all import SCENARIOS
from tests.scenarios.local import play_locally
from tests.scenarios.settings import EVERYTHING_ON, settings_for
from tests.scenarios.stage import Stage, hash_in, names, restarts_of, uids
from tests.support.world import Json, LocalWorld, run_local

GATES = (
    "CloneSetShortHash",
    "CloneSetPartitionRollback",
    "PreparingUpdateAsUpdate",
    "RecreatePodWhenChangeVCTInCloneSetGate",
    "InPlaceWorkloadVerticalScaling",
    "PreDownloadImageForInPlaceUpdate",
    "TemplateNoDefaults",
    "DefaultHostNetworkHostPortsInPodTemplates",
    "InPlaceUpdateEnvFromMetadata",
    "CloneSetEventHandlerOptimization",
    "KruisePodReadinessGate",
)
"""The gates that concern CloneSets."""


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario(name: str) -> None:
    play_locally(SCENARIOS[name], SCENARIOS[name].gates)


@pytest.mark.parametrize("gate", GATES)
def test_each_gate_is_played_on_and_off(gate: str) -> None:
    played = [scenario.gates for scenario in SCENARIOS.values()]
    played += [{**EVERYTHING_ON, **scenario.gates} for scenario in SCENARIOS.values()]
    assert {gates.resolve(chosen)[gate] for chosen in played} == {True, False}


def test_every_scenario_suits_a_setting_of_the_real_runs() -> None:
    assert all(settings_for(scenario) for scenario in SCENARIOS.values())


def test_pods_keep_their_revision_when_the_short_hash_gate_changes() -> None:
    """Labels of both forms mean the same revision (IPU-20, CS-150): a restart with the other gate touches no pod."""

    async def play(world: LocalWorld) -> None:
        stage = Stage(world, gates=world.options.gates)
        before = await stage.start(replicas=2)
        for value in (True, False):
            await world.stop_manager()
            chosen = gates.resolve({"CloneSetShortHash": value})
            world.options = dataclasses.replace(world.options, gates=chosen)
            world.start_manager()

            async def nothing_restarts(before: list[Json] = before) -> None:
                pods = await stage.pods()
                assert uids(pods) == uids(before)
                assert {restarts_of(pod)["main"] for pod in pods} == {0}
                assert (await stage.status())["updatedReplicas"] == 2

            await stage.stays(nothing_restarts)
            await stage.scale(3)
            pods = await stage.complete()
            [added] = [pod for pod in pods if pod["metadata"]["name"] not in uids(before)]
            revision = (await stage.status())["updateRevision"]
            assert added["metadata"]["labels"][keys.REVISION_LABEL] == (hash_in(revision) if value else revision)
            await stage.change({"replicas": 2, "scaleStrategy": {"podsToDelete": [added["metadata"]["name"]]}})
            before = await stage.complete()
        await stage.set_image("nginx:1.26")
        assert uids(await stage.complete()) == uids(before)

    run_local(play)


def test_a_rollout_that_went_back_stays_back_after_a_restart() -> None:
    """No pod shows any more that it had failed, and the words of the condition are not what is remembered."""

    async def play(world: LocalWorld) -> None:
        stage = Stage(world, gates=world.options.gates)
        asked = {"annotations": {ANNOTATION: "0:rollback"}}
        await stage.start(replicas=3, metadata=asked, rolling={"maxUnavailable": 2})
        await stage.set_image("nginx:missing")
        await stage.has_event(FAILURE_BUDGET, "failed at revision", type="Warning")
        status = await stage.reaches(updatedReplicas=0, availableReplicas=3)
        assert status["failureBudget"]["revision"] == status["updateRevision"]
        [told] = [item for item in status["conditions"] if item["type"] == FAILURE_BUDGET]
        await world.stop_manager()
        reworded = {"status": {"conditions": [{**told, "message": "it went wrong"}]}}
        await world.patch(CLONE_SETS, "web", reworded, subresource="status")
        world.start_manager()

        async def nobody_goes_there() -> None:
            now = await stage.status()
            assert (now["updatedReplicas"], now["failureBudget"]) == (0, status["failureBudget"])
            assert FAILURE_BUDGET in {item["type"] for item in now["conditions"]}

        await stage.stays(nobody_goes_there)
        await stage.set_image("nginx:1.26")
        await stage.complete()
        assert "failureBudget" not in await stage.status()

    run_local(play)


def test_terminating_pods_count_as_deleted_after_a_restart() -> None:
    """A manager that starts while pods are on their way out makes their successors, and no more (CS-60, IPU-110)."""

    async def play(world: LocalWorld) -> None:
        stage = Stage(world, gates=world.options.gates)
        slow = {"sim.kruise.io/stop-seconds": "25"}
        before = names(await stage.start(replicas=3, annotations=slow))
        await world.kill_manager()
        for name in before[:2]:
            await stage.delete_pod(name)
        world.start_manager()

        async def successors_are_there() -> None:
            pods = await stage.pods()
            assert not set(before[:2]) & set(names(pods))
            assert len(pods) == 3

        await stage.until(successors_are_there)
        assert len(await world.list(PODS)) == 5
        await stage.complete()
        for name in before[:2]:
            await stage.is_gone(PODS, name)
        assert len(await stage.pods()) == 3

    run_local(play)
