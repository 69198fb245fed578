"""The client against a real API server: every verb, every patch type, and how the server says no."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    TooManyRequestsError,
    TransportError,
)
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType, Request, Verb
from tests.support.faults import Cut, CutWatch, DropAfter, FaultyTransport, Rule
from tests.support.realcluster import ControlPlane
from tests.support.waiting import eventually

BUDGETS: Resource[Any] = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
WRONG_UID = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
async def client(control_plane: ControlPlane) -> AsyncIterator[Client]:
    transport = HttpTransport(kubeconfig.load(control_plane.kubeconfig, env={}), user_agent="kruise-test")
    async with Client(transport, field_manager="kruise-test") as made:
        yield made


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    """A pod that no scheduler takes away: it stays as it is written."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | metadata,
        "spec": {
            "schedulerName": "nobody",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "example/main:1"}, {"name": "side", "image": "example/side:1"}],
        },
    }


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example/main:1"}]},
            },
        },
    }


@pytest.mark.smoke
async def test_create_get_update_delete(client: Client, namespace: str) -> None:
    """The plain life of an object."""
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
    assert made.metadata.uid
    assert made.data == {"x": "1"}
    with pytest.raises(AlreadyExistsError):
        await client.create(CONFIG_MAPS, config_map("a"), namespace)
    assert await client.get(CONFIG_MAPS, "a", namespace) == made
    body = config_map("a", x="2")
    body["metadata"]["resourceVersion"] = made.metadata.resource_version
    changed = await client.update(CONFIG_MAPS, "a", body, namespace)
    assert changed.data == {"x": "2"}
    with pytest.raises(ConflictError):
        await client.update(CONFIG_MAPS, "a", body, namespace)
    deleted = await client.delete(CONFIG_MAPS, "a", namespace, uid=made.metadata.uid)
    assert deleted.uid == made.metadata.uid
    with pytest.raises(NotFoundError) as caught:
        await client.get(CONFIG_MAPS, "a", namespace)
    assert caught.value.status.details.name == "a"
    with pytest.raises(NotFoundError):
        await client.delete(CONFIG_MAPS, "a", namespace)


@pytest.mark.smoke
async def test_every_patch_type(client: Client, namespace: str) -> None:
    """Merge, strategic, JSON with a test, and server-side apply."""
    made = await client.create(PODS, pod("a", labels={"keep": "1", "drop": "1"}), namespace)
    merged = await client.patch(PODS, "a", {"metadata": {"labels": {"drop": None, "new": "2"}}}, namespace)
    assert merged.metadata.labels == {"keep": "1", "new": "2"}
    strategic = await client.patch(
        PODS,
        "a",
        {"spec": {"containers": [{"name": "side", "image": "example/side:2"}]}},
        namespace,
        patch_type=PatchType.STRATEGIC,
    )
    assert [container.image for container in strategic.spec.containers] == ["example/main:1", "example/side:2"]
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": made.metadata.uid},
        {"op": "replace", "path": "/spec/containers/0/image", "value": "example/main:2"},
    ]
    patched = await client.patch(PODS, "a", operations, namespace, patch_type=PatchType.JSON)
    assert [container.image for container in patched.spec.containers] == ["example/main:2", "example/side:2"]
    operations[0]["value"] = WRONG_UID
    with pytest.raises(InvalidError) as caught:
        await client.patch(PODS, "a", operations, namespace, patch_type=PatchType.JSON)
    assert caught.value.code == 422
    with pytest.raises(BadRequestError):
        await client.patch(PODS, "a", b"[", namespace, patch_type=PatchType.JSON)


@pytest.mark.smoke
async def test_server_side_apply(client: Client, namespace: str) -> None:
    """Another manager's field is a conflict, unless it is taken by force."""
    first = await client.patch(
        CONFIG_MAPS, "a", config_map("a", x="1"), namespace, patch_type=PatchType.APPLY, field_manager="one"
    )
    assert first.data == {"x": "1"}
    apply = {"patch_type": PatchType.APPLY, "field_manager": "two"}
    with pytest.raises(ConflictError) as caught:
        await client.patch(CONFIG_MAPS, "a", config_map("a", x="2"), namespace, **apply)
    assert [(cause.reason, cause.field) for cause in caught.value.causes] == [("FieldManagerConflict", ".data.x")]
    forced = await client.patch(CONFIG_MAPS, "a", config_map("a", x="2"), namespace, force=True, **apply)
    assert forced.data == {"x": "2"}


async def test_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    shown = await client.create(CONFIG_MAPS, config_map("a"), namespace, dry_run=True)
    assert shown.metadata.name == "a"
    with pytest.raises(NotFoundError):
        await client.get(CONFIG_MAPS, "a", namespace)
    made = await client.create(CONFIG_MAPS, config_map("a", x="1"), namespace)
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "2"}}, namespace, dry_run=True)
    await client.delete(CONFIG_MAPS, "a", namespace, dry_run=True)
    assert await client.get(CONFIG_MAPS, "a", namespace) == made


