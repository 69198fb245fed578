"""StatefulSets and DaemonSets: the same stories on a real control plane and on the local cluster's controllers
(`tests.local.workloads.sides`), end states compared."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.local import scheduler, storage_binding, workloads
from kruise.local.storage_binding.objects import CLAIMS
from kruise.local.workloads.objects import DAEMON_SETS, STATEFUL_SETS
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import RealClock
from tests.local.workloads import bodies
from tests.local.workloads.sides import NODE_COUNT, Side, both, only_first_image, quick, real_plane
from tests.local.workloads.world import Controllers, Habits, Kubelet, node
from tests.support.background import in_background
from tests.support.realcluster import ControlPlane

PARALLEL = {"podManagementPolicy": "Parallel"}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with real_plane() as cluster:
        yield cluster


async def make_set(side: Side, replicas: int, **spec: Any) -> None:
    await side.create(STATEFUL_SETS, bodies.stateful_set("db", replicas, **{"node": "", **spec}))


async def make_daemon(side: Side, **spec: Any) -> None:
    await side.create(DAEMON_SETS, bodies.daemon_set("agent", **spec))


async def set_image(side: Side, image: str) -> None:
    for resource, name in ((STATEFUL_SETS, "db"), (DAEMON_SETS, "agent")):
        if any(item.metadata.name == name for item in await side.list(resource)):
            await side.patch(resource, name, bodies.image(image), patch_type=PatchType.STRATEGIC)


async def change(side: Side, spec: dict[str, Any]) -> None:
    await side.patch(STATEFUL_SETS, "db", {"spec": spec})


# StatefulSets


@pytest.mark.smoke
def test_a_set_is_made_in_order_and_rolled(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 3, minReadySeconds=1)
        await side.settled()
        await set_image(side, "app:2")
        await side.settled()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_scaling_and_ordinals(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 2, ordinals={"start": 3})
        await side.settled()
        for spec in ({"replicas": 4}, {"replicas": 1}, {"ordinals": {"start": 4}, "replicas": 2}, {"replicas": 0}):
            await change(side, spec)
            await side.settled()
        await change(side, {"replicas": 1})
        await side.settled()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_parallel_pods(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 4, **PARALLEL)
        await side.settled()
        await change(side, {"replicas": 2})
        await side.settled()
        await set_image(side, "app:2")
        await side.settled()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_partition(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 3, updateStrategy={"rollingUpdate": {"partition": 2, "maxUnavailable": 2}})
        await side.settled()
        await set_image(side, "app:2")
        await asyncio.sleep(3)
        await side.client.delete(PODS, "db-0", side.namespace)
        await asyncio.sleep(3)
        await change(side, {"replicas": 4})
        await asyncio.sleep(3)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_on_delete_rollback_and_history(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 2, revisionHistoryLimit=1)
        await side.settled()
        for image in ("app:2", "app:3", "app:2"):
            await set_image(side, image)
            await side.settled()
        await change(side, {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}})
        await set_image(side, "app:4")
        await asyncio.sleep(2)
        await side.client.delete(PODS, "db-1", side.namespace)
        await asyncio.sleep(3)

    real, local = both(plane, scenario, quick)
    assert local == real


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_broken_revision_and_its_repair(plane: ControlPlane, policy: str) -> None:
    """In order it blocks its own repair; in parallel it does not."""

    async def scenario(side: Side) -> None:
        await make_set(side, 2, podManagementPolicy=policy)
        await side.settled()
        await set_image(side, "broken")
        await asyncio.sleep(3)
        await set_image(side, "app:2")
        await asyncio.sleep(4)

    real, local = both(plane, scenario, lambda: quick(ready=lambda pod: pod.spec.containers[0].image != "broken"))
    assert local == real


def test_pods_that_end_and_orphans(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        for name in ("db-1", "other-2"):
            await side.create(PODS, bodies.pod(name, node="", labels={"app": "db"}))
        await asyncio.sleep(1)
        await make_set(side, 2)
        await asyncio.sleep(4)
        for phase in ("Failed", "Succeeded"):
            await side.patch(PODS, "db-0", {"status": {"phase": phase}}, subresource="status")
            await asyncio.sleep(2)
        await side.patch(PODS, "db-1", {"metadata": {"labels": {"app": "else"}}})
        await asyncio.sleep(3)

    real, local = both(plane, scenario, quick)
    assert local == real


def _retaining(**policy: str) -> dict[str, Any]:
    claims = [bodies.claim_template(labels={"tier": "db"}), bodies.claim_template("logs")]
    for claim in claims:
        claim["spec"]["storageClassName"] = ""
    return {"volumeClaimTemplates": claims, "persistentVolumeClaimRetentionPolicy": policy, "node": "n0"}


def test_claims_stay(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 2, **_retaining())
        await side.settled()
        await change(side, {"replicas": 1})
        await side.settled()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_claims_go_with_the_size(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 3, **_retaining(whenScaled="Delete", whenDeleted="Delete"))
        await side.settled()
        await change(side, {"replicas": 1})
        await side.settled()

        async def gone() -> bool:
            return len(await side.list(CLAIMS)) == 2

        await side.until(gone)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_claims_change_their_owners_with_the_policy(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_set(side, 1, **_retaining(whenDeleted="Delete"))
        await side.settled()
        await change(side, {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Delete"}})
        await asyncio.sleep(3)

    real, local = both(plane, scenario, quick)
    assert local == real


# DaemonSets


@pytest.mark.smoke
def test_a_daemon_is_made_and_rolled(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_daemon(side, minReadySeconds=1, updateStrategy={"rollingUpdate": {"maxUnavailable": 1}})
        await side.served(3)
        await set_image(side, "app:2")
        await side.served(3)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_a_daemon_surges(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_daemon(side, updateStrategy={"rollingUpdate": {"maxSurge": "50%", "maxUnavailable": 0}})
        await side.served(3)
        await set_image(side, "app:2")
        await side.served(3)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_a_daemon_that_never_gets_ready(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_daemon(side, updateStrategy={"rollingUpdate": {"maxUnavailable": "60%"}})
        await side.served(3)
        await set_image(side, "app:2")
        await asyncio.sleep(5)

    real, local = both(plane, scenario, lambda: quick(ready=only_first_image))
    for facts in (real, local):
        # Which nodes come first is chance on a real cluster.
        facts["identities"] = sorted(labels for _, _, labels in facts["identities"])
    assert local == real


def test_a_daemon_waits_for_deletes_and_goes_back(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_daemon(side, updateStrategy={"type": "OnDelete"}, revisionHistoryLimit=1)
        await side.served(3)
        for image in ("app:2", "app:3", "app:2"):
            await set_image(side, image)
            await asyncio.sleep(1)
            for pod in await side.list(PODS):
                if pod.spec.node_name in ("n0", "n1"):
                    await side.client.delete(PODS, pod.metadata.name, side.namespace)
            await asyncio.sleep(2)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_a_daemon_follows_labels_and_taints(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        template = bodies.template({"app": "agent"}, node="", hostNetwork=True)
        template["spec"]["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "off", "operator": "DoesNotExist"}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [{"key": "good", "operator": "Exists"}]}}
                ],
            }
        }
        await make_daemon(side, template=template)
        try:
            await side.served(3)
            await side.client.patch(NODES, "n0", {"metadata": {"labels": {"off": "yes"}}})
            await side.served(2)
            await side.client.patch(NODES, "n1", {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}})
            await side.client.patch(NODES, "n2", {"spec": {"taints": [{"key": "gpu", "effect": "NoExecute"}]}})
            await asyncio.sleep(4)
        finally:
            await side.client.patch(NODES, "n0", {"metadata": {"labels": {"off": None}}})
            await side.client.patch(NODES, "n2", {"spec": {"taints": None}})
        await side.served(2)
        await side.client.patch(NODES, "n1", {"spec": {"taints": None}})
        await side.served(3)

    real, local = both(plane, scenario, quick)
    # The taint eviction controller is quicker sometimes; it does not run on the local side of these stories.
    real["events"] = [item for item in real["events"] if item[2] != "TaintManagerEviction"]
    assert local == real


def test_daemon_pods_that_end(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await make_daemon(side)
        await side.served(3)
        for phase in ("Succeeded", "Failed", "Failed"):
            (pod,) = [item for item in await side.list(PODS) if item.spec.node_name == "n1"]
            await side.patch(PODS, pod.metadata.name, {"status": {"phase": phase}}, subresource="status")
            await asyncio.sleep(4)
        await side.served(3)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_a_daemon_that_fails_at_once(plane: ControlPlane) -> None:
    """Pods live for half a second, and are replaced after 1, 2, 4, ... seconds: at last one has failed and stays."""

    async def scenario(side: Side) -> None:
        await side.client.patch(NODES, "n0", {"metadata": {"labels": {"failing": "yes"}}})
        template = bodies.template({"app": "agent"}, node="", nodeSelector={"failing": "yes"})
        await make_daemon(side, template=template)
        await asyncio.sleep(9)

    def habits() -> Habits:
        return quick(run=lambda pod: 0.3, exit_code=lambda pod: 1)

    real, local = both(plane, scenario, habits)
    assert local == real


def test_kubectl_rolls_out_with_our_controllers_on_a_real_api_server() -> None:
    """Only etcd and the API server are Kubernetes' own, with the gate on that keeps maxUnavailable of StatefulSets."""
    gates = {"MaxUnavailableStatefulSet": True}
    with ControlPlane(controller_manager=False, scheduler=False, feature_gates=gates) as plane:
        for number in range(NODE_COUNT):
            plane.request("POST", "/api/v1/nodes", node(f"n{number}")).ok()
            # Nobody else lifts the taint that a new node gets until it is seen.
            plane.request("PATCH", f"/api/v1/nodes/n{number}", {"spec": {"taints": None}}).ok()
        plane.create_namespace("rollouts")
        asyncio.run(_roll_out(plane))


