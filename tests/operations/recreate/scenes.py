"""Pods and requests on the local cluster, on virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.native.pod import PODS
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
TRAP = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"]
GATES = "KruisePodReadinessGate=true"


def container(name: str, **more: Any) -> Json:
    return {"name": name, "image": "busybox:1.34", "command": TRAP, **more}


def pod(*containers: Json, name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name, "labels": {"app": name}}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"terminationGracePeriodSeconds": 3, "containers": list(containers), **spec},
    }


def request(*names: str, name: str = "r", pod: str = "p", version: str = "v1beta1", **spec: Any) -> Json:
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "ContainerRecreateRequest",
        "metadata": {"name": name},
        "spec": {"podName": pod, "containers": [{"name": one} for one in names], **spec},
    }


def states(found: Json) -> list[tuple[str, str, bool]]:
    listed = found.get("status", {}).get("containerRecreateStates", [])
    return [(item["name"], item["phase"], item.get("isKilled", False)) for item in listed]


def restarts(found: Json) -> dict[str, int]:
    return {item["name"]: item["restartCount"] for item in found["status"]["containerStatuses"]}


class Scene:
    def __init__(self, world: LocalWorld) -> None:
        self.world = world

    async def ready(self, manifest: Json) -> Json:
        """Create a pod and wait until it serves."""
        await self.world.create(manifest)
        return await self.pod_is(is_ready, manifest["metadata"]["name"])

    async def pod(self, name: str = "p") -> Json:
        return await self.world.get(PODS, name)

    async def request(self, name: str = "r") -> Json:
        return await self.world.get(REQUESTS, name)

    async def requests(self) -> list[str]:
        return [item["metadata"]["name"] for item in await self.world.list(REQUESTS)]

    async def pod_is(self, check: Callable[[Json], bool], name: str = "p", within: float = 60) -> Json:
        async def look() -> Json:
            found = await self.pod(name)
            assert check(found), found["status"]
            return found

        return await self.world.until(look, within=within)

    async def request_is(self, check: Callable[[Json], bool], name: str = "r", within: float = 60) -> Json:
        async def look() -> Json:
            found = await self.request(name)
            assert check(found), found.get("status")
            return found

        return await self.world.until(look, within=within)

    async def completed(self, name: str = "r", within: float = 60) -> Json:
        return await self.request_is(lambda found: found.get("status", {}).get("phase") == "Completed", name, within)

    async def gone(self, name: str = "r", within: float = 60) -> None:
        async def look() -> None:
            assert name not in await self.requests()

        await self.world.until(look, within=within)

    @property
    def now(self) -> float:
        return self.world.clock.monotonic()


def is_ready(found: Json) -> bool:
    conditions = {item["type"]: item["status"] for item in found["status"].get("conditions", ())}
    return conditions.get("Ready") == "True"


def condition(found: Json, kind: str) -> Json:
    return next((item for item in found["status"].get("conditions", ()) if item["type"] == kind), {})


def play(scenario: Callable[[Scene], Awaitable[None]], **options: Any) -> None:
    async def main(world: LocalWorld) -> None:
        await scenario(Scene(world))

    run_local(main, **{"nodes": 2, "feature_gates": GATES, **options})
