"""Every story on the local cluster and virtual time."""

from __future__ import annotations

import pytest

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from tests.sidecars.terminator.stories import STORIES, job, main, run
from tests.support.world import LocalWorld, run_local


@pytest.mark.parametrize("name", list(STORIES))
def test_story(name: str) -> None:
    run_local(STORIES[name], feature_gates="SidecarTerminator=true")


def test_a_virtual_node_gets_another_image() -> None:
    """JST-10, JST-18, JST-19: no node daemon is asked there, though the container names that way, too."""

    async def scenario(world: LocalWorld) -> None:
        for node in await world.list(NODES):
            body = {"metadata": {"labels": {"type": "virtual-kubelet"}}}
            await world.patch(NODES, node["metadata"]["name"], body)
        names = ("KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE")
        env = [{"name": name, "value": value} for name, value in zip(names, ("true", "ends:1"), strict=True)]
        await run(world, job(main(seconds=5), {"name": "side", "image": "goes-on:1", "env": env}))

        async def images() -> dict[str, str]:
            [pod] = await world.list(PODS, "app=work")
            return {one["name"]: one["image"] for one in pod["spec"]["containers"]}

        await world.sleep(4)
        assert (await images())["side"] == "goes-on:1"

        async def replaced() -> None:
            assert (await images())["side"] == "ends:1"

        await world.until(replaced)
        [pod] = await world.list(PODS, "app=work")
        [note] = await world.events(pod["metadata"]["name"], "SidecarTerminator")
        told = "Kruise SidecarTerminator is trying to terminate sidecar [side] using in-place update"
        assert note["message"] == told
        assert await world.list(REQUESTS) == []

    run_local(scenario, feature_gates="SidecarTerminator=true")
