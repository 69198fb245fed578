"""Guards, refusals and unknown outcomes as a real API server answers them."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.machinery.apply import Applier, Patience
from kruise.machinery.cache import Cache
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ConflictError, NotFoundError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import RealClock
from kruise.machinery.plan import Action, Plan, Result, Target, create, delete, evict, patch, single, status_patch
from tests.support.faults import DropAfter, DropBefore, Duplicate, FaultyTransport, Rule
from tests.support.inprocess import OWNER_UID, TOYS, pod_body
from tests.support.realcluster import ControlPlane

OTHER_UID = "00000000-0000-4000-8000-00000000ffff"
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota", True, PartialObject)
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True, PartialObject)


class Real:
    """An applier over a real API server, with faults in between."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        self.namespace = namespace
        self.transport = HttpTransport(kubeconfig.load(cluster.kubeconfig))
        self.faults = FaultyTransport(self.transport)
        self.client = Client(self.faults)
        self.direct = Client(self.transport)
        self.cache = Cache(self.client, clock=RealClock())
        self.applier = Applier(self.client, self.cache, clock=RealClock(), patience=Patience(first_delay=0.02))

    def body(self, name: str, **options: Any) -> dict[str, Any]:
        body = pod_body(name, **options)
        body["metadata"]["namespace"] = self.namespace
        return body

    async def add_pod(self, name: str, **options: Any) -> Pod:
        return await self.direct.create(PODS, self.body(name, **options), self.namespace)

    def new_pod(self, name: str) -> Action:
        body = self.body(name, owner_uid=OWNER_UID, finalizers=["example.com/keep"])
        return create(PODS, body, reason="scale", owner_uid=OWNER_UID)

    def at(self, name: str) -> Target:
        return Target(PODS, self.namespace, name)

    async def carry_out(self, action: Action) -> Result:
        return (await self.applier.carry_out(action)).result


@pytest.fixture
async def real(cluster: ControlPlane, namespace: str) -> AsyncIterator[Real]:
    scene = Real(cluster, namespace)
    yield scene
    # Pods that nobody runs and that carry a finalizer would keep the namespace for ever.
    for pod in (await scene.direct.list(PODS, namespace)).items:
        if pod.metadata.finalizers:
            await scene.direct.patch(PODS, pod.metadata.name, {"metadata": {"finalizers": None}}, namespace)
    await scene.client.close()


@pytest.mark.smoke
@pytest.mark.parametrize("patch_type", [PatchType.MERGE, PatchType.STRATEGIC])
@pytest.mark.parametrize("subresource", ["", "status"])
async def test_a_uid_guard_in_a_merge_patch(real: Real, patch_type: PatchType, subresource: str) -> None:
    pod = await real.add_pod("a")
    change = {"metadata": {"labels": {"x": "y"}}}

    def act(uid: str, version: str = "") -> Action:
        return patch(
            real.at("a"),
            change,
            uid=uid,
            reason="x",
            patch_type=patch_type,
            subresource=subresource,
            resource_version=version,
        )

    wrong = await real.applier.carry_out(act(OTHER_UID))
    assert (wrong.result, wrong.error_code) == (Result.MOVED, 422)
    assert await real.carry_out(act(pod.metadata.uid, "1")) is Result.MOVED
    assert await real.carry_out(act(pod.metadata.uid)) is Result.DONE
    assert await real.carry_out(patch(real.at("none"), change, uid=OTHER_UID, reason="x")) is Result.GONE