async def _roll_out(plane: ControlPlane) -> None:
    client = Client(HttpTransport(kubeconfig.load(plane.kubeconfig, env={})))
    controllers = Controllers(client, RealClock(), (workloads.specs, scheduler.specs, storage_binding.specs), seed=1)
    most = 0

    def stop(pod: Pod) -> float:
        nonlocal most
        most += pod.metadata.labels["app"] == "db"
        return 3.0

    async def kubectl(*arguments: str) -> str:
        return await asyncio.to_thread(plane.kubectl, "--namespace=rollouts", *arguments)

    kubelet = Kubelet(client, RealClock(), quick(stop=stop))
    async with in_background(controllers.run()), in_background(kubelet.run()):
        strategy = {"rollingUpdate": {"maxUnavailable": 2}}
        await client.create(
            STATEFUL_SETS, bodies.stateful_set("db", 3, node="", updateStrategy=strategy, **PARALLEL), "rollouts"
        )
        await client.create(DAEMON_SETS, bodies.daemon_set("agent"), "rollouts")
        for workload in ("statefulset/db", "daemonset/agent"):
            await kubectl("rollout", "status", workload, "--timeout=30s")
            await kubectl("set", "image", workload, "main=app:2")
        await asyncio.sleep(2)
        assert most == 2
        for workload in ("statefulset/db", "daemonset/agent"):
            await kubectl("rollout", "status", workload, "--timeout=60s")
            assert "rolled back" in await kubectl("rollout", "undo", workload)
            await kubectl("rollout", "status", workload, "--timeout=60s")
            history = await kubectl("rollout", "history", workload)
            assert re.findall(r"^(\d+) ", history, re.MULTILINE) == ["2", "3"]
        await kubectl("scale", "statefulset/db", "--replicas=1")
        await kubectl("wait", "statefulset/db", "--for=jsonpath={.status.replicas}=1", "--timeout=30s")
        pods = (await client.list(PODS, "rollouts")).items
        assert {pod.spec.containers[0].image for pod in pods} == {"app:1"}
        assert len(pods) == 1 + NODE_COUNT
    await client.close()
