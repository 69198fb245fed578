"""An autoscaler of Kubernetes over a UnitedDeployment: the real one, on a real control plane."""

from __future__ import annotations

import asyncio
import json

import pytest

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.machinery.client.requests import Request, Verb
from tests.scenarios.stage import Pace
from tests.scenarios.united import UnitedStage
from tests.support.kruisecluster import ALONE, KruiseCluster

AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True, PartialObject)
PACE = Pace(seconds=3, calm=3.0, within=120.0, every=0.3, slack=10.0)


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_an_autoscaler_keeps_a_uniteddeployment_within_its_bounds(version: str) -> None:
    """UD-87: without metrics it keeps the number, unless that is below its minimum or above its maximum."""

    async def scenario(cluster: KruiseCluster) -> None:
        async with cluster.world("autoscaled") as world:
            stage = UnitedStage(world, gates={}, pace=PACE)
            await stage.label_nodes()
            await stage.create(subsets=[stage.subset("a", replicas="50%"), stage.subset("b")], replicas=2)
            await stage.settles({"a": 1, "b": 1})
            target = {"apiVersion": f"apps.kruise.io/{version}", "kind": "UnitedDeployment", "name": "web"}
            autoscaler = {
                "apiVersion": "autoscaling/v2",
                "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"},
                "spec": {"scaleTargetRef": target, "minReplicas": 4, "maxReplicas": 6},
            }
            body = json.dumps(autoscaler).encode()
            await world.client.send(Request(Verb.CREATE, AUTOSCALERS, world.namespace, body=body))
            await stage.settles({"a": 2, "b": 2})
            await stage.scale(8)
            await stage.settles({"a": 3, "b": 3})

    with KruiseCluster(nodes=3, flags=ALONE) as cluster:
        cluster.plane.create_namespace("autoscaled")
        asyncio.run(scenario(cluster))
