"""Resources that change in place on nodes, told once for every workload that does it: with each resize policy, alone
and together with an image and labels; refused, put off and failed by the node, said, and corrected on the same pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.requests import PatchType
from kruise.machinery.quantity import parse_quantity
from kruise.scheduling.requests import CPU, amounts
from tests.support.commandline import Kruise
from tests.support.world import Json, World

GATES = "--feature-gates=InPlaceWorkloadVerticalScaling=true"
OLD, NEW = "nginx:1.25", "nginx:1.26"
BUDGET = "apps.kruise.io/failure-budget"
_WITHIN = 180.0
_NODE = "node-1"
_GATE = {"conditionType": "InPlaceUpdateReady"}
_HOG = "trap 'exit 0' TERM; dd if=/dev/zero of=/mem/full bs=1M count=64; while :; do sleep 1 & wait $!; done"
"""Holds 64 MiB of memory: what is written to the volume counts as the container's."""
Policy = Mapping[str, str]


class Resizing:
    """A workload `web` whose pods are all on one node: two of a CloneSet or StatefulSet, one of a DaemonSet."""

    def __init__(self, world: World, resource: Resource[Any], kruise: Kruise | None = None) -> None:
        """`kruise`: by which `why` is asked, where it can be asked from outside."""
        self.world, self.resource, self.kruise = world, resource, kruise
        self.pods_wanted = 1 if resource is DAEMON_SETS else 2

    async def start(self, *containers: Json, pod: Json | None = None, annotations: Policy | None = None) -> list[Json]:
        labels = {"app": "web"}
        rolling: Json = {"maxUnavailable": 1, "podUpdatePolicy": "InPlaceIfPossible"}
        spec: Json = {"selector": {"matchLabels": labels}}
        if self.resource is DAEMON_SETS:
            rolling = {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}
        else:
            spec["replicas"] = self.pods_wanted
        if self.resource is STATEFUL_SETS:
            spec |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
        template = {
            "containers": list(containers),
            "readinessGates": [_GATE],
            "nodeSelector": {"kubernetes.io/hostname": _NODE},
            "terminationGracePeriodSeconds": 1,
            **(pod or {}),
        }
        spec |= {"template": {"metadata": {"labels": labels}, "spec": template}}
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        await self.world.create(
            {
                "apiVersion": self.resource.api_version,
                "kind": self.resource.kind,
                "metadata": {"name": "web", "annotations": dict(annotations or {})},
                "spec": spec,
            }
        )
        return await self.arrived()

    async def change(self, changes: Mapping[str, Any]) -> None:
        """Of the template: `0/resources/limits/cpu` is about its first container, `labels/team` about its labels."""
        operations = []
        for place, value in changes.items():
            base = "/spec/template/metadata" if place.startswith("labels/") else "/spec/template/spec/containers"
            operations.append({"op": "add", "path": f"{base}/{place}", "value": value})
        await self.world.patch(self.resource, "web", operations, patch_type=PatchType.JSON)

    async def arrived(self) -> list[Json]:
        """All pods are as the template says, by name."""

        async def check() -> list[Json]:
            found = await self.world.get(self.resource, "web")
            status, pods = found.get("status", {}), await self.world.pods("app=web")
            updated = status.get("updatedNumberScheduled", status.get("updatedReplicas"))
            available = status.get("numberAvailable", status.get("availableReplicas", 0))
            told = [(pod["metadata"]["name"], pod["spec"]["containers"], pod["status"]) for pod in pods]
            assert status.get("observedGeneration") == found["metadata"]["generation"], status
            assert len(pods) == self.pods_wanted, told
            assert (updated, available) == (self.pods_wanted,) * 2, (status, told)
            for pod in pods:
                for container in found["spec"]["template"]["spec"]["containers"]:
                    has = _status(pod, container["name"])
                    assert _same(has.get("resources", {}), container["resources"]), told
                    assert has["image"].endswith(container["image"]), told
            return pods

        return await self.world.until(check, within=_WITHIN, every=0.5)

    async def told(self, condition: str, reason: str) -> Json:
        """What the node says of a pod, when it does."""

        async def check() -> Json:
            pods = await self.world.pods("app=web")
            found = [
                (pod["metadata"]["name"], item["type"], item.get("reason", ""), item.get("message", ""))
                for pod in pods
                for item in pod["status"]["conditions"]
                if item["type"].startswith("PodResize")
            ]
            for pod in pods:
                if any(entry[:3] == (pod["metadata"]["name"], condition, reason) for entry in found):
                    return pod
            raise AssertionError((found, [pod["status"].get("containerStatuses") for pod in pods]))

        return await self.world.until(check, within=_WITHIN, every=0.5)

    async def granted(self, cpu: str) -> list[Json]:
        """The pods whose first container has been given so much to ask for."""
        return [
            pod
            for pod in await self.world.pods("app=web")
            if _same(pod["status"]["containerStatuses"][0].get("resources", {}), {"requests": {"cpu": cpu}})
        ]

    async def condition(self, kind: str, words: str) -> None:
        """The workload's status says so."""

        async def check() -> None:
            found = await self.world.get(self.resource, "web")
            conditions = found["status"].get("conditions", ())
            told = {item["type"]: f"{item.get('reason')}: {item.get('message')}" for item in conditions}
            assert words in told.get(kind, ""), told

        await self.world.until(check, within=_WITHIN, every=0.5)

    async def why(self, code: str) -> None:
        kruise = self.kruise
        if kruise is None:
            return
        # The manager of these tests leads nothing, so its journal is not found: the decision is made anew.
        what = f"{self.resource.plural}.{self.resource.group}/web"
        arguments = ("why", what, f"--namespace={self.world.namespace}", GATES)

        async def check() -> None:
            done = await asyncio.to_thread(kruise, *arguments)
            assert f"[{code}]" in done.out, (done.code, done.out, done.err)

        await self.world.until(check, within=_WITHIN, every=1.0)

    async def room(self) -> int:
        """Thousandths of a CPU that the node has to give away."""
        node = await self.world.get(NODES, _NODE)
        return amounts(node["status"]["allocatable"])[CPU]


