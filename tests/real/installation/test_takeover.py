"""Taking over from OpenKruise, and the way back, on a real control plane that is filled as recordings of OpenKruise
show it. Nodes are simulated; our manager runs outside of the cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.doctor.surveying import survey, way_back
from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.clock import RealClock
from kruise.manager.installation.installer import Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.takeover.carrying import Carrier
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.openkruise import NAMESPACE
from tests.support.openkruise_census import census, changes, installed
from tests.support.openkruise_filled import filled

pytestmark = [pytest.mark.long, pytest.mark.together("takeover")]

GATES = "--feature-gates=ImagePullJobGate=true,ResourceDistributionGate=true"


@pytest.fixture
def cluster() -> Iterator[KruiseCluster]:
    with KruiseCluster(flags=ALONE, installed=False) as cluster:
        yield cluster


async def _take_over(client: Client, cluster: KruiseCluster) -> list[str]:
    said: list[str] = []
    seen = await survey(client, features(), namespace=NAMESPACE, clock=RealClock(), runs=())
    assert seen.obstacles == []
    await Carrier(client, namespace=NAMESPACE, clock=RealClock(), report=said.append, timeout=120).carry_out(seen.steps)
    await asyncio.to_thread(cluster.start_manager, GATES)
    await asyncio.sleep(60)
    return said


async def _go_back(client: Client) -> None:
    _, steps = await way_back(client, features(), namespace=NAMESPACE, clock=RealClock())
    carrier = Carrier(client, namespace=NAMESPACE, clock=RealClock(), report=lambda line: None, timeout=120)
    await carrier.carry_out(steps)


def test_nothing_changes_there_and_back(cluster: KruiseCluster) -> None:
    async def story() -> None:
        async with filled(cluster.kubeconfig, nodes=6) as client:
            objects, before = await census(client), await installed(client)
            await _take_over(client, cluster)
            assert changes(objects, await census(client)) == {}
            await asyncio.to_thread(cluster.stop_manager)
            await _go_back(client)
            assert changes(before, await installed(client)) == {}
            assert changes(objects, await census(client)) == {}
            with pytest.raises(NotFoundError):
                await client.get(CONFIG_MAPS, "kruise-takeover", NAMESPACE)

    asyncio.run(story())


def test_back_from_a_newer_stored_version(cluster: KruiseCluster) -> None:
    async def story() -> None:
        async with filled(cluster.kubeconfig, nodes=6) as client:
            objects = await census(client)
            await _take_over(client, cluster)
            await Installer(client, clock=RealClock(), report=lambda line: None).install(manifests(features()))
            definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "clonesets.apps.kruise.io")
            assert definition.status.stored_versions == ("v1beta1",)
            assert changes(objects, await census(client)) == {}
            await _go_back(client)
            await asyncio.to_thread(cluster.stop_manager)
            definition = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "clonesets.apps.kruise.io")
            assert definition.status.stored_versions == ("v1alpha1",)
            assert changes(objects, await census(client)) == {}

    asyncio.run(story())
