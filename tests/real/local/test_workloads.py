"""Deployments, ReplicaSets, Jobs and the scheduler: the same stories on a real control plane and on the local cluster's
controllers (`tests.local.workloads.sides`), end states compared."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import STORAGE_CLASSES
from kruise.local import scheduler, storage_binding, workloads
from kruise.local.storage_binding.objects import CLAIMS, VOLUMES
from kruise.local.workloads.objects import CRON_JOBS, DEPLOYMENTS, JOBS, REPLICA_SETS
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import RealClock
from tests.local.workloads import bodies
from tests.local.workloads.sides import NODE_COUNT, Side, both, only_first_image, quick, real_plane, scheduled
from tests.local.workloads.world import Controllers, Habits, Kubelet, node
from tests.support.realcluster import ControlPlane


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with real_plane() as cluster:
        yield cluster


async def set_image(side: Side, image: str) -> None:
    await side.patch(DEPLOYMENTS, "web", bodies.image(image), patch_type=PatchType.STRATEGIC)


def web(replicas: int, **spec: Any) -> dict[str, Any]:
    return bodies.deployment("web", replicas, node="", **spec)


@pytest.mark.smoke
def test_create(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(DEPLOYMENTS, web(3, minReadySeconds=2))
        await side.deployed()

    real, local = both(plane, scenario, quick)
    assert local == real


@pytest.mark.smoke
def test_rollout(plane: ControlPlane) -> None:
    """One pod at a time, so that the order of events is the same each time."""

    async def scenario(side: Side) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await side.create(DEPLOYMENTS, web(3, strategy=strategy))
        await side.deployed()
        await set_image(side, "app:2")
        await side.deployed()

    real, local = both(plane, scenario, quick)
    assert local == real


@pytest.mark.smoke
def test_job_completes(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(JOBS, bodies.job("sum", node="", completions=3, parallelism=2))
        await side.shown(JOBS, "sum", "Complete", "CompletionsReached")

    real, local = both(plane, scenario, lambda: quick(run=lambda pod: 0.5))
    assert local == real


def test_scale(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(DEPLOYMENTS, web(2))
        await side.deployed()
        for replicas in (5, 1, 0, 2):
            await side.patch(DEPLOYMENTS, "web", {"spec": {"replicas": replicas}})
            await side.deployed()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_a_rollout_that_fails(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(DEPLOYMENTS, web(4, progressDeadlineSeconds=5))
        await side.deployed()
        await set_image(side, "app:2")
        await side.shown(DEPLOYMENTS, "web", "Progressing", "ProgressDeadlineExceeded")

    real, local = both(plane, scenario, lambda: quick(ready=only_first_image))
    assert local == real


def test_scaling_in_the_middle_of_a_rollout(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
        await side.create(DEPLOYMENTS, web(10, strategy=strategy))
        await side.deployed()
        await set_image(side, "app:2")
        await asyncio.sleep(4)
        await side.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
        await asyncio.sleep(4)

    real, local = both(plane, scenario, lambda: quick(ready=only_first_image))
    # How a rollout that cannot end gets to where it stops depends on what is seen first.
    for facts in (real, local):
        facts["events"] = [item for item in facts["events"] if item[2] != "ScalingReplicaSet"]
    assert local == real


def test_paused(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(DEPLOYMENTS, web(2))
        await side.deployed()
        await side.patch(DEPLOYMENTS, "web", {"spec": {"paused": True}})
        await set_image(side, "app:2")
        await side.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 3}})
        await asyncio.sleep(3)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_recreate(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(DEPLOYMENTS, web(3, strategy={"type": "Recreate"}))
        await side.deployed()
        await set_image(side, "app:2")
        await side.deployed()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_back_and_history(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        strategy = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        await side.create(DEPLOYMENTS, web(1, strategy=strategy, revisionHistoryLimit=1))
        await side.deployed()
        for image in ("app:2", "app:1", "app:3"):
            await set_image(side, image)
            await side.deployed()

    real, local = both(plane, scenario, quick)
    assert local == real


def test_adoption_and_release(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        for name in ("lone-a", "lone-b"):
            await side.create(PODS, bodies.pod(name, node="", labels={"app": "web"}))
        body = bodies.replica_set("web", 3)
        body["spec"]["template"] = bodies.template({"app": "web"}, node="")
        await side.create(REPLICA_SETS, body)

        async def full() -> bool:
            return bool((await side.get(REPLICA_SETS, "web")).status.available_replicas == 3)

        await side.until(full)
        await side.patch(PODS, "lone-b", {"metadata": {"labels": {"app": "other"}}})
        await asyncio.sleep(1)
        await side.until(full)

    real, local = both(plane, scenario, quick)
    assert local == real


def test_job_fails(plane: ControlPlane) -> None:
    """One pod fails; the other runs on, and is taken down with the Job. If both failed at once, a controller might see
    one of them or both."""

    async def scenario(side: Side) -> None:
        await side.create(JOBS, bodies.job("bad", node="", completions=2, parallelism=2, backoffLimit=0))
        await side.shown(JOBS, "bad", "Failed", "BackoffLimitExceeded")

    def habits() -> Habits:
        first: list[str] = []

        def run(pod: Pod) -> float | None:
            first.append(pod.metadata.name)
            return 0.5 if pod.metadata.name == first[0] else None

        return quick(run=run, exit_code=lambda pod: 1)

    real, local = both(plane, scenario, habits)
    assert local == real


def test_job_deadline_and_suspension(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        await side.create(JOBS, bodies.job("slow", node="", activeDeadlineSeconds=4))
        await side.create(JOBS, bodies.job("later", node="", suspend=True))
        await side.shown(JOBS, "slow", "Failed", "DeadlineExceeded")

    real, local = both(plane, scenario, quick)
    assert local == real


def test_indexed_job(plane: ControlPlane) -> None:
    async def scenario(side: Side) -> None:
        body = bodies.job("parts", node="", completions=3, parallelism=3, completionMode="Indexed")
        await side.create(JOBS, body)
        await side.shown(JOBS, "parts", "Complete", "CompletionsReached")

    real, local = both(plane, scenario, lambda: quick(run=lambda pod: 0.5))
    assert local == real


def cron_job(name: str, policy: str, **spec: Any) -> dict[str, Any]:
    # Nobody reports for the nodes all the time, so pods are placed without a scheduler.
    template = {"metadata": {"labels": {"cron": name}}, "spec": bodies.job(name)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": "*/1 * * * *", "concurrencyPolicy": policy, "jobTemplate": template, **spec},
    }


async def cron_facts(side: Side) -> dict[str, Any]:
    """Jobs are called after the minute of their run: the first is 1, the second 2."""
    jobs = await side.list(JOBS)
    last = {item.metadata.name: item.status.last_schedule_time for item in await side.list(CRON_JOBS)}
    newest = max(int(moment.timestamp()) // 60 for moment in last.values() if moment is not None)
    name = re.compile(r"-(\d{8})\b")

    def plain(text: str) -> str:
        return name.sub(lambda found: f"-<{int(found[1]) - newest + 2}>", text)

    events = [item for item in await side.list(EVENTS) if item.involved_object.kind == "CronJob"]
    return {
        "cron jobs": {
            item.metadata.name: (
                [plain(one.name) for one in item.status.active],
                item.status.last_schedule_time is not None,
                item.status.last_successful_time is not None,
            )
            for item in await side.list(CRON_JOBS)
        },
        "jobs": sorted(
            (
                plain(item.metadata.name),
                sorted(item.metadata.labels),
                sorted(item.metadata.annotations),
                [(owner.kind, owner.name, owner.controller) for owner in item.metadata.owner_references],
            )
            for item in jobs
        ),
        "events": sorted({(item.involved_object.name, item.type, item.reason, plain(item.message)) for item in events}),
    }


@pytest.mark.long
def test_cron_jobs(plane: ControlPlane) -> None:
    """Two ticks: every policy, a history of one, one that is suspended, a zone, a deadline of ages."""
    seen: list[dict[str, Any]] = []

    async def scenario(side: Side) -> None:
        await side.create(CRON_JOBS, cron_job("quick", "Allow", successfulJobsHistoryLimit=1))
        for name, policy in (("allow", "Allow"), ("forbid", "Forbid"), ("replace", "Replace")):
            await side.create(CRON_JOBS, cron_job(name, policy, timeZone="Asia/Shanghai"))
        await side.create(CRON_JOBS, cron_job("still", "Allow", suspend=True))
        await side.create(CRON_JOBS, cron_job("ages", "Forbid", startingDeadlineSeconds=2**33))

        async def second_tick() -> bool:
            events = {(item.involved_object.name, item.reason) for item in await side.list(EVENTS)}
            allow = await side.get(CRON_JOBS, "allow")
            wanted = {("forbid", "JobAlreadyActive"), ("replace", "SuccessfulDelete"), ("quick", "SuccessfulDelete")}
            return len(allow.status.active) == 2 and wanted <= events

        await side.until(second_tick, seconds=170)
        seen.append(await cron_facts(side))

    def run(pod: Pod) -> float | None:
        return 0.5 if pod.metadata.name.startswith("quick") else None

    both(plane, scenario, lambda: quick(run=run))
    real, local = seen
    assert local == real


@pytest.mark.smoke
def test_pods_that_fit_nowhere(plane: ControlPlane) -> None:
    """The scheduler's words."""
    wanting: dict[str, dict[str, Any]] = {
        "cpu": {"containers": [_asking(cpu="100")]},
        "memory-and-gpu": {"containers": [_asking(memory="1Ti", **{"example.com/gpu": "1"})]},
        "selector": {"nodeSelector": {"no": "where"}},
        "unbound": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "unbound"}}]},
        "claim": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]},
        "named": {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                        ]
                    }
                }
            },
            "containers": [_asking(cpu="100")],
        },
        "gated": {"schedulingGates": [{"name": "example.com/gate"}]},
    }

    async def scenario(side: Side) -> None:
        body = {
            "metadata": {"name": "unbound"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        await side.create(CLAIMS, body)
        for name, spec in wanting.items():
            await side.create(PODS, bodies.pod(name, node="", **spec))

        async def told() -> bool:
            return all(scheduled(pod)[1] for pod in await side.list(PODS))

        await side.until(told)

    real, local = both(plane, scenario, quick)
    assert local == real


def _company(kind: str, app: str, key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"of": app}}, "topologyKey": key}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread(key: str, **more: Any) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"of": "spread"}},
        **more,
    }
    return {"topologySpreadConstraints": [constraint]}