Story = Callable[[Resizing], Awaitable[None]]
RESOURCES: Mapping[str, Resource[Any]] = {
    "cloneset": CLONE_SETS,
    "statefulset": STATEFUL_SETS,
    "daemonset": DAEMON_SETS,
}


def sized(
    name: str, cpu: str, memory: str, *, policy: Policy, limits: tuple[str, str] = ("200m", "128Mi"), **more: Any
) -> Json:
    return {
        "name": name,
        "image": "busybox:1.36" if "command" in more else OLD,
        "resources": {
            "requests": {"cpu": cpu, "memory": memory},
            "limits": {"cpu": limits[0], "memory": limits[1]},
        },
        "resizePolicy": [{"resourceName": key, "restartPolicy": value} for key, value in policy.items()],
        **more,
    }


FREE = {"cpu": "NotRequired", "memory": "NotRequired"}
HALF = {"cpu": "NotRequired", "memory": "RestartContainer"}
STRICT = {"cpu": "RestartContainer", "memory": "RestartContainer"}


async def each_policy(on: Resizing) -> None:
    """IPU-33, IPU-41, IPU-55, IPU-61: a container restarts where its own policy says so for what changes, and then
    once, whatever else changes with it."""
    sleeps = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done"]
    names = ("free", "half", "strict")
    containers = [
        sized("free", "20m", "16Mi", policy=FREE),
        *(
            sized(name, "20m", "16Mi", policy=policy, command=sleeps)
            for name, policy in (("half", HALF), ("strict", STRICT))
        ),
    ]
    before = await on.start(*containers)

    async def restarts_after(changes: Mapping[str, Any], expected: tuple[int, ...]) -> None:
        await on.change(changes)
        pods = await on.arrived()
        assert [_identity(pod) for pod in pods] == [_identity(pod) for pod in before]
        for pod in pods:
            assert tuple(_status(pod, name)["restartCount"] for name in names) == expected, pod["status"]

    def of_all(path: str, amount: str) -> dict[str, str]:
        return {f"{place}/resources/{path}": amount for place in range(3)}

    await restarts_after({**of_all("limits/cpu", "250m"), **of_all("requests/cpu", "25m")}, (0, 0, 1))
    await restarts_after({**of_all("limits/memory", "160Mi"), **of_all("requests/memory", "24Mi")}, (0, 1, 2))
    await restarts_after({**of_all("limits/memory", "96Mi"), "labels/team": "b"}, (0, 2, 3))
    mixed = {**of_all("limits/cpu", "300m"), **of_all("limits/memory", "112Mi")}
    await restarts_after({**mixed, "0/image": NEW, "labels/team": "c"}, (1, 3, 4))
    assert {pod["metadata"]["labels"]["team"] for pod in await on.arrived()} == {"c"}