@pytest.mark.smoke
async def test_guards(client: Client, namespace: str) -> None:
    """Deletes with preconditions answer 409; a patch that names another uid answers 409 or, tested, 422."""
    made = await client.create(CONFIG_MAPS, config_map("a"), namespace)
    with pytest.raises(ConflictError) as caught:
        await client.delete(CONFIG_MAPS, "a", namespace, uid=WRONG_UID)
    assert caught.value.code == 409
    with pytest.raises(ConflictError):
        await client.delete(CONFIG_MAPS, "a", namespace, resource_version="1")
    with pytest.raises(ApiError) as guarded:
        await client.patch(CONFIG_MAPS, "a", {"metadata": {"uid": WRONG_UID}, "data": {"x": "1"}}, namespace)
    assert guarded.value.code == 422
    with pytest.raises(ConflictError):
        await client.patch(CONFIG_MAPS, "a", {"metadata": {"resourceVersion": "1"}, "data": {"x": "1"}}, namespace)
    assert await client.get(CONFIG_MAPS, "a", namespace) == made
    deleted = await client.delete(
        CONFIG_MAPS, "a", namespace, uid=made.metadata.uid, resource_version=made.metadata.resource_version
    )
    assert deleted.uid == made.metadata.uid


async def test_graceful_deletion_and_finalizers(client: Client, namespace: str) -> None:
    """While the server still holds the object, the answer is the object with its deletion time."""
    made = await client.create(PODS, pod("a", finalizers=["example.com/hold"]), namespace)
    deleted = await client.delete(PODS, "a", namespace, uid=made.metadata.uid)
    assert deleted.object is not None
    assert deleted.object.metadata.deletion_timestamp is not None
    freed = await client.patch(PODS, "a", {"metadata": {"finalizers": None}}, namespace)
    assert freed.metadata.finalizers == ()
    with pytest.raises(NotFoundError):
        await client.get(PODS, "a", namespace)
    made = await client.create(PODS, pod("b"), namespace)
    assert (await client.delete(PODS, "b", namespace, grace_period_seconds=0)).uid == made.metadata.uid


async def test_delete_collection(client: Client, namespace: str) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        body = config_map(name)
        body["metadata"]["labels"] = {"group": label}
        await client.create(CONFIG_MAPS, body, namespace)
    await client.delete_collection(CONFIG_MAPS, namespace, labels="group=x")
    left = await client.list(CONFIG_MAPS, namespace, labels="group")
    assert [item.metadata.name for item in left.items] == ["c"]


@pytest.mark.smoke
async def test_status_patch_carries_labels(client: Client, namespace: str) -> None:
    """One write for conditions, labels and annotations: `pods/status` takes all three."""
    await client.create(PODS, pod("a"), namespace)
    patch = {
        "metadata": {"labels": {"lifecycle": "Normal"}, "annotations": {"at": "now"}},
        "status": {"conditions": [{"type": "KruisePodReady", "status": "True"}]},
    }
    changed = await client.patch(PODS, "a", patch, namespace, patch_type=PatchType.STRATEGIC, subresource="status")
    assert changed.metadata.labels == {"lifecycle": "Normal"}
    assert changed.metadata.annotations["at"] == "now"
    assert ("KruisePodReady", "True") in [(found.type, found.status) for found in changed.status.conditions]


async def test_eviction_and_budgets(client: Client, namespace: str) -> None:
    """A budget refuses with 429 and the reason; the uid guard answers 409; without a budget the pod goes."""
    for name in ("a", "b"):
        await client.create(PODS, pod(name, labels={"app": name}), namespace)
        # Only a running pod counts for a budget; one that never started is let go.
        await client.patch(
            PODS,
            name,
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            namespace,
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    }
    await client.create(BUDGETS, budget, namespace)
    with pytest.raises(TooManyRequestsError) as caught:
        await client.evict(PODS, "a", namespace)
    assert caught.value.code == 429
    with pytest.raises(ConflictError):
        await client.evict(PODS, "b", namespace, uid=WRONG_UID)
    await client.evict(PODS, "b", namespace, dry_run=True)
    assert (await client.get(PODS, "b", namespace)).metadata.deletion_timestamp is None
    await client.evict(PODS, "b", namespace, grace_period_seconds=0)
    with contextlib.suppress(NotFoundError):
        assert (await client.get(PODS, "b", namespace)).metadata.deletion_timestamp is not None
    with pytest.raises(NotFoundError):
        await client.evict(PODS, "nobody", namespace)


