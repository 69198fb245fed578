"""The manager killed again and again, and daemons that stop: probes go on, and nothing of a pod that is gone stays."""

from __future__ import annotations

from tests.scenarios.probing import ProbeStage, exec_probe
from tests.support.world import LocalWorld, run_local


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
