"""The local garbage collector and namespaces come to the same end as kube-controller-manager's.

The same scenario is played on a real control plane and on a core in process (on virtual time). Compared is what is
left in the end: names, owner references, finalizers, whether an object is being deleted, and events.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from kruise.api.native.apps import DEPLOYMENTS, REPLICA_SETS
from kruise.api.native.config import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore
from kruise.local.collector import GarbageCollector, of_registry
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.namespaces import Namespaces
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import decode
from tests.support.realcluster import ControlPlane
from tests.support.waiting import eventually

Json = dict[str, Any]
STAY = "kruise.io/stay"
KINDS: tuple[Resource[Any], ...] = (CONFIG_MAPS, SECRETS, REPLICA_SETS, DEPLOYMENTS)


class Side:
    """One of the two clusters. `other` is a second namespace."""

    def __init__(self, client: Client, namespace: str, other: str, *, patience: float) -> None:
        self.client = client
        self.namespace = namespace
        self.other = other
        self._patience = patience

    async def make(
        self, name: str, *owners: Json, resource: Resource[Any] = CONFIG_MAPS, namespace: str = "", **more: Any
    ) -> Any:
        metadata = {"name": name, **more.pop("metadata", {})}
        if owners:
            metadata["ownerReferences"] = list(owners)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **more}
        return await self.client.create(resource, body, namespace or self.namespace)

    async def delete(self, name: str, propagation: str = "", resource: Resource[Any] = CONFIG_MAPS) -> None:
        await self.client.delete(resource, name, self.namespace, propagation=propagation)

    async def free(self, name: str, resource: Resource[Any] = CONFIG_MAPS) -> None:
        await self.client.patch(resource, name, {"metadata": {"finalizers": None}}, self.namespace)

    async def left(self, resource: Resource[Any], namespace: str) -> list[Json]:
        answer = await self.client.send(Request(Verb.LIST, resource, namespace))
        items: list[Json] = decode(answer.body, dict)["items"]
        return [item for item in items if item["metadata"]["name"] not in ("kube-root-ca.crt", "default")]

    async def state(self) -> str:
        """What is left, with uids by the names of what they are of."""
        found: list[Json] = []
        uids: dict[str, str] = {}
        for namespace, said in ((self.namespace, "here"), (self.other, "there")):
            for resource in KINDS:
                for item in await self.left(resource, namespace):
                    about = item["metadata"]
                    uids[about["uid"]] = about["name"]
                    found.append(
                        {
                            "kind": resource.kind,
                            "name": f"{said}/{about['name']}",
                            "owners": about.get("ownerReferences", []),
                            "finalizers": about.get("finalizers", []),
                            "is deleted": "deletionTimestamp" in about,
                        }
                    )
        text = json.dumps(found, indent=1)
        for uid, name in uids.items():
            text = text.replace(uid, f"<uid of {name}>")
        return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uid of none>", text)

    async def settled(self) -> str:
        """The state once nothing has changed for a while."""
        before = await self.state()
        while True:
            await asyncio.sleep(self._patience)
            after = await self.state()
            if after == before:
                return after
            before = after


def by(owner: Any, resource: Resource[Any] = CONFIG_MAPS, **more: Any) -> Json:
    about = owner.metadata
    return {"apiVersion": resource.api_version, "kind": resource.kind, "name": about.name, "uid": about.uid, **more}


BLOCKING = {"blockOwnerDeletion": True}


async def background(side: Side) -> list[str]:
    a = await side.make("a")
    b = await side.make("b", by(a))
    await side.make("c", by(b), resource=SECRETS)
    second = await side.make("second")
    await side.make("kept", by(a), by(second, controller=True))
    await side.make("stays", by(a), metadata={"finalizers": [STAY]})
    first = await side.settled()
    await side.delete("a", "Background")
    return [first, await side.settled()]


async def never_there(side: Side) -> list[str]:
    nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "11111111-2222-4333-8444-555555555555"}
    owner = await side.make("owner")
    await side.make("lost", nobody)
    await side.make("kept", nobody, by(owner))
    await side.make("mistaken", {**by(owner), "name": "another"})
    await side.make("ghost", {**nobody, "apiVersion": "nowhere.kruise.io/v1", "kind": "Ghost"})
    return [await side.settled()]


async def foreground(side: Side) -> list[str]:
    a = await side.make("a")
    b = await side.make("b", by(a, **BLOCKING))
    await side.make("c", by(b, **BLOCKING), metadata={"finalizers": [STAY]})
    second = await side.make("second")
    await side.make("kept", by(a, **BLOCKING), by(second))
    await side.make("loose", by(a), metadata={"finalizers": [STAY]})
    await side.settled()
    await side.delete("a", "Foreground")
    states = [await side.settled()]
    assert "foregroundDeletion" in states[0]
    await side.free("c")
    states.append(await side.settled())
    assert states[0] != states[1]
    return states


async def circle(side: Side) -> list[str]:
    a = await side.make("a")
    b = await side.make("b", by(a, **BLOCKING))
    await side.client.patch(CONFIG_MAPS, "a", {"metadata": {"ownerReferences": [by(b, **BLOCKING)]}}, side.namespace)
    await side.settled()
    await side.delete("a", "Foreground")
    return [await side.settled()]


async def orphan(side: Side) -> list[str]:
    a, second = await side.make("a"), await side.make("second")
    await side.make("b", by(a))
    await side.make("c", by(a), by(second))
    await side.settled()
    await side.delete("a", "Orphan")
    return [await side.settled()]


async def other_namespace(side: Side) -> list[str]:
    a = await side.make("a", namespace=side.other)
    here = await side.make("here")
    await side.make("lost", by(a))
    await side.make("kept", by(a), by(here))
    state = await side.settled()
    events = (await side.client.list(EVENTS, side.namespace)).items
    told = sorted(
        f"{event.type} {event.reason} {event.involved_object.name} {event.source.component} "
        + event.message.replace(a.metadata.uid, "UID").replace(side.namespace, "HERE")
        for event in events
    )
    assert len(told) == 2
    return [state, json.dumps(told, indent=1)]


async def other_kinds(side: Side) -> list[str]:
    """A Deployment that nobody controls any more would be replaced; here owners of other kinds stand for it."""
    labels = {"app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    a = await side.make("a", resource=SECRETS)
    await side.make("rs", by(a, SECRETS, **BLOCKING), resource=REPLICA_SETS, spec=spec)
    rs = await side.client.get(REPLICA_SETS, "rs", side.namespace)
    await side.make("c", by(rs, REPLICA_SETS))
    await side.settled()
    await side.delete("a", "Foreground", SECRETS)
    return [await side.settled()]


SCENARIOS: dict[str, Callable[[Side], Awaitable[list[str]]]] = {
    "background": background,
    "owners that never were": never_there,
    "foreground": foreground,
    "circle": circle,
    "orphan": orphan,
    "another namespace": other_namespace,
    "other kinds": other_kinds,
}


@contextlib.asynccontextmanager
async def local_side(*namespaces: str) -> AsyncIterator[Side]:
    """A core with the collector and the namespaces' service."""
    clock = VirtualClock(asyncio.get_running_loop())
    core = ApiCore(native_registry(), clock=clock, seed=1, require_namespaces=True)
    client = Client(InProcessTransport(core), clock=clock)
    discover = of_registry(core.registry)
    services = (
        GarbageCollector(Client(InProcessTransport(core), clock=clock), clock=clock, discover=discover),
        Namespaces(Client(InProcessTransport(core), clock=clock), clock=clock, discover=discover, bundle="PEM"),
    )
    tasks = [asyncio.create_task(service.run()) for service in services]
    await asyncio.sleep(1)
    for name in namespaces:
        await client.create(NAMESPACES, {"metadata": {"name": name}})
    await asyncio.sleep(1)
    try:
        yield Side(client, *namespaces, patience=30)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def played_locally(scenario: Callable[[Side], Awaitable[list[str]]]) -> list[str]:
    async def main() -> list[str]:
        async with local_side("here", "there") as side:
            return await scenario(side)

    return run_virtual(main())


