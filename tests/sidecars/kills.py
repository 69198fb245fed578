"""A manager that is killed in the middle of something, as stories that a local world and real nodes play alike.

Each one goes on where the first manager was, and no container of an app is started again for it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.pod import PODS
from kruise.inplace.keys import UPDATE_STATE_ANNOTATION
from kruise.sidecars.sidecarset import keys
from tests.sidecars.launch_priority import stories as launching
from tests.sidecars.sidecarset.stories import AGENT, EMPTY, HOT, NEW, OLD, Sidecars, lives, statuses
from tests.sidecars.terminator import stories as ending
from tests.support.world import World

Json = dict[str, Any]
WITHIN = 180.0


@dataclasses.dataclass(frozen=True)
class Scene:
    world: World
    kill: Callable[[], Awaitable[None]]
    """Ends the manager as a crash does."""
    start: Callable[[], Awaitable[None]]
    """Starts the next one."""

    @property
    def sidecars(self) -> Sidecars:
        return Sidecars(self.world, within=WITHIN)


async def pods_are_made_without_a_manager(scene: Scene) -> None:
    """SCS-34, SCS-61: none of them comes without its sidecar, and all of them come."""
    stage = scene.sidecars
    await stage.create()
    await scene.kill()
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], "terminationGracePeriodSeconds": 1},
    }
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await scene.world.client.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec}, scene.world.namespace)
    await scene.world.sleep(3)
    await scene.start()
    await stage.counts(3, 3, 3, 3)
    pods = await scene.world.pods("app=web")
    assert [[item["name"] for item in pod["spec"]["containers"]] for pod in pods] == [["agent", "main"]] * 3


async def a_canary_is_chosen_without_a_manager(scene: Scene) -> None:
    """SCS-62, SCS-90: the label that was given meanwhile counts, and no other pod is touched."""
    stage = scene.sidecars
    await stage.start(3, updateStrategy={"selector": {"matchLabels": {"canary.release": "true"}}, "maxUnavailable": 3})
    before = lives(await scene.world.pods("app=web"))
    await stage.set_image(NEW)
    await stage.counts(3, 0, 3, 0)
    await scene.kill()
    await scene.world.patch(PODS, "web-1", {"metadata": {"labels": {"canary.release": "true"}}})
    await scene.start()
    await stage.counts(3, 1, 3, 1)
    assert await stage.images() == {"web-0": OLD, "web-1": NEW, "web-2": OLD}
    assert lives(await scene.world.pods("app=web")) == before


async def in_the_middle_of_an_upgrade(scene: Scene) -> None:
    """SCS-64, SCS-94: one after the other all the same; each sidecar restarts once, the app runs on."""
    stage = scene.sidecars
    await stage.start(3)
    before = lives(await scene.world.pods("app=web"))
    await stage.set_image(NEW)

    async def began() -> None:
        assert NEW in (await stage.images()).values()

    await scene.world.until(began, within=WITHIN, every=0.02)
    await scene.kill()
    await scene.world.sleep(2)
    assert sorted((await stage.images()).values()) != [NEW] * 3
    await scene.start()
    await stage.counts(3, 3, 3, 3)
    pods = await scene.world.pods("app=web")
    assert lives(pods) == before
    assert [statuses(pod)["agent"]["restartCount"] for pod in pods] == [1, 1, 1]


async def in_the_middle_of_a_hot_upgrade(scene: Scene) -> None:
    """SCS-110, SCS-111: both containers run until the next manager lets the old one rest."""
    stage = scene.sidecars
    await stage.start(1, containers=[{**AGENT, "upgradeStrategy": HOT}])
    before = lives(await scene.world.pods("app=web"))
    await stage.set_image(NEW)

    async def written() -> None:
        assert NEW in (await stage.images("agent-2")).values()

    await scene.world.until(written, within=WITHIN, every=0.02)
    await scene.kill()
    await scene.world.sleep(5)
    assert (await stage.images("agent-1"), await stage.images("agent-2")) == ({"web-0": OLD}, {"web-0": NEW})
    await scene.start()
    await stage.counts(1, 1, 1, 1)
    pod = await scene.world.get(PODS, "web-0")
    images = {item["name"]: item["image"] for item in pod["spec"]["containers"]}
    working = json.loads(pod["metadata"]["annotations"][keys.WORKING])["agent"]
    assert (images["agent-1"], images["agent-2"], working) == (EMPTY, NEW, "agent-2")
    assert lives([pod]) == before


async def in_the_middle_of_a_start(scene: Scene) -> None:
    """CLP-2, CLP-13, CLP-14: what may not start yet waits for the next manager."""
    world = scene.world
    await world.create(launching.pod(launching.container("main"), launching.container("side", "10", ready_after=4)))

    async def first_level() -> None:
        assert await launching.keys(world, "p") == ["p_10"]

    await world.until(first_level, within=WITHIN)
    await scene.kill()
    await world.sleep(10)  # it is ready now, and nobody opens the next level
    assert await launching.keys(world, "p") == ["p_10"]
    await scene.start()
    found = await launching.ready(world, "p")
    times = launching.started(found)
    assert times["side"] < times["main"]
    assert all(status["restartCount"] == 0 for status in found["status"]["containerStatuses"])
    await launching.marked(world, "p")


async def when_a_job_ends(scene: Scene) -> None:
    """JST-4, JST-13: the sidecar runs on until there is a manager, then the Job ends."""
    world = scene.world
    await ending.run(world, ending.job(ending.main(seconds=5), ending.sidecar()))

    async def running() -> None:
        assert await ending.phases(world) == ["Running"]

    await world.until(running, within=WITHIN)
    await scene.kill()

    async def done() -> None:
        [pod] = await world.list(PODS, "app=work")
        assert "terminated" in statuses(pod)["main"]["state"]

    await world.until(done, within=WITHIN)
    await world.sleep(2)
    assert await ending.phases(world) == ["Running"]
    await scene.start()
    await ending.ended(world, "Complete")


async def between_two_batches(scene: Scene) -> None:
    """CLP-18: a CloneSet whose containers have priorities is updated in two batches, the sidecar first, whoever the
    manager is."""
    world = scene.world
    await world.create(batches("... config v1 ...", "nginx:1.25"))

    async def made() -> Json:
        found = await world.pods("app=batches")
        assert len(found) == 1
        return await launching.ready(world, found[0]["metadata"]["name"])

    before = await world.until(made, within=WITHIN)
    await launching.marked(world, before["metadata"]["name"])
    changed = batches("... config v2 ...", "nginx:1.26")
    await world.patch(CLONE_SETS, "batches", {"spec": {"template": changed["spec"]["template"]}})

    async def first_batch() -> None:
        [pod] = await world.pods("app=batches")
        state = json.loads(pod["metadata"]["annotations"].get(UPDATE_STATE_ANNOTATION, "{}"))
        assert state.get("nextContainerImages") == {"main": "nginx:1.26"}
        assert state["preCheckBeforeNext"] == {"containersRequiredReady": ["sidecar"]}
        assert [one["containers"] for one in state["containerBatchesRecord"]] == [["sidecar"]]

    await world.until(first_batch, within=WITHIN, every=0.02)
    await scene.kill()
    await scene.start()

    async def second_batch() -> None:
        [pod] = await world.pods("app=batches")
        state = json.loads(pod["metadata"]["annotations"][UPDATE_STATE_ANNOTATION])
        assert [one["containers"] for one in state["containerBatchesRecord"]] == [["sidecar"], ["main"]]
        assert "nextContainerImages" not in state
        told = statuses(pod)
        assert [told[name]["restartCount"] for name in ("sidecar", "main")] == [1, 1]
        assert told["sidecar"]["state"]["running"]["startedAt"] <= told["main"]["state"]["running"]["startedAt"]

    await world.until(second_batch, within=WITHIN)
    [after] = await world.pods("app=batches")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


def batches(config: str, image: str) -> Json:
    """The example of the founding document, with an image and a command that run."""
    config_from = {"fieldRef": {"fieldPath": "metadata.annotations['app-config']"}}
    sidecar = {
        "name": "sidecar",
        "image": OLD,
        "command": launching.LONG,
        "env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "10"}, {"name": "APP_CONFIG", "valueFrom": config_from}],
    }
    template = {
        "metadata": {"labels": {"app": "batches"}, "annotations": {"app-config": config}},
        "spec": {"containers": [sidecar, {"name": "main", "image": image}], "terminationGracePeriodSeconds": 1},
    }
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "batches"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "batches"}},
            "template": template,
            "updateStrategy": {"type": "InPlaceIfPossible"},
        },
    }


Story = Callable[[Scene], Awaitable[None]]
STORIES: dict[str, Story] = {
    story.__name__: story
    for story in (
        pods_are_made_without_a_manager,
        a_canary_is_chosen_without_a_manager,
        in_the_middle_of_an_upgrade,
        in_the_middle_of_a_hot_upgrade,
        in_the_middle_of_a_start,
        when_a_job_ends,
        between_two_batches,
    )
}
