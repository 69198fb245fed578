"""What a workload's pods cost: two writes for one that is made, three for one that is updated in place.

The API takes its time, so that passes, pods and writes overlap as they do on a real cluster; `bench sets` counts there.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import PatchType, Request
from kruise.machinery.client.transport import Response
from tests.support.world import Json, LocalWorld, run_local

PODS_WANTED = 40
_LABELS = {"app": "web"}
_SPECS: Mapping[str, tuple[Resource[Any], Json]] = {
    "CloneSet": (
        CLONE_SETS,
        {
            "replicas": PODS_WANTED,
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}},
        },
    ),
    "StatefulSet": (
        STATEFUL_SETS,
        {
            "replicas": PODS_WANTED,
            "serviceName": "web",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}},
        },
    ),
    "DaemonSet": (
        DAEMON_SETS,
        {"updateStrategy": {"rollingUpdate": {"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"}}},
    ),
}


class Slow(InProcessTransport):
    """Requests take 0.2 to 0.4 s, and writes to pods are counted."""

    def __init__(self, core: ApiCore) -> None:
        super().__init__(core)
        self.writes: Counter[str] = Counter()
        self._random = random.Random(1)

    async def send(self, request: Request) -> Response:
        if request.resource == PODS and request.verb.writes:
            self.writes[f"{request.verb} {request.subresource}".strip()] += 1
        await asyncio.sleep(self._random.uniform(0.2, 0.4))
        return await super().send(request)


def _manifest(resource: Resource[Any], spec: Json) -> Json:
    containers = [{"name": "main", "image": "nginx:1.25"}]
    pod = {"containers": containers, "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}
    template = {"metadata": {"labels": _LABELS}, "spec": pod}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": _LABELS}, "template": template, **spec},
    }


@pytest.mark.parametrize("kind", _SPECS)
def test_writes_for_each_pod(kind: str) -> None:
    resource, spec = _SPECS[kind]

    async def play(world: LocalWorld) -> None:
        slow = Slow(world.cluster.core)
        world.start_manager(slow)
        await asyncio.sleep(30)  # it serves by then

        async def settled(image: str) -> Counter[str]:
            async def check() -> None:
                pods = await world.pods("app=web")
                assert len(pods) == PODS_WANTED
                for pod in pods:
                    ready = [item for item in pod["status"]["conditions"] if item["type"] == "Ready"]
                    assert ready[0]["status"] == "True"
                    assert pod["status"]["containerStatuses"][0]["image"].endswith(image)

            await world.until(check, within=300)
            await asyncio.sleep(60)
            counted, slow.writes = slow.writes, Counter()
            return counted

        await world.create(_manifest(resource, spec))
        assert await settled("nginx:1.25") == {"create": PODS_WANTED, "patch status": PODS_WANTED}
        change = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]
        await world.patch(resource, "web", change, patch_type=PatchType.JSON)
        assert await settled("nginx:1.26") == {"patch status": 2 * PODS_WANTED, "patch": PODS_WANTED}

    run_local(play, nodes=PODS_WANTED, start=False)