async def test_binding(client: Client, namespace: str) -> None:
    node = f"node-{namespace}"
    await client.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    try:
        made = await client.create(PODS, pod("a"), namespace)
        with pytest.raises(ConflictError):
            await client.bind(PODS, "a", namespace, node=node, uid=WRONG_UID)
        await client.bind(PODS, "a", namespace, node=node, uid=made.metadata.uid)
        assert (await client.get(PODS, "a", namespace)).spec.node_name == node
        on_node = await client.list(PODS, fields=f"spec.nodeName={node}")
        assert [item.metadata.name for item in on_node.items] == ["a"]
    finally:
        await client.delete(NODES, node)


@pytest.mark.smoke
async def test_scale(client: Client, namespace: str) -> None:
    await client.create(DEPLOYMENTS, deployment("d"), namespace)
    assert (await client.get_scale(DEPLOYMENTS, "d", namespace)).spec.replicas == 0
    scale = await client.set_scale(DEPLOYMENTS, "d", 3, namespace)
    assert scale.spec.replicas == 3
    assert scale.status.selector == "app=d"
    assert (await client.get(DEPLOYMENTS, "d", namespace)).spec.replicas == 3


async def test_ephemeral_containers_and_resize(client: Client, namespace: str) -> None:
    await client.create(PODS, pod("a"), namespace)
    debug = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "example/debug:1"}]}}
    changed = await client.patch(
        PODS, "a", debug, namespace, patch_type=PatchType.STRATEGIC, subresource="ephemeralcontainers"
    )
    assert [container.name for container in changed.spec.ephemeral_containers] == ["debug"]
    body = pod("r")
    for container in body["spec"]["containers"]:
        container["resources"] = {"requests": {"cpu": "100m"}}
    await client.create(PODS, body, namespace)
    resize = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
    changed = await client.patch(PODS, "r", resize, namespace, patch_type=PatchType.STRATEGIC, subresource="resize")
    assert changed.spec.containers[0].resources.requests == {"cpu": "200m"}


@pytest.mark.smoke
async def test_paging(client: Client, namespace: str) -> None:
    """Pages are one consistent list, whatever happens in between."""
    for number in range(7):
        await client.create(CONFIG_MAPS, config_map(f"c{number}"), namespace)
    first = await client.list_page(CONFIG_MAPS, namespace, limit=3)
    assert len(first.items) == 3
    assert first.remaining is not None
    await client.create(CONFIG_MAPS, config_map("later"), namespace)
    names, token = [item.metadata.name for item in first.items], first.continue_token
    while token:
        page = await client.list_page(CONFIG_MAPS, namespace, limit=3, continue_token=token)
        assert page.resource_version == first.resource_version
        names += [item.metadata.name for item in page.items]
        token = page.continue_token
    assert "later" not in names
    whole = await client.list(CONFIG_MAPS, namespace, page_size=2)
    assert {*names, "later"} == {item.metadata.name for item in whole.items}


@pytest.mark.smoke
async def test_watch(client: Client, namespace: str) -> None:
    """A change of each kind, in order, after the list."""
    start = await client.list(CONFIG_MAPS, namespace, labels="mine")
    body = config_map("a", x="1")
    body["metadata"]["labels"] = {"mine": "yes"}
    seen: list[tuple[str, str]] = []
    async with (
        asyncio.timeout(20),
        client.watch(CONFIG_MAPS, namespace, resource_version=start.resource_version, labels="mine") as events,
    ):
        await client.create(CONFIG_MAPS, body, namespace)
        await client.patch(CONFIG_MAPS, "a", {"data": {"x": "2"}}, namespace)
        await client.delete(CONFIG_MAPS, "a", namespace)
        async for event in events:
            if event.type != "BOOKMARK":
                seen.append((event.type, event.object.data.get("x", "")))
            if len(seen) == 3:
                break
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


async def test_watch_ends_in_order_with_a_bookmark(client: Client, namespace: str) -> None:
    """The server ends the watch after the time that was asked for. Shortly before, a bookmark tells the version,
    past changes that the selector hides."""
    start = await client.list(CONFIG_MAPS, namespace, labels="mine")
    seen = []
    async with (
        asyncio.timeout(30),
        client.watch(
            CONFIG_MAPS, namespace, resource_version=start.resource_version, labels="mine", timeout_seconds=5
        ) as events,
    ):
        hidden = await client.create(CONFIG_MAPS, config_map("hidden"), namespace)
        async for event in events:
            seen.append((event.type, int(event.object.metadata.resource_version)))
    assert {kind for kind, _ in seen} == {"BOOKMARK"}
    assert seen[-1][1] >= int(hidden.metadata.resource_version)


