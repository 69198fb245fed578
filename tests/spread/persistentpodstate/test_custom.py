"""Pods of workloads of kinds that nobody here knows: listed in the whitelist, read when a pass is about one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.meta import Key, PartialObject
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.spread.persistentpodstate import keys
from kruise.spread.persistentpodstate.controller import NAME
from tests.scenarios.podstate import AUTO, HOST, OS
from tests.support.custom_kinds import definition, owner
from tests.support.scripted_transport import failure
from tests.support.world import Json, LocalWorld, run_local

GAMES: Resource[Any] = Resource("games.example.io", "v1", "games", "Game", True, PartialObject)
VAULTS: Resource[Any] = Resource("vaults.example.io", "v1", "vaults", "Vault", True, PartialObject)


class NoVaults(InProcessTransport):
    """Nobody may read these."""

    async def send(self, request: Request) -> Response:
        if request.resource is not None and request.resource.group == VAULTS.group:
            return failure(403, "Forbidden", "vaults are closed")
        return await super().send(request)


class Stage:
    def __init__(self, world: LocalWorld) -> None:
        self.world = world
        self.owner: Json = {}

    async def prepare(self, *kinds: Resource[Any]) -> None:
        for kind in kinds:
            await self.world.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(kind))
            self.world.may(kind, "get")
        listed = {"workloads": [{"Group": kind.group, "Version": "v1", "Kind": kind.kind} for kind in kinds]}
        config = {"metadata": {"name": CONFIGURATION}, "data": {keys.WHITELIST: json.dumps(listed)}}
        await self.world.client.create(CONFIG_MAPS, config, "kruise-system")
        await self.world.sleep(2)

    async def make(self, replicas: int, kind: Resource[Any] = GAMES, first: int = 0, **annotations: str) -> None:
        manifest = {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {"replicas": replicas},
        }
        made = await self.world.client.create(kind, manifest, self.world.namespace)
        self.owner = owner({**manifest, "metadata": {"name": "web", "uid": made.metadata.uid}})
        for ordinal in range(first, first + replicas):
            await self.pod(ordinal)

    async def pod(self, ordinal: int) -> None:
        metadata = {
            "name": f"web-{ordinal}",
            "labels": {"app": "web"},
            "annotations": {"name": f"player-{ordinal}"},
            "ownerReferences": [self.owner],
        }
        containers = [{"name": "main", "image": "nginx:1.25"}]
        body = {"metadata": metadata, "spec": {"containers": containers, "terminationGracePeriodSeconds": 1}}
        await self.world.client.create(PODS, body, self.world.namespace)

    async def remember(self) -> None:
        """Somebody makes an object of another name."""
        manifest = {
            "apiVersion": PERSISTENT_POD_STATES.api_version,
            "kind": PERSISTENT_POD_STATES.kind,
            "metadata": {"name": "where"},
            "spec": {
                "targetRef": {"apiVersion": GAMES.api_version, "kind": GAMES.kind, "name": "web"},
                "requiredPersistentTopology": {"keys": [HOST]},
            },
        }
        await self.world.create(manifest)

    async def remembers(self, pods: int, name: str = "web", within: float = 10.0) -> dict[str, Json]:
        async def there() -> dict[str, Json]:
            states = [one for one in await self.world.list(PERSISTENT_POD_STATES) if one["metadata"]["name"] == name]
            assert states, f"{name} is not there yet"
            found: dict[str, Json] = states[0].get("status", {}).get("podStates", {})
            assert len(found) == pods, found
            return found

        return await self.world.until(there, within=within)


def play(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def main(world: LocalWorld) -> None:
        stage = Stage(world)
        await stage.prepare(GAMES)
        await scenario(stage)

    run_local(main)


def test_annotations_of_a_listed_workload_ask_for_an_object() -> None:
    """PPS-3, PPS-12 to PPS-14, PPS-23, PPS-30, PPS-37."""

    async def scenario(stage: Stage) -> None:
        world = stage.world
        await stage.make(5, **AUTO, **{keys.ANNOTATIONS: "name"})
        states = await stage.remembers(5)
        for name, state in states.items():
            assert state["nodeTopologyLabels"].keys() == {HOST, OS}
            assert state["annotations"] == {"name": f"player-{name[-1]}"}
        made = await world.get(PERSISTENT_POD_STATES, "web")
        assert made["spec"]["targetRef"] == {"apiVersion": GAMES.api_version, "kind": "Game", "name": "web"}
        [reference] = made["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["uid"]) == ("Game", stage.owner["uid"])

        await world.client.delete(PODS, "web-0", world.namespace, grace_period_seconds=0)
        await stage.pod(0)
        again = await world.get(PODS, "web-0")
        assert again["metadata"]["annotations"][keys.INJECTED] == "web"
        assert again["spec"]["nodeSelector"] == {OS: states["web-0"]["nodeTopologyLabels"][OS]}

        await world.patch(GAMES, "web", {"spec": {"replicas": 3}})
        for name in ("web-3", "web-4"):
            await world.delete(PODS, name)
        assert (await stage.remembers(3)).keys() == {"web-0", "web-1", "web-2"}

        await world.patch(GAMES, "web", {"metadata": {"annotations": {keys.AUTO: None}}})

        async def gone() -> None:
            assert not await world.list(PERSISTENT_POD_STATES)

        await world.until(gone, within=90)

    play(scenario)


def test_with_a_listed_workload_all_is_forgotten() -> None:
    """PPS-5, PPS-17, PPS-18: it need not be watched, and may go without a word."""

    async def scenario(stage: Stage) -> None:
        world = stage.world
        await stage.make(2)
        await stage.remember()
        await stage.remembers(2, "where")
        await world.client.delete(GAMES, "web", world.namespace, propagation="Orphan")
        await stage.remembers(0, "where", within=90)

    play(scenario)


def test_a_kind_that_nobody_may_read_is_nobody_elses_trouble() -> None:
    """PPS-4, PPS-5, PPS-37."""

    async def scenario(world: LocalWorld) -> None:
        world.start_manager(NoVaults(world.cluster.core))
        stage = Stage(world)
        await stage.prepare(VAULTS, GAMES)
        await stage.make(1, VAULTS, first=7, **AUTO)
        await stage.make(2, **AUTO)
        assert (await stage.remembers(2)).keys() == {"web-0", "web-1"}

    run_local(scenario, start=False)


def test_what_nobody_may_read_is_told_and_nothing_is_forgotten() -> None:
    """PPS-5, PPS-20."""

    async def scenario(world: LocalWorld) -> None:
        stage = Stage(world)
        await stage.prepare(GAMES, VAULTS)
        world.start_manager()
        await world.sleep(1)
        await stage.make(2, VAULTS, **AUTO)
        await stage.remembers(2)
        await world.stop_manager()
        world.start_manager(NoVaults(world.cluster.core))
        await world.sleep(150)
        assert (await stage.remembers(2)).keys() == {"web-0", "web-1"}
        [last] = world.journal.entries(NAME, Key(world.namespace, "web"), limit=1)
        assert "Vault web: the manager may not read it: vaults" in json.dumps(last["plan"]["held"])

    run_local(scenario, start=False)


def test_a_kind_that_is_not_listed_asks_for_nothing() -> None:
    """PPS-4."""

    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.client.delete(CONFIG_MAPS, CONFIGURATION, "kruise-system")
        await world.sleep(15)
        await stage.make(2, **AUTO)
        await world.sleep(90)
        assert not await world.list(PERSISTENT_POD_STATES)

    play(scenario)
