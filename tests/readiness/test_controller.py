"""The readiness controller on an API core in process, on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.events import ObjectReference
from kruise.api.native.pod import PODS, Pod, condition
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.apply import Applier
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import run_virtual
from kruise.machinery.controller import Controller
from kruise.machinery.guards import Load
from kruise.machinery.limiter import WriteLimiter
from kruise.manager.options import Options
from kruise.readiness.controller import FEATURE
from tests.support.background import in_background
from tests.support.inprocess import InProcess, pod_body
from tests.support.no_stores import NO_STORES

CLONE_SET = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "name": "web",
    "uid": "00000000-0000-4000-8000-00000000abcd",
    "controller": True,
}
CONDITION = {"type": keys.KRUISE_POD_READY, "status": "True"}

[SPEC] = FEATURE.controllers(Options())
keys_of = SPEC.sources[0].keys


class NoEvents:
    def record(self, regarding: ObjectReference, kind: str, reason: str, message: str) -> None:
        raise AssertionError(f"an event: {reason}")


class Scene(InProcess):
    def __init__(self) -> None:
        super().__init__()
        self.limiter = WriteLimiter(clock=self.clock, initial=1, maximum=1)
        applier = Applier(self.client, self.cache, clock=self.clock, limiter=self.limiter)
        self.controller = Controller(SPEC, cache=self.cache, applier=applier, recorder=NoEvents(), clock=self.clock)

    @contextlib.asynccontextmanager
    async def at_work(self) -> AsyncGenerator[None, None]:
        async with self.running(), in_background(self.controller.run()):
            yield

    async def add(self, name: str, *, gate: bool = True, node: str = "", **metadata: Any) -> None:
        body = pod_body(name, node=node, **metadata)
        if gate:
            body["spec"]["readinessGates"] = [{"conditionType": keys.KRUISE_POD_READY}]
        await self.direct.create(PODS, body, "default")

    async def pod(self, name: str) -> Pod:
        return await self.direct.get(PODS, name, "default")

    async def status_of(self, name: str) -> str:
        found = condition(await self.pod(name), keys.KRUISE_POD_READY)
        return found.status if found is not None else ""


def test_a_pod_with_the_gate_becomes_ready_and_others_are_left_alone() -> None:  # IPU-81, PW-13
    async def main() -> None:
        scene = Scene()
        await scene.add("before")
        async with scene.at_work():
            await scene.add("with")
            await scene.add("without", gate=False)
            await asyncio.sleep(0.5)
            assert [await scene.status_of(name) for name in ("before", "with", "without")] == ["True", "True", ""]

    run_virtual(main())


def test_a_pod_of_a_clone_set_is_left_to_it_for_a_second_after_the_binding() -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.at_work():
            await scene.add("late", ownerReferences=[CLONE_SET])
            await scene.add("quick", ownerReferences=[CLONE_SET])
            await asyncio.sleep(30)
            assert await scene.status_of("late") == ""
            for name in ("late", "quick"):
                uid = (await scene.pod(name)).metadata.uid
                await scene.direct.bind(PODS, name, "default", node="n1", uid=uid)
            await asyncio.sleep(0.9)
            assert await scene.status_of("late") == ""
            body = {"status": {"conditions": [CONDITION]}}
            written = await scene.direct.patch(
                PODS, "quick", body, "default", patch_type=PatchType.STRATEGIC, subresource="status"
            )
            await asyncio.sleep(1.5)
            assert await scene.status_of("late") == "True"
            # The workload was in time, so nobody wrote after it.
            assert (await scene.pod("quick")).metadata.resource_version == written.metadata.resource_version

    run_virtual(main())


def test_what_became_needless_while_it_stood_in_line_is_not_written() -> None:
    async def main() -> None:
        scene = Scene()
        async with scene.at_work():
            slot = await scene.limiter.acquire()
            assert slot is not None
            await scene.add("served")
            await scene.add("other")
            await asyncio.sleep(1)
            body = {"status": {"conditions": [CONDITION]}}
            written = await scene.direct.patch(
                PODS, "served", body, "default", patch_type=PatchType.STRATEGIC, subresource="status"
            )
            await asyncio.sleep(1)
            scene.limiter.release(slot, Load.FINE)
            await asyncio.sleep(1)
            assert await scene.status_of("other") == "True"
            assert (await scene.pod("served")).metadata.resource_version == written.metadata.resource_version

    run_virtual(main())


def test_only_pods_that_lack_the_condition_cost_a_pass() -> None:
    body = pod_body("p", uid="1")
    assert keys_of(None, _pod(body), NO_STORES) == ()
    body["spec"]["readinessGates"] = [{"conditionType": keys.KRUISE_POD_READY}]
    assert keys_of(None, _pod(body), NO_STORES) == (Key("default", "p"),)
    assert keys_of(_pod(body), None, NO_STORES) == ()
    assert keys_of(None, _pod({**body, "status": {"conditions": [CONDITION]}}), NO_STORES) == ()
    body["metadata"]["ownerReferences"] = [CLONE_SET]
    assert keys_of(None, _pod(body), NO_STORES) == ()
    body["spec"]["nodeName"] = "n1"
    assert keys_of(None, _pod(body), NO_STORES) == (Key("default", "p"),)


def _pod(body: dict[str, Any]) -> Pod:
    return codec.convert(body, Pod)


def test_the_feature_runs_whatever_the_gates() -> None:  # IPU-81
    assert FEATURE.name == "readiness"
    assert [spec.name for spec in FEATURE.controllers(Options())] == ["pod-readiness-controller"]


def test_a_start_looks_only_at_pods_that_lack_the_condition() -> None:
    """Thousands of pods that have it must not hold up a manager that starts anew."""
    gate = {"readinessGates": [{"conditionType": keys.KRUISE_POD_READY}]}
    body = pod_body("web")
    waiting = codec.convert(body | {"spec": body["spec"] | gate}, Pod)
    done = codec.convert(body | {"spec": body["spec"] | gate, "status": {"conditions": [CONDITION]}}, Pod)
    assert SPEC.at_start is not None
    assert [SPEC.at_start(pod) for pod in (waiting, done, codec.convert(body, Pod))] == [True, False, False]