async def refused_and_put_off(on: Resizing) -> None:
    """What no node can grant is said, counts for the failure budget, and holds up no correction; what has no room now
    is said, and granted when there is."""
    cpu = ("2", "64Mi")
    before = await on.start(sized("main", "20m", "32Mi", policy=FREE, limits=cpu), annotations={BUDGET: "0"})
    await on.change({"0/resources/requests/cpu": "500", "0/resources/limits/cpu": "500"})
    await on.told("PodResizePending", "Infeasible")
    await on.condition("FailureBudgetExceeded", "the node refuses the new resources")
    await on.why("resize-refused")
    # A change beside it does not make anybody forget, and neither does it hold anything up.
    await on.change({"0/resources/requests/cpu": "25m", "0/resources/limits/cpu": "2", "0/image": NEW})
    assert [_identity(pod) for pod in await on.arrived()] == [_identity(pod) for pod in before]

    room = await on.room()
    taker = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "taker", "labels": {"app": "taker"}},
        "spec": {
            "nodeName": _NODE,
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {"name": "main", "image": OLD, "resources": {"requests": {"cpu": f"{room - 600}m"}}},
            ],
        },
    }
    await on.world.create(taker)

    async def runs() -> None:
        assert (await on.world.get(PODS, "taker"))["status"]["phase"] == "Running"

    await on.world.until(runs, within=_WITHIN)
    await on.change({"0/resources/requests/cpu": "700m"})
    await on.told("PodResizePending", "Deferred")
    await on.condition("Waiting", "ResizeDeferred")
    await on.why("resize-deferred")
    await on.world.delete(PODS, "taker")
    if on.pods_wanted * 700 > room:
        await on.change({"0/resources/requests/cpu": "30m"})
    assert [_identity(pod) for pod in await on.arrived()] == [_identity(pod) for pod in before]
    if on.pods_wanted == 1:
        return
    # One gets it, and the next one does not: a correction reaches that one, although the first one comes before it.
    await on.change({"0/resources/requests/cpu": "30m"})
    await on.arrived()
    too_much = f"{room * 2 // 3}m"
    await on.change({"0/resources/requests/cpu": too_much, "0/resources/limits/cpu": too_much})
    await on.told("PodResizePending", "Deferred")
    assert len(await on.granted(too_much)) == 1
    await on.change({"0/resources/requests/cpu": "30m"})
    assert [_identity(pod) for pod in await on.arrived()] == [_identity(pod) for pod in before]


async def failed(on: Resizing) -> None:
    """A container that uses more memory than it is to have: the node fails, says so, and goes on when that is
    corrected."""
    memory = {"volumes": [{"name": "mem", "emptyDir": {"medium": "Memory"}}]}
    mount = [{"name": "mem", "mountPath": "/mem"}]
    hog = sized(
        "main", "20m", "16Mi", policy=FREE, limits=("200m", "160Mi"), command=["sh", "-c", _HOG], volumeMounts=mount
    )
    before = await on.start(hog, pod=memory)
    await on.world.sleep(20)  # usage is measured every ten seconds
    await on.change({"0/resources/limits/memory": "32Mi"})
    await on.told("PodResizeInProgress", "Error")
    await on.condition("Waiting", "ResizeFailed")
    await on.why("resize-failed")
    await on.change({"0/resources/limits/memory": "192Mi"})
    after = await on.arrived()
    assert [_identity(pod) for pod in after] == [_identity(pod) for pod in before]
    assert {_status(pod, "main")["restartCount"] for pod in after} == {0}


STORIES: tuple[Story, ...] = (each_policy, refused_and_put_off, failed)


def _identity(pod: Json) -> tuple[str, str]:
    return pod["metadata"]["uid"], pod["status"]["podIP"]


def _status(pod: Json, name: str) -> Json:
    return next((item for item in pod["status"].get("containerStatuses", []) if item["name"] == name), {})


def _same(has: Json, wanted: Json) -> bool:
    return all(
        parse_quantity(has.get(part, {}).get(name, 0)) == parse_quantity(amount)
        for part, amounts in wanted.items()
        for name, amount in amounts.items()
    )