def test_pods_that_ask_for_company(plane: ControlPlane) -> None:
    """Spread constraints and affinity: the words where no node will do, and how many pods each node has
    where some do."""
    host = "kubernetes.io/hostname"
    first: dict[str, dict[str, Any]] = {
        **{f"spread-{number}": _spread(host) for number in range(2 * NODE_COUNT)},
        **{f"alone-{number}": _company("podAntiAffinity", "alone") for number in range(NODE_COUNT)},
        "together-0": _company("podAffinity", "together"),
    }
    second: dict[str, dict[str, Any]] = {
        "spread-label": _spread("example.com/nowhere"),
        "spread-one-node": {**_spread(host, nodeAffinityPolicy="Ignore"), "nodeSelector": {host: "n1"}},
        "spread-domains": _spread(host, minDomains=NODE_COUNT + 1),
        "alone-more": _company("podAntiAffinity", "alone"),
        "together-1": _company("podAffinity", "together"),
        "friendless": _company("podAffinity", "nobody"),
        "together-nowhere": _company("podAffinity", "together", "example.com/nowhere"),
    }
    placed: list[list[int]] = []

    async def scenario(side: Side) -> None:
        async def settle() -> bool:
            return all(scheduled(pod)[0] for pod in await side.list(PODS))

        for wanted in (first, second):
            for name, spec in wanted.items():
                body = bodies.pod(name, node="", **spec)
                body["metadata"]["labels"] = {"of": name.partition("-")[0]}
                await side.create(PODS, body)
                await side.until(settle)
        on = Counter((pod.metadata.labels["of"], pod.spec.node_name) for pod in await side.list(PODS))
        placed.append(sorted(on[of, node] for of, node in on if node))

    real, local = both(plane, scenario, quick)
    assert placed[0] == placed[1]
    assert local == real