@contextlib.asynccontextmanager
async def toy_kind(client: Client, group: str) -> AsyncIterator[Resource[PartialObject]]:
    """A kind of the test's own, served from now on."""
    names = {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"toys.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    toys = Resource(group, "v1", "toys", "Toy", True, PartialObject)
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    await client.list(toys)
                    break
                except NotFoundError:
                    await asyncio.sleep(0.1)
        yield toys
    finally:
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"toys.{group}")


@pytest.mark.smoke
async def test_an_old_version_is_gone(client: Client, namespace: str) -> None:
    """The server's memory of a kind begins with the kind: a watch from version 1 is answered with 410."""

    async def watch(toys: Resource[PartialObject]) -> int:
        try:
            async with client.watch(toys, namespace, resource_version="1", timeout_seconds=5) as events:
                async for _ in events:
                    pass
        except GoneError as error:
            return error.code
        except TooManyRequestsError as error:
            raise AssertionError("the storage of the new kind is still being set up") from error
        return 0

    async with toy_kind(client, f"{namespace[-8:]}.example.com") as toys:
        assert await eventually(lambda: watch(toys)) == 410


@pytest.mark.smoke
async def test_invalid_names_the_fields(client: Client, namespace: str) -> None:
    body = pod("a")
    body["spec"]["containers"][0]["name"] = "Not A Name"
    body["spec"]["containers"][1]["image"] = ""
    with pytest.raises(InvalidError) as caught:
        await client.create(PODS, body, namespace)
    assert {cause.field for cause in caught.value.causes} == {"spec.containers[0].name", "spec.containers[1].image"}


async def test_forbidden_and_impersonation(client: Client, namespace: str) -> None:
    """A user without rights is told so by name."""
    with pytest.raises(ForbiddenError, match='User "nobody"'):
        await client.send(Request(Verb.GET, PODS, namespace, "a", impersonate="nobody"))


@pytest.mark.smoke
async def test_discovery(client: Client) -> None:
    version = await client.server_version()
    assert version.at_least(1, 28)
    served = await client.discover()
    assert served.unreachable == ()
    pods = served.find("po")
    assert pods is not None
    assert pods.resource == PODS
    assert served.is_served(PODS, "eviction")
    assert served.is_served(DEPLOYMENTS, "scale")
    deployments = served.find("deploy")
    assert deployments is not None
    assert deployments.resource == DEPLOYMENTS
    assert not served.is_served(Resource("apps.kruise.io", "v1", "nothings", "Nothing"))


async def test_many_at_once(client: Client, namespace: str) -> None:
    """A hundred writes in flight on one transport."""
    bodies = [config_map(f"c{number}") for number in range(100)]
    made = await asyncio.gather(*(client.create(CONFIG_MAPS, body, namespace) for body in bodies))
    assert len({item.metadata.uid for item in made}) == 100


async def test_objects_of_a_megabyte(client: Client, namespace: str) -> None:
    """Large objects come through get, list and watch."""
    start = await client.list(CONFIG_MAPS, namespace)
    text = "x" * 1_000_000
    await client.create(CONFIG_MAPS, config_map("big", x=text), namespace)
    assert (await client.get(CONFIG_MAPS, "big", namespace)).data["x"] == text
    listed = await client.list(CONFIG_MAPS, namespace)
    assert max(len(item.data.get("x", "")) for item in listed.items) == 1_000_000
    async with (
        asyncio.timeout(20),
        client.watch(CONFIG_MAPS, namespace, resource_version=start.resource_version) as events,
    ):
        async for event in events:
            if event.object.metadata.name == "big":
                assert event.object.data["x"] == text
                break


async def test_faults_over_a_real_server(client: Client, namespace: str) -> None:
    """A lost answer is a create that happened; a cut watch goes on from where it was."""
    rules = [
        Rule(DropAfter(), verbs={Verb.CREATE}, name="", times=1),
        Rule(CutWatch(after=1, how=Cut.MID_LINE), times=1),
    ]
    faulty = Client(FaultyTransport(client.transport, rules), field_manager="kruise-test")
    start = await faulty.list(CONFIG_MAPS, namespace, labels="mine")
    body = config_map("a")
    body["metadata"]["labels"] = {"mine": "yes"}
    with pytest.raises(TransportError) as caught:
        await faulty.create(CONFIG_MAPS, body, namespace)
    assert caught.value.sent is True
    with pytest.raises(AlreadyExistsError):
        await faulty.create(CONFIG_MAPS, body, namespace)
    await faulty.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
    seen: list[str] = []
    version = start.resource_version
    async with asyncio.timeout(20):
        while len(seen) < 2:
            with contextlib.suppress(TransportError):
                async with faulty.watch(
                    CONFIG_MAPS, namespace, resource_version=version, labels="mine", bookmarks=False
                ) as events:
                    async for event in events:
                        seen.append(event.type)
                        version = event.object.metadata.resource_version
                        if len(seen) == 2:
                            break
    assert seen == ["ADDED", "MODIFIED"]
