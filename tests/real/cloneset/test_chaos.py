"""Rollouts on a real control plane while managers are killed, frozen and replaced, and the API server restarts.

The nodes are simulated. The stories and the promises are those of the local chaos tests.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator

import pytest

from kruise.api.native.events import LEASES
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from tests.support.background import in_background
from tests.support.kruisecluster import SHORT_LEASE, KruiseCluster
from tests.workloads.cloneset.chaos import NEW_IMAGE, OLD_IMAGE, STORIES, Stage, Witness

pytestmark = pytest.mark.long

Moment = Callable[[Pod], bool]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    with KruiseCluster(flags=SHORT_LEASE) as started:
        yield started


def _state(pod: Pod) -> str:
    return pod.metadata.labels.get(keys.STATE_LABEL, "")


def _image(pod: Pod) -> str:
    return pod.spec.containers[0].image


def _is_out_of_service(pod: Pod) -> bool:
    return any(item.type == keys.IN_PLACE_READY and item.status == "False" for item in pod.status.conditions)


PLACES: dict[str, tuple[str, Moment]] = {
    "the first pod was created": ("grow", lambda pod: True),
    "a pod is out of service and not changed yet": (
        "in place",
        lambda pod: _is_out_of_service(pod) and _image(pod) == OLD_IMAGE,
    ),
    "a pod was changed and is not back yet": (
        "in place",
        lambda pod: _image(pod) == NEW_IMAGE and _state(pod) == "Updating",
    ),
    "a pod is marked to be replaced": ("recreate", lambda pod: keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels),
    "a pod waits for its hook before it is deleted": ("hooks", lambda pod: _state(pod) == "PreparingDelete"),
}


async def _tell(
    cluster: KruiseCluster, story: str, namespace: str, moment: Moment, disturb: Callable[[], Awaitable[None]]
) -> None:
    """Tell a story and disturb it once, at the first sight of a pod in the given state."""
    cluster.plane.create_namespace(namespace)
    async with cluster.world(namespace) as world, Witness(world).watching() as witness:
        disturbing: list[asyncio.Task[None]] = []

        def look(pod: Pod) -> None:
            if not disturbing and moment(pod):
                disturbing.append(asyncio.create_task(_run(disturb)))

        witness.on_pod = look
        await STORIES[story](world, Stage(witness, claims=False))
        assert disturbing, "the moment did not come"
        await disturbing[0]
    assert witness.seen > 5


async def _keep_manager(cluster: KruiseCluster) -> None:
    """As whoever runs it does: it ends when it is killed, and when it loses its lease, as on a machine that is busy."""
    while True:
        await asyncio.to_thread(cluster.keep_manager)
        await asyncio.sleep(0.5)


async def _run(disturb: Callable[[], Awaitable[None]]) -> None:
    await disturb()


@pytest.mark.parametrize("place", PLACES)
async def test_the_manager_is_killed_and_another_one_finishes(cluster: KruiseCluster, place: str) -> None:
    story, moment = PLACES[place]

    async def disturb() -> None:
        cluster.kill_manager()

    async with in_background(_keep_manager(cluster)):
        await _tell(cluster, story, f"killed-{list(PLACES).index(place)}", moment, disturb)


async def test_the_api_server_restarts_in_the_middle(cluster: KruiseCluster) -> None:
    """The manager lives on, or is started again: if it loses its lease meanwhile, it ends when it notices."""

    async def disturb() -> None:
        await asyncio.to_thread(cluster.plane.restart_apiserver)

    async with in_background(_keep_manager(cluster)):
        await _tell(cluster, "in place", "restarted", PLACES["a pod was changed and is not back yet"][1], disturb)


@pytest.fixture
def pair() -> Iterator[tuple[KruiseCluster, KruiseCluster]]:
    """A cluster of its own with two managers: one leads, the other waits for its turn."""
    with KruiseCluster(flags=SHORT_LEASE) as leader, KruiseCluster(leader.plane, flags=SHORT_LEASE) as follower:
        yield leader, follower


@pytest.mark.parametrize("frozen", [False, True], ids=["the leader is killed", "the leader freezes and comes back"])
async def test_another_manager_takes_over(pair: tuple[KruiseCluster, KruiseCluster], frozen: bool) -> None:
    """A leader that was frozen must not go on where it stopped: by then somebody else leads."""
    cluster, follower = pair

    async def disturb() -> None:
        if not frozen:
            cluster.kill_manager()
            return
        os.kill(cluster.manager_pid, signal.SIGSTOP)
        await asyncio.sleep(8)
        os.kill(cluster.manager_pid, signal.SIGCONT)

    before = await _leader(cluster)
    moment = PLACES["a pod is out of service and not changed yet"][1]
    await _tell(cluster, "in place", "frozen" if frozen else "succeeded", moment, disturb)
    assert await _leader(cluster) != before
    assert follower.manager_is_running
    assert await _generation(cluster) <= 4, "managers at two addresses register in turns"


async def _generation(cluster: KruiseCluster) -> int:
    """How often the kind was set up: each change of its conversion makes the API server begin anew with it."""
    async with cluster.world("default") as world:
        return (await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "clonesets.apps.kruise.io")).metadata.generation


async def _leader(cluster: KruiseCluster) -> str:
    async with cluster.world("default") as world:
        lease = await world.client.get(LEASES, "kruise-manager", "kruise-system")
    return lease.spec.holder_identity