_ZONE = "topology.kubernetes.io/zone"
_STATIC = "static-disks"


def _volume(namespace: str, name: str, *, bound: bool = True, affinity: str = "", zone: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": _STATIC,
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": "/tmp/nothing"},
    }
    if bound:
        spec["claimRef"] = {"namespace": namespace, "name": name}
    if affinity:
        here = {"key": _ZONE, "operator": "In", "values": [affinity]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    return {"metadata": {"name": name, "labels": {_ZONE: zone} if zone else {}}, "spec": spec}


def _claim(name: str, *, bound: bool = True) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": _STATIC,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"metadata": {"name": name}, "spec": {**spec, "volumeName": name} if bound else spec}


def test_pods_go_where_their_volumes_are(plane: ControlPlane) -> None:
    """Three nodes are three zones: where pods with claims go, and the words where no node will do."""
    volumes: dict[str, dict[str, Any]] = {
        "tied": {"affinity": "a"},
        "held": {"affinity": "a"},
        "lost": {"affinity": "x"},
        "labelled": {"zone": "b"},
        "elsewhere": {"zone": "x"},
    }
    static = {
        "metadata": {"name": _STATIC},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    seen: list[dict[str, tuple[str, str]]] = []

    async def scenario(side: Side) -> None:
        async def zones(*names: str | None) -> None:
            for number, name in enumerate(names):
                await side.client.patch(NODES, f"n{number}", {"metadata": {"labels": {_ZONE: name}}})

        async def mount(name: str, **spec: Any) -> None:
            mounted = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
            await side.create(PODS, bodies.pod(name, node="", volumes=mounted, **spec))

        async def bound() -> bool:
            return all(one.status.phase == "Bound" for one in await side.list(CLAIMS))

        async def told() -> bool:
            return all(scheduled(pod)[0] for pod in await side.list(PODS))

        await zones("a", "b", "c")
        await side.client.create(STORAGE_CLASSES, static)
        made = [_volume(side.namespace, name, **where) for name, where in volumes.items()]
        for volume in (*made, _volume(side.namespace, "free", bound=False, affinity="c")):
            await side.client.create(VOLUMES, volume)
        for name in volumes:
            await side.create(CLAIMS, _claim(name))
        await side.until(bound)
        for name in volumes:
            await mount(name, **({"nodeSelector": {_ZONE: "b"}} if name == "held" else {}))
        await side.until(told)
        # There is one volume for two: the first pod takes it to its zone.
        for name in ("first", "second"):
            await side.create(CLAIMS, _claim(name, bound=False))
            await mount(name)
            await side.until(told)
        chosen = {one.metadata.name: one.spec.volume_name for one in await side.list(CLAIMS)}
        pods = await side.list(PODS)
        seen.append({one.metadata.name: (one.spec.node_name, chosen[one.metadata.name]) for one in pods})

    try:
        real, local = both(plane, scenario, quick)
    finally:
        # Not before: pods that found no node look again as soon as the zones are gone.
        for number in range(3):
            plane.request("PATCH", f"/api/v1/nodes/n{number}", {"metadata": {"labels": {_ZONE: None}}}).ok()
    assert seen[0] == seen[1]
    assert {name: node for name, (node, _) in seen[1].items() if node} == {
        "tied": "n0",
        "labelled": "n1",
        "first": "n2",
    }
    assert seen[1]["first"] == ("n2", "free")
    # A real scheduler tries again as volumes and labels come to its notice: what it says in the end counts.
    assert [local[key] for key in ("pods", "claims")] == [real[key] for key in ("pods", "claims")]


def _asking(**requests: str) -> dict[str, Any]:
    limits = {key: text for key, text in requests.items() if "/" in key}
    return {"name": "main", "image": "app:1", "resources": {"requests": requests, "limits": limits}}


def test_kubectl_rolls_out_with_our_controllers_on_a_real_api_server() -> None:
    """Only etcd and the API server are Kubernetes' own: controllers and scheduler are ours, over HTTPS in real time."""
    with ControlPlane(controller_manager=False, scheduler=False) as plane:
        for number in range(NODE_COUNT):
            plane.request("POST", "/api/v1/nodes", node(f"n{number}")).ok()
            # Nobody else lifts the taint that a new node gets until it is seen.
            body = {"spec": {"taints": None}}
            plane.request("PATCH", f"/api/v1/nodes/n{number}", body).ok()
        plane.create_namespace("rollouts")
        asyncio.run(_roll_out(plane))


async def _roll_out(plane: ControlPlane) -> None:
    client = Client(HttpTransport(kubeconfig.load(plane.kubeconfig, env={})))
    makers = (workloads.specs, scheduler.specs, storage_binding.specs)
    controllers = Controllers(client, RealClock(), makers, seed=1)
    tasks = [
        asyncio.create_task(controllers.run()),
        asyncio.create_task(Kubelet(client, RealClock(), quick()).run()),
    ]

    async def kubectl(*arguments: str) -> str:
        return await asyncio.to_thread(plane.kubectl, "--namespace=rollouts", *arguments)

    try:
        await client.create(DEPLOYMENTS, web(3), "rollouts")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        await kubectl("set", "image", "deployment/web", "main=app:2")
        assert "successfully rolled out" in await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        history = await kubectl("rollout", "history", "deployment/web")
        assert re.findall(r"^(\d+) ", history, re.MULTILINE) == ["1", "2"]
        assert "rolled back" in await kubectl("rollout", "undo", "deployment/web")
        await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        history = await kubectl("rollout", "history", "deployment/web")
        assert re.findall(r"^(\d+) ", history, re.MULTILINE) == ["2", "3"]
        await kubectl("rollout", "pause", "deployment/web")
        await kubectl("rollout", "resume", "deployment/web")
        await kubectl("rollout", "restart", "deployment/web")
        await kubectl("rollout", "status", "deployment/web", "--timeout=30s")
        await kubectl("scale", "deployment/web", "--replicas=5")
        await kubectl("wait", "deployment/web", "--for=jsonpath={.status.availableReplicas}=5", "--timeout=30s")
        await kubectl("create", "job", "one", "--image=app:1")
        pods = (await client.list(PODS, "rollouts", labels="app=web")).items
        assert {pod.spec.containers[0].image for pod in pods} == {"app:1"}
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await client.close()