@pytest.mark.smoke
async def test_guards_in_a_json_patch(real: Real) -> None:
    # With a node, so that the scheduler leaves it alone and its version stays.
    pod = await real.add_pod("a", labels={"rev": "1"}, node="absent")
    uid, version = pod.metadata.uid, pod.metadata.resource_version

    def act(operations: list[dict[str, Any]], uid: str, version: str = "") -> Action:
        return patch(real.at("a"), operations, uid=uid, reason="x", patch_type=PatchType.JSON, resource_version=version)

    step = [
        {"op": "test", "path": "/metadata/labels/rev", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/rev", "value": "2"},
    ]
    assert await real.carry_out(act(step, OTHER_UID)) is Result.MOVED
    assert await real.carry_out(act(step, uid, "1")) is Result.MOVED
    assert await real.carry_out(act([{"op": "test", "path": "/metadata/none/x", "value": 1}], uid)) is Result.MOVED
    assert await real.carry_out(act([{"op": "remove", "path": "/metadata/labels/none"}], uid)) is Result.MOVED
    outcome = await real.applier.carry_out(act(step, uid, version))
    assert outcome.result is Result.DONE
    assert outcome.object.metadata.labels == {"rev": "2"}
    assert await real.carry_out(act(step, uid)) is Result.MOVED
    nonsense = [{"op": "replace", "path": "/spec/containers/0/image", "value": ""}]
    refused = await real.applier.carry_out(act(nonsense, uid))
    assert (refused.result, refused.error_reason) == (Result.FAILED, "Invalid")


@pytest.mark.smoke
async def test_guards_of_deletes(real: Real) -> None:
    pod = await real.add_pod("a")
    uid = pod.metadata.uid
    assert await real.carry_out(delete(real.at("a"), uid=OTHER_UID, reason="x")) is Result.MOVED
    assert await real.carry_out(delete(real.at("a"), uid=uid, reason="x", resource_version="1")) is Result.MOVED
    assert await real.carry_out(delete(real.at("a"), uid=uid, reason="x")) is Result.DONE
    assert await real.carry_out(delete(real.at("a"), uid=uid, reason="x")) is Result.DONE


async def test_guards_of_evictions(real: Real) -> None:
    """The server itself tries a pending pod's eviction for 10 s before it admits that the uid is another."""
    pod = await real.add_pod("a")
    assert await real.carry_out(evict(real.at("a"), uid=OTHER_UID, reason="x")) is Result.MOVED
    assert await real.carry_out(evict(real.at("a"), uid=pod.metadata.uid, reason="x")) is Result.DONE
    assert await real.carry_out(evict(real.at("a"), uid=pod.metadata.uid, reason="x")) is Result.DONE


async def test_a_budget_refuses_an_eviction(real: Real) -> None:
    pod = await real.add_pod("a", labels={"app": "a"})
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await real.direct.patch(PODS, "a", {"status": status}, real.namespace, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    metadata = {"name": "budget", "namespace": real.namespace}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    await real.direct.create(BUDGETS, body, real.namespace)
    refused = await real.applier.carry_out(evict(real.at("a"), uid=pod.metadata.uid, reason="x"))
    assert (refused.result, refused.error_code) == (Result.FAILED, 429)


@pytest.mark.smoke
@pytest.mark.parametrize("fault", [DropAfter(), DropBefore(sent=True), Duplicate(), DropAfter(timeout=0.2)])
async def test_a_create_of_unknown_outcome_is_settled(real: Real, fault: Any) -> None:
    real.faults.add(Rule(fault, verbs={Verb.CREATE}, times=1))
    outcome = await real.applier.carry_out(real.new_pod("a"))
    assert outcome.result is Result.DONE
    assert outcome.object.metadata.uid == (await real.direct.get(PODS, "a", real.namespace)).metadata.uid
    assert len(real.faults.log) == 1


async def test_names_that_are_taken(real: Real) -> None:
    await real.add_pod("theirs", owner_uid=OTHER_UID)
    refused = await real.applier.carry_out(real.new_pod("theirs"))
    assert (refused.result, refused.error_reason) == (Result.FAILED, "AlreadyExists")
    mine = await real.applier.carry_out(real.new_pod("mine"))
    assert await real.carry_out(real.new_pod("mine")) is Result.DONE
    await real.direct.delete(PODS, "mine", real.namespace, uid=mine.object.metadata.uid)
    assert await real.carry_out(real.new_pod("mine")) is Result.MOVED


async def test_patches_and_deletes_of_unknown_outcome_are_settled(real: Real) -> None:
    pod = await real.add_pod("a")
    real.faults.add(Rule(DropAfter(), verbs={Verb.PATCH, Verb.DELETE}, calls={1, 3}))
    change = {"metadata": {"labels": {"x": "y"}}}
    assert await real.carry_out(patch(real.at("a"), change, uid=pod.metadata.uid, reason="x")) is Result.DONE
    assert await real.carry_out(delete(real.at("a"), uid=pod.metadata.uid, reason="x")) is Result.DONE
    assert len(real.faults.log) == 2
    with pytest.raises(NotFoundError):
        await real.direct.get(PODS, "a", real.namespace)


async def test_a_quota_stops_a_slow_start_early(real: Real) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": real.namespace},
        "spec": {"hard": {"pods": "0"}},
    }
    await real.direct.create(QUOTAS, quota, real.namespace)
    creates = [real.new_pod(f"p{number}") for number in range(50)]
    async with asyncio.timeout(30):
        while True:  # until the quota is in force
            probe = await real.applier.carry_out(real.new_pod(f"probe-{uuid.uuid4().hex[:6]}"))
            if probe.result is Result.FAILED and "exceeded quota" in probe.error:
                break
            await asyncio.sleep(0.2)
    outcomes = await real.applier.apply(Plan(phases=(single("scale", *creates, slow_start=True),)))
    assert Counter(outcome.result for outcome in outcomes) == {Result.FAILED: 1, Result.SKIPPED: 49}
    assert outcomes.failed[0].error_reason == "Forbidden"
    assert "exceeded quota" in outcomes.failed[0].error


async def test_many_writes_are_all_in_the_store_when_they_are_done(real: Real) -> None:
    store = real.cache.add(PODS)
    task = asyncio.create_task(real.cache.run())
    try:
        await real.cache.wait_synced(10)
        creates = [real.new_pod(f"p{number}") for number in range(60)]
        outcomes = await real.applier.apply(Plan(phases=(single("scale", *creates, slow_start=True),)))
        assert {outcome.result for outcome in outcomes} == {Result.DONE}
        assert len(store.list(real.namespace)) == 60
        removals = [
            delete(real.at(outcome.action.target.name), uid=outcome.object.metadata.uid, reason="x")
            for outcome in outcomes
        ]
        outcomes = await real.applier.apply(Plan(phases=(single("remove", *removals),)))
        assert {outcome.result for outcome in outcomes} == {Result.DONE}
        assert all(store.is_terminating(pod) for pod in store.list(real.namespace))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def toy_kind(real: Real) -> AsyncGenerator[None, None]:
    """The toy kind as a custom resource."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": TOYS.plural, "kind": TOYS.kind, "singular": "toy"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": TOYS.group_resource},
        "spec": {"group": TOYS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    await real.direct.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    try:
        async with asyncio.timeout(30):
            while True:
                try:
                    await real.direct.list(TOYS, real.namespace)
                    break
                except NotFoundError:
                    await asyncio.sleep(0.1)
        yield
    finally:
        await real.direct.delete(CUSTOM_RESOURCE_DEFINITIONS, TOYS.group_resource)


async def test_the_status_of_a_custom_resource(real: Real) -> None:
    """A merge patch's uid is ignored there: the JSON patch of `status_patch` is the guard, and the answer's uid tells
    where somebody used a merge patch all the same."""
    async with toy_kind(real):
        metadata = {"name": "toy", "namespace": real.namespace}
        toy = await real.direct.create(
            TOYS, {"apiVersion": TOYS.api_version, "kind": "Toy", "metadata": metadata}, real.namespace
        )
        target = Target(TOYS, real.namespace, "toy")
        wrong = status_patch(target, {"replicas": 3}, uid=OTHER_UID, reason="x")
        assert await real.carry_out(wrong) is Result.MOVED
        assert (await real.direct.get(TOYS, "toy", real.namespace)).status.replicas == 0
        stale = status_patch(target, {"replicas": 3}, uid=toy.metadata.uid, reason="x", resource_version="1")
        assert await real.carry_out(stale) is Result.MOVED
        right = await real.applier.carry_out(status_patch(target, {"replicas": 3}, uid=toy.metadata.uid, reason="x"))
        assert right.result is Result.DONE
        assert right.object.status.replicas == 3
        merged = patch(target, {"status": {"replicas": 4}}, uid=OTHER_UID, reason="x", subresource="status")
        assert await real.carry_out(merged) is Result.MOVED
        spec = patch(target, {"spec": {"replicas": 4}}, uid=OTHER_UID, reason="x")
        assert await real.carry_out(spec) is Result.MOVED
        assert (await real.direct.get(TOYS, "toy", real.namespace)).spec.replicas == 0
        with pytest.raises(ConflictError):
            await real.direct.delete(TOYS, "toy", real.namespace, uid=OTHER_UID)
