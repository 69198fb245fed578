"""Namespaces from their first moment to their end, over a core in process on virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS, REPLICA_SETS
from kruise.api.native.config import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore, custom_kind
from kruise.local.apicore.admitting import AdmissionRequest, Operation
from kruise.local.apicore.errors import forbidden
from kruise.local.collector import of_registry
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.namespaces import Namespaces
from kruise.local.namespaces.conditions import Findings, conditions
from kruise.local.namespaces.contents import CERTIFICATES, DESCRIPTION, DESCRIPTION_KEY
from kruise.machinery.client.client import Client
from kruise.machinery.client.discovery import Discovery, ServedResource
from kruise.machinery.client.errors import ForbiddenError, UnavailableError
from kruise.machinery.client.errors import Status as ApiStatus
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import decode
from tests.support.background import in_background

WIDGETS = Resource("toys.kruise.io", "v1", "widgets", "Widget", True, PartialObject)
BUNDLE = "-----BEGIN CERTIFICATE-----\n"


class World:
    def __init__(self) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = ApiCore(native_registry([custom_kind(WIDGETS)]), clock=self.clock, seed=1, require_namespaces=True)
        self.client = Client(InProcessTransport(self.core), clock=self.clock)
        self.discover = of_registry(self.core.registry)
        self.broken = ""

    async def kinds(self) -> Discovery:
        found = await self.discover()
        if self.broken == "all":
            raise UnavailableError(ApiStatus(message="no discovery today", code=503))
        return dataclasses.replace(found, unreachable=("metrics.k8s.io/v1",)) if self.broken else found

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        service = Namespaces(self.client, clock=self.clock, discover=self.kinds, bundle=BUNDLE)
        async with in_background(service.run()):
            await asyncio.sleep(1)
            yield

    async def namespace(self, name: str = "ns") -> None:
        await self.client.create(NAMESPACES, {"metadata": {"name": name}})
        await asyncio.sleep(1)

    async def make(self, name: str, resource: Resource[Any] = CONFIG_MAPS, **more: Any) -> None:
        metadata = {"name": name, **more.pop("metadata", {})}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more}
        await self.client.create(resource, body, "ns")

    async def pod(self, name: str, **metadata: Any) -> None:
        spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "nginx:1"}]}
        await self.make(name, PODS, metadata=metadata, spec=spec)

    async def names(self, resource: Resource[Any], namespace: str = "") -> list[str]:
        return [obj.metadata.name for obj in (await self.client.list(resource, namespace)).items]

    async def read(self, name: str = "ns") -> dict[str, Any]:
        answer = await self.client.send(Request(Verb.GET, NAMESPACES, name=name))
        return decode(answer.body, dict)

    async def conditions(self) -> dict[str, tuple[str, str, str]]:
        found = (await self.read())["status"].get("conditions", [])
        return {item["type"]: (item["status"], item["reason"], item["message"]) for item in found}


def virtually(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World()
        async with world.running():
            await scenario(world)

    run_virtual(main())


def test_a_cluster_begins_with_four_namespaces_that_hold_their_account_and_certificates() -> None:
    async def scenario(world: World) -> None:
        assert await world.names(NAMESPACES) == ["default", "kube-node-lease", "kube-public", "kube-system"]
        for namespace in await world.names(NAMESPACES):
            assert await world.names(SERVICE_ACCOUNTS, namespace) == ["default"]
            published = await world.client.get(CONFIG_MAPS, CERTIFICATES, namespace)
            assert published.data == {"ca.crt": BUNDLE}
            assert published.metadata.annotations == {DESCRIPTION_KEY: DESCRIPTION}

    virtually(scenario)


def test_what_a_namespace_should_hold_comes_back_and_is_put_right() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.client.delete(SERVICE_ACCOUNTS, "default", "ns")
        await world.client.delete(CONFIG_MAPS, CERTIFICATES, "ns")
        await asyncio.sleep(5)
        assert await world.names(SERVICE_ACCOUNTS, "ns") == ["default"]
        assert await world.names(CONFIG_MAPS, "ns") == [CERTIFICATES]
        patch = {"data": {"ca.crt": "forged", "more": "x"}, "metadata": {"annotations": None}}
        await world.client.patch(CONFIG_MAPS, CERTIFICATES, patch, "ns")
        await asyncio.sleep(5)
        published = await world.client.get(CONFIG_MAPS, CERTIFICATES, "ns")
        assert published.data == {"ca.crt": BUNDLE}
        assert published.metadata.annotations == {DESCRIPTION_KEY: DESCRIPTION}

    virtually(scenario)


def test_an_empty_namespace_goes_quickly() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.client.delete(NAMESPACES, "ns")
        assert (await world.read())["status"]["phase"] == "Terminating"
        await asyncio.sleep(1)
        assert "ns" not in await world.names(NAMESPACES)
        assert await world.names(SERVICE_ACCOUNTS, "ns") == []

    virtually(scenario)


def test_everything_in_it_goes_of_every_kind_and_nothing_elsewhere() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.make("c")
        await world.make("s", SECRETS)
        await world.make("w", WIDGETS)
        labels = {"app": "x"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        for resource in (DEPLOYMENTS, REPLICA_SETS):
            await world.make("d", resource, spec={"selector": {"matchLabels": labels}, "template": template})
        await world.client.create(CONFIG_MAPS, {"metadata": {"name": "c"}}, "default")
        await world.client.delete(NAMESPACES, "ns")
        with pytest.raises(ForbiddenError, match="because it is being terminated"):
            await world.make("late")
        await asyncio.sleep(2)
        assert "ns" not in await world.names(NAMESPACES)
        for resource in (CONFIG_MAPS, SECRETS, WIDGETS, DEPLOYMENTS, REPLICA_SETS):
            assert await world.names(resource, "ns") == [], resource
        assert "c" in await world.names(CONFIG_MAPS, "default")

    virtually(scenario)


def test_pods_end_first_and_are_waited_for() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.pod("p")
        await world.make("c")
        await world.client.delete(NAMESPACES, "ns")
        await asyncio.sleep(5)
        assert await world.names(PODS, "ns") == ["p"]
        pod = await world.client.get(PODS, "p", "ns")
        assert pod.metadata.deletion_timestamp is not None
        assert "c" in await world.names(CONFIG_MAPS, "ns"), "the rest waits for the pods"
        await world.client.delete(PODS, "p", "ns", grace_period_seconds=0)
        await asyncio.sleep(5)
        assert "ns" not in await world.names(NAMESPACES)

    virtually(scenario)


def test_a_pod_that_outlives_its_grace_is_told_and_tried_again() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.pod("p")
        await world.client.delete(NAMESPACES, "ns")
        await asyncio.sleep(60)
        assert (await world.conditions())["NamespaceDeletionContentFailure"] == (
            "True",
            "ContentDeletionFailed",
            "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: ns for gvr: "
            "/v1, Resource=pods",
        )
        await world.client.delete(PODS, "p", "ns", grace_period_seconds=0)
        await asyncio.sleep(130)
        assert "ns" not in await world.names(NAMESPACES)

    virtually(scenario)


def test_finalizers_of_content_hold_it_and_are_named() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.make("c", metadata={"finalizers": ["kruise.io/stay", "kruise.io/more"]})
        await world.make("w", WIDGETS, metadata={"finalizers": ["kruise.io/stay"]})
        await world.client.delete(NAMESPACES, "ns")
        await asyncio.sleep(5)
        told = await world.conditions()
        assert list(told) == [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceDeletionContentFailure",
            "NamespaceContentRemaining",
            "NamespaceFinalizersRemaining",
        ]
        assert told["NamespaceDeletionContentFailure"][0] == "False"
        assert told["NamespaceContentRemaining"] == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances, "
            "widgets.toys.kruise.io has 1 resource instances",
        )
        assert told["NamespaceFinalizersRemaining"] == (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: kruise.io/more in 1 resource instances, "
            "kruise.io/stay in 2 resource instances",
        )
        for resource, name in ((CONFIG_MAPS, "c"), (WIDGETS, "w")):
            await world.client.patch(resource, name, {"metadata": {"finalizers": None}}, "ns")
        await asyncio.sleep(5)
        assert "ns" not in await world.names(NAMESPACES)

    virtually(scenario)


def test_what_cannot_be_deleted_is_told_and_the_rest_goes() -> None:
    async def scenario(world: World) -> None:
        await world.namespace()
        await world.make("c")
        await world.make("s", SECRETS)
        is_open = False

        async def guard(request: AdmissionRequest) -> None:
            if request.operation is Operation.DELETE and request.kind.plural == "secrets" and not is_open:
                raise forbidden("", "secrets", request.name, "kept")

        world.core.admission.validating.append(guard)
        await world.client.delete(NAMESPACES, "ns")
        await asyncio.sleep(5)
        assert await world.names(CONFIG_MAPS, "ns") == []
        status, reason, message = (await world.conditions())["NamespaceDeletionContentFailure"]
        assert (status, reason) == ("True", "ContentDeletionFailed")
        assert message == 'Failed to delete all resource types, 1 remaining: secrets "s" is forbidden: kept'
        is_open = True
        await asyncio.sleep(130)
        assert "ns" not in await world.names(NAMESPACES)

    virtually(scenario)


def test_discovery_that_fails_in_part_or_whole_keeps_the_namespace() -> None:
    async def scenario(world: World) -> None:
        for broken, message in (
            (
                "some",
                "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
                "metrics.k8s.io/v1",
            ),
            ("all", "no discovery today"),
        ):
            await world.namespace()
            world.broken = broken
            await world.client.delete(NAMESPACES, "ns")
            await asyncio.sleep(5)
            told = (await world.conditions())["NamespaceDeletionDiscoveryFailure"]
            assert told == ("True", "DiscoveryFailed", message)
            world.broken = ""
            await asyncio.sleep(130)
            assert "ns" not in await world.names(NAMESPACES)

    virtually(scenario)


def test_finalizers_of_others_stay() -> None:
    async def scenario(world: World) -> None:
        body = {"metadata": {"name": "ns"}, "spec": {"finalizers": ["kruise.io/mine"]}}
        await world.client.create(NAMESPACES, body)
        await world.client.delete(NAMESPACES, "ns")
        await asyncio.sleep(5)
        found = await world.read()
        assert found["spec"]["finalizers"] == ["kruise.io/mine"]
        found["spec"]["finalizers"] = []
        await world.client.update(NAMESPACES, "ns", found, subresource="finalize")
        assert "ns" not in await world.names(NAMESPACES)

    virtually(scenario)


def test_a_namespace_made_again_is_a_new_one() -> None:
    async def scenario(world: World) -> None:
        uids = set()
        for _ in range(3):
            await world.namespace()
            uids.add((await world.read())["metadata"]["uid"])
            assert await world.names(SERVICE_ACCOUNTS, "ns") == ["default"]
            await world.client.delete(NAMESPACES, "ns")
            await asyncio.sleep(2)
        assert len(uids) == 3

    virtually(scenario)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await asyncio.sleep(5)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before

    virtually(scenario)


def test_conditions_keep_their_time_while_their_status_stays() -> None:
    served = ServedResource(group="", version="v1", plural="pods", kind="Pod")
    first = conditions([], Findings(remaining={served: 2}), "t1")
    second = conditions(first, Findings(remaining={served: 1}), "t2")
    third = conditions(second, Findings(), "t3")
    (at,) = [position for position, item in enumerate(first) if item["type"] == "NamespaceContentRemaining"]
    assert [(each[at]["status"], each[at]["lastTransitionTime"]) for each in (first, second, third)] == [
        ("True", "t1"),
        ("True", "t1"),
        ("False", "t3"),
    ]
    assert second[at]["message"].endswith("pods. has 1 resource instances")


def test_conditions_of_others_are_left_alone() -> None:
    mine = {"type": "Mine", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "t0"}
    assert conditions([mine], Findings(), "t1")[0] == mine
    assert len(conditions([mine], Findings(), "t1")) == 6
