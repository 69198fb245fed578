"""A manager in the process of a local cluster, on virtual time: the toy kind from admission to running pods."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.embedded import install, managing
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.errors import InvalidError
from kruise.machinery.clock import VirtualClock, run_virtual
from tests.support import toymanager
from tests.toy.decide import TROUPES


def test_a_kind_is_defaulted_refused_created_and_updated_without_sockets() -> None:
    async def main() -> None:
        cluster = LocalCluster(ClusterOptions(seed=1), clock=VirtualClock(asyncio.get_running_loop()))
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await install(cluster, [toymanager.TOY])
        client = cluster.client("test")

        async def one_pod() -> Pod:
            [pod] = (await client.list(PODS, "default")).items
            return pod

        head = {"apiVersion": TROUPES.api_version, "kind": "Troupe"}
        async with managing(cluster, [toymanager.TOY], random=Random(1)) as manager:
            await asyncio.sleep(1)
            with pytest.raises(InvalidError, match=r"spec\.image"):
                await client.create(TROUPES, {**head, "metadata": {"name": "nobody"}}, "default")
            band = {**head, "metadata": {"name": "band"}, "spec": {"image": "nginx:1.25"}}
            created = await client.create(TROUPES, band, "default")
            assert created.spec.replicas == 1
            await asyncio.sleep(30)
            before = await one_pod()
            assert is_ready(before)
            await client.patch(TROUPES, "band", {"spec": {"image": "nginx:1.26"}}, "default")
            await asyncio.sleep(30)
            after = await one_pod()
            assert is_ready(after)
            assert (after.metadata.uid, after.status.container_statuses[0].restart_count) == (before.metadata.uid, 1)
            assert manager.journal.entries("toy-controller")
        running.cancel()

    run_virtual(main())
