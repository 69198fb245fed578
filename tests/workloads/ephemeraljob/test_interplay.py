"""EphemeralJobs beside other kinds, on the local cluster and virtual time."""

from __future__ import annotations

from kruise.api.apps.containerrecreaterequest import REQUESTS
from tests.operations.recreate.scenes import request
from tests.scenarios.ephemeral import ENDLESS, EphemeralStage
from tests.support.world import Json, LocalWorld, run_local


def test_a_container_is_recreated_beside_one_of_a_job() -> None:
    """EJ-65: the request succeeds, and the ephemeral container is not touched."""

    async def story(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        [pod] = await stage.start(replicas=1)
        await stage.begin(command=ENDLESS)
        await stage.counts(running=1)
        [before] = await stage.served()
        await world.create(request("main", pod=pod["metadata"]["name"]))

        async def done() -> Json:
            found = await world.get(REQUESTS, "r")
            states = found.get("status", {}).get("containerRecreateStates", [])
            assert [one["phase"] for one in states] == ["Succeeded"], found.get("status")
            return found

        await world.until(done, within=120)
        [after] = await stage.served()
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 1
        assert after["status"]["ephemeralContainerStatuses"] == before["status"]["ephemeralContainerStatuses"]
        assert (await stage.status())["running"] == 1

    run_local(story, nodes=1)