@dataclasses.dataclass
class Namespaced:
    client: Client
    here: str
    there: str


@pytest.fixture
async def real(control_plane: ControlPlane, namespace: str) -> AsyncIterator[Namespaced]:
    other = f"{namespace[:50].rstrip('-')}-other"
    control_plane.create_namespace(other)
    async with Client(HttpTransport(kubeconfig.load(control_plane.kubeconfig))) as client:
        yield Namespaced(client, namespace, other)
    control_plane.delete_namespace(other)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.smoke] if name == "background" else []) for name in SCENARIOS]
)
async def test_the_same_end(real: Namespaced, name: str) -> None:
    side = Side(real.client, real.here, real.there, patience=3)
    expected = await SCENARIOS[name](side)
    # On a loop of its own: its time is virtual.
    found = await asyncio.to_thread(played_locally, SCENARIOS[name])
    assert found == expected


async def ending(side: Side) -> Json:
    """A namespace that something holds, and its end."""
    await side.make("held", metadata={"finalizers": [STAY]})
    await side.make("gone")
    account = await side.client.get(SERVICE_ACCOUNTS, "default", side.namespace)
    assert account.metadata.name == "default"
    published = await side.client.get(CONFIG_MAPS, "kube-root-ca.crt", side.namespace)
    deleted = await side.client.send(Request(Verb.DELETE, NAMESPACES, name=side.namespace))
    seen: Json = {"annotations": published.metadata.annotations, "deleted": _namespace(deleted.body, side)}

    async def read() -> Json:
        return _namespace((await side.client.send(Request(Verb.GET, NAMESPACES, name=side.namespace))).body, side)

    async def told() -> Json:
        found = await read()
        assert found["status"].get("conditions"), found
        return found

    async def gone() -> None:
        try:
            found = await read()
        except NotFoundError:
            return
        raise AssertionError(f"still there: {found}")

    seen["held"] = await eventually(told)
    seen["left"] = [item["metadata"]["name"] for item in await side.left(CONFIG_MAPS, side.namespace)]
    again = await side.client.send(Request(Verb.DELETE, NAMESPACES, name=side.namespace))
    seen["deleted again"] = _namespace(again.body, side)
    await side.free("held")
    await eventually(gone)
    return seen


def _namespace(body: bytes, side: Side) -> Json:
    text = re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME", body.decode()).replace(side.namespace, "NAMESPACE")
    found: Json = json.loads(text)
    for name in ("uid", "resourceVersion", "managedFields", "labels"):
        found["metadata"].pop(name, None)
    return found


async def test_a_namespace_ends_in_the_same_way(real: Namespaced) -> None:
    def locally() -> Json:
        async def main() -> Json:
            async with local_side("here", "there") as side:
                return await ending(side)

        return run_virtual(main())

    expected = await ending(Side(real.client, real.here, real.there, patience=3))
    found = await asyncio.to_thread(locally)
    assert found == expected
