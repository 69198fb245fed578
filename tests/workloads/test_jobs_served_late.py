"""Jobs whose kind nobody serves yet when the manager starts."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.resource import Resource
from kruise.embedded import install
from kruise.kinds import features
from kruise.machinery.client.errors import NotFoundError
from tests.support.world import Json, LocalWorld, run_local
from tests.workloads.advancedcronjob.test_local import cron, on_each_node
from tests.workloads.broadcastjob.test_local import job
from tests.workloads.ephemeraljob.modelled import document

FEATURES = {feature.name: feature for feature in features()}


def debug(name: str) -> Json:
    return {**document(), "metadata": {"name": name}}


BROADCAST = (BROADCAST_JOBS, job("late", version="v1beta1"))
CRON = (ADVANCED_CRON_JOBS, cron("late", on_each_node("true"), version="v1beta1", schedule="@every 10s"))
DEBUG = (EPHEMERAL_JOBS, debug("late"))


@pytest.mark.parametrize(
    ("late", "other"), [(BROADCAST, DEBUG), (CRON, BROADCAST), (DEBUG, BROADCAST)], ids=lambda one: one[0].kind
)
def test_a_kind_that_is_served_later(late: tuple[Resource[Any], Json], other: tuple[Resource[Any], Json]) -> None:
    """BJ-74, ACJ-84, EJ-62: until then other kinds are looked after, and then it is, too."""

    async def story(world: LocalWorld) -> None:
        world.features = tuple(FEATURES.values())
        world.start_manager()
        await looked_after(world, *other)
        with pytest.raises(NotFoundError):
            await world.create(late[1])
        await install(world.cluster, world.features)
        await looked_after(world, *late)
        assert world.manager_is_running

    served = [feature for name, feature in FEATURES.items() if name != late[0].kind.lower()]
    run_local(story, start=False, nodes=1, features=served)


async def looked_after(world: LocalWorld, resource: Resource[Any], manifest: Json) -> None:
    await world.create(manifest)

    async def has_status() -> None:
        assert (await world.get(resource, "late")).get("status")

    await world.until(has_status, within=90)
