"""A manager in the process of a local cluster, on virtual time: the toy kind from admission to running pods."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from kruise.admission.chain import PodStep, StepContext
from kruise.admission.decisions import Change, Deny
from kruise.admission.validating_chain import PodQuestion, PodValidationStep
from kruise.api.meta import LabelSelector
from kruise.api.native.config import CONFIG_MAPS, SERVICES, ConfigMap
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.embedded import install, managing
from kruise.feature import Feature, PodMutation, PodValidation
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.machinery import codec
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ForbiddenError, InvalidError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.selector_index import Selects
from kruise.machinery.watched import Watched
from kruise.manager.options import Options, Role
from tests.toy.api import TROUPES
from tests.toy.controller import FEATURE as TOY


def test_a_kind_is_defaulted_refused_created_and_updated_without_sockets() -> None:
    async def main() -> None:
        cluster = LocalCluster(ClusterOptions(seed=1), clock=VirtualClock(asyncio.get_running_loop()))
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await install(cluster, [TOY])
        client = cluster.client("test")

        async def one_pod() -> Pod:
            [pod] = (await client.list(PODS, "default")).items
            return pod

        head = {"apiVersion": TROUPES.api_version, "kind": "Troupe"}
        async with managing(cluster, [TOY], random=Random(1)) as manager:
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
            assert manager.journal.entries("troupe-controller")
        running.cancel()

    run_virtual(main())


def test_the_manager_has_a_name_in_managed_fields() -> None:
    """In process nobody tells a User-Agent. Nothing in the cluster was written by `unknown`."""

    async def main() -> None:
        cluster = LocalCluster(ClusterOptions(seed=1), clock=VirtualClock(asyncio.get_running_loop()))
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await install(cluster, [TOY])
        async with managing(cluster, [TOY], random=Random(1)):
            await asyncio.sleep(1)
            band = {"metadata": {"name": "band"}, "spec": {"image": "nginx:1.25"}}
            whole = {"apiVersion": TROUPES.api_version, "kind": "Troupe", **band}
            await cluster.client("test").create(TROUPES, whole, "default")
            await asyncio.sleep(30)
        reader = Client(InProcessTransport(cluster.core, managed_fields=True), clock=cluster.clock)
        writers: dict[str, set[tuple[str, str]]] = {}
        for resource in (TROUPES, PODS, NAMESPACES, SERVICES):
            answer = await reader.send(Request(Verb.LIST, resource))
            entries = [
                entry
                for item in codec.decode(answer.body, dict)["items"]
                for entry in item["metadata"]["managedFields"]
            ]
            writers[resource.plural] = {(entry["manager"], entry.get("subresource", "")) for entry in entries}
        running.cancel()
        assert writers == {
            "troupes": {("test", ""), ("kruise-manager", "status")},
            "pods": {("kruise-manager", ""), ("kruise-manager", "status"), ("kubelet", "status")},
            "namespaces": {("kube-apiserver", ""), ("kruise-install", "")},
            "services": {("kube-apiserver", ""), ("kruise-install", "")},
        }

    run_virtual(main())


CONTAINER = {"name": "main", "image": "nginx:1.25"}


def _by_greeting(found: ConfigMap) -> tuple[str, ...]:
    return tuple(found.data)


GREETINGS = Watched(
    CONFIG_MAPS,
    indexes={"greeting": _by_greeting},
    selectors={"pods": lambda found: [Selects(LabelSelector(match_labels=found.metadata.labels), "default")]},
)


def _greet(pod: dict[str, Any], context: StepContext) -> Change:
    """Notes on the pod what an index and a selector index say."""
    store = context.view.store(CONFIG_MAPS)
    found = [item.metadata.name for item in store.by_index("greeting", "hello")]
    selecting = store.selecting("pods", pod["metadata"]["labels"], context.namespace)
    notes = {"found": ",".join(found), "selected-by": ",".join(item.metadata.name for item in selecting)}
    marks = {"kruise.io/related-pub": "b"}
    return Change(object={**pod, "metadata": {**pod["metadata"], "annotations": {**notes, **marks}}})


def _keep(question: PodQuestion) -> Deny | None:
    keepers = question.view.store(CONFIG_MAPS).selecting("pods", question.pod.metadata.labels, question.namespace)
    names = ", ".join(item.metadata.name for item in keepers)
    return Deny(message=f"{question.operation.name}: kept by {names}") if keepers else None


WATCHFUL = Feature(
    name="watchful",
    pod_mutations=lambda settings: [PodMutation(PodStep.SIDECAR_SET, _greet, needs=(GREETINGS,))],
    pod_validations=lambda settings: [
        PodValidation(PodValidationStep.UNAVAILABLE_BUDGET, _keep, needs=(GREETINGS, PODS))
    ],
)


@pytest.mark.parametrize("role", [Role.ALL, Role.WEBHOOK])
def test_webhooks_find_objects_by_their_indexes_whatever_the_role(role: Role) -> None:
    """Both pod chains, as steps of a feature: on the way in, on an update, a deletion and an eviction."""

    async def main() -> None:
        cluster = LocalCluster(ClusterOptions(seed=1), clock=VirtualClock(asyncio.get_running_loop()))
        running = asyncio.create_task(cluster.run())
        await cluster.ready.wait()
        await install(cluster, [WATCHFUL])
        client = cluster.client("test")
        async with managing(cluster, [WATCHFUL], Options(role=role), random=Random(1)):
            await asyncio.sleep(1)
            for name, data in (("a", {"hello": ""}), ("b", {})):
                labels = {"app": name}
                await client.create(
                    CONFIG_MAPS, {"metadata": {"name": name, "labels": labels}, "data": data}, "default"
                )
            await asyncio.sleep(1)
            for name in ("b", "free"):
                body = {"metadata": {"name": name, "labels": {"app": name}}, "spec": {"containers": [CONTAINER]}}
                created = await client.create(PODS, body, "default")
                annotations = created.metadata.annotations
                assert (annotations["found"], annotations["selected-by"]) == ("a", "" if name == "free" else name)
            with pytest.raises(ForbiddenError, match="UPDATE: kept by b"):
                await client.patch(PODS, "b", {"metadata": {"labels": {"more": "x"}}}, "default")
            with pytest.raises(ForbiddenError, match="DELETE: kept by b"):
                await client.delete(PODS, "b", "default")
            with pytest.raises(ForbiddenError, match="EVICTION: kept by b"):
                await client.evict(PODS, "b", "default")
            await client.patch(PODS, "free", {"metadata": {"labels": {"more": "x"}}}, "default")
            await client.delete(PODS, "free", "default")
        running.cancel()

    run_virtual(main())
