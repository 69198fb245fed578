"""Workloads of kinds that nobody here knows: listed in the whitelist, read when somebody asks (WS section 8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.spread.workloadspread.targets import guessed
from kruise.spread.workloadspread.whitelist import KEY
from tests.spread.workloadspread.stories import MATCHED, subset
from tests.support.custom_kinds import definition, owner
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
GROUP = "kubeflow.org"
JOBS, PARTS = guessed(f"{GROUP}/v1", "TFJob"), guessed(f"{GROUP}/v1", "Part")


class Stage:
    def __init__(self, world: LocalWorld) -> None:
        self.world = world
        self.client: Client = world.client

    async def prepare(self, **entry: Any) -> None:
        for resource in (JOBS, PARTS):
            await self.client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(resource))
            self.world.may(resource, "get")
        await self.world.sleep(2)
        listed = {"workloads": [{"Group": GROUP, "Version": "v1", "Kind": "TFJob", **entry}]}
        config = {"metadata": {"name": "kruise-configuration"}, "data": {KEY: json.dumps(listed)}}
        await self.client.create(CONFIG_MAPS, config, "kruise-system")

    async def make(self, resource: Resource[Any], name: str, **body: Any) -> Json:
        manifest = {
            "apiVersion": f"{GROUP}/v1",
            "kind": resource.kind,
            "metadata": {"name": name, **body.pop("meta", {})},
        }
        made = await self.client.create(resource, {**manifest, **body}, self.world.namespace)
        return {**manifest, "metadata": {"name": name, "uid": made.metadata.uid}}

    async def spread(self, *sizes: int | str, **spec: Any) -> None:
        subsets = [subset(name, size=size) for name, size in zip("ab", sizes, strict=True)]
        target = {"apiVersion": f"{GROUP}/v1", "kind": "TFJob", "name": "train"}
        manifest = {
            "apiVersion": WORKLOAD_SPREADS.api_version,
            "kind": WORKLOAD_SPREADS.kind,
            "metadata": {"name": "ws"},
            "spec": {"targetRef": target, "subsets": subsets, **spec},
        }
        await self.world.create(manifest)

    async def pods(self, count: int, of: Json, **labels: str) -> list[str]:
        """Made one after the other; the subsets that they got."""
        found: list[str] = []
        for number in range(count):
            name = f"{of['metadata']['name']}-{'-'.join(labels.values())}{number}"
            metadata = {"name": name, "labels": {"app": "train", **labels}, "ownerReferences": [owner(of)]}
            body = {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "tf:1"}]}}
            made = await self.client.create(PODS, body, self.world.namespace)
            mark = made.metadata.annotations.get(MATCHED)
            found.append(json.loads(mark)["subset"] if mark else "")
        return found

    async def counts(self, wanted: dict[str, tuple[int, int]]) -> None:
        async def there() -> None:
            status = (await self.world.get(WORKLOAD_SPREADS, "ws"))["status"]
            told = {one["name"]: (one["replicas"], one["missingReplicas"]) for one in status["subsetStatuses"]}
            assert told == wanted, status

        await self.world.until(there, within=90)


def play(scenario: Any) -> None:
    async def main(world: LocalWorld) -> None:
        await scenario(Stage(world))

    run_local(main)


def test_numbers_need_no_replicas() -> None:  # WS-57
    async def scenario(stage: Stage) -> None:
        await stage.prepare()
        job = await stage.make(JOBS, "train")
        await stage.spread(2, 5)
        assert await stage.pods(3, job) == ["a", "a", "b"]
        await stage.counts({"a": (2, 0), "b": (1, 4)})

    play(scenario)


class Spy(InProcessTransport):
    """Keeps what the manager asks of kinds of others."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self.asked: set[tuple[Verb, str]] = set()

    async def send(self, request: Request) -> Response:
        if request.resource is not None and request.resource.group == GROUP:
            self.asked.add((request.verb, request.resource.plural))
        return await super().send(request)


def test_kinds_of_others_are_read_with_get_alone_come_late_and_go() -> None:  # WS-40
    """Their definition comes after the manager started, and goes while it runs: nothing else stops."""

    async def scenario(world: LocalWorld) -> None:
        stage, spy = Stage(world), Spy(world.cluster.core)
        world.start_manager(spy)
        await world.sleep(2)
        await stage.prepare(replicasPath="spec.replicas")
        job = await stage.make(JOBS, "train", spec={"replicas": 4})
        await stage.spread("50%", "50%")
        assert await stage.pods(3, job) == ["a", "a", "b"]
        await stage.counts({"a": (2, 0), "b": (1, 1)})
        assert spy.asked == {(Verb.GET, JOBS.plural)}
        await stage.client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"{JOBS.plural}.{GROUP}")
        await world.sleep(90)
        assert world.manager_is_running
        sizes = [{"name": "all", "maxReplicas": 1}]
        target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}
        other = {"targetRef": target, "subsets": sizes}
        manifest = {"apiVersion": WORKLOAD_SPREADS.api_version, "kind": WORKLOAD_SPREADS.kind}
        await world.create({**manifest, "metadata": {"name": "other"}, "spec": other})

        async def observed() -> None:
            found = await world.get(WORKLOAD_SPREADS, "other")
            assert found.get("status", {}).get("observedGeneration") == 1

        await world.until(observed)

    run_local(scenario, start=False)


def test_percentages_are_of_the_number_at_the_path_of_the_whitelist() -> None:  # WS-29, WS-39, WS-57
    async def scenario(stage: Stage) -> None:
        await stage.prepare(replicasPath="spec.roles.MASTER.replicas")
        job = await stage.make(JOBS, "train", spec={"roles": {"MASTER": {"replicas": 5}, "WORKER": {"replicas": 4}}})
        await stage.spread("20%", "80%")
        assert await stage.pods(4, job) == ["a", "b", "b", "b"]
        await stage.counts({"a": (1, 0), "b": (3, 1)})
        # Nobody tells that it grew: that is looked at again after a while.
        grown = {"spec": {"roles": {"MASTER": {"replicas": 10}}}}
        await stage.client.patch(JOBS, "train", grown, stage.world.namespace)
        await stage.counts({"a": (1, 1), "b": (3, 5)})

    play(scenario)


def test_a_filter_takes_its_own_pods_and_its_own_number() -> None:  # WS-39, WS-57
    async def scenario(stage: Stage) -> None:
        await stage.prepare(replicasPath="spec.roles.MASTER.replicas")
        job = await stage.make(JOBS, "train", spec={"roles": {"MASTER": {"replicas": 1}, "WORKER": {"replicas": 4}}})
        wanted = {"selector": {"matchLabels": {"role": "worker"}}, "replicasPathList": ["spec.roles.WORKER.replicas"]}
        await stage.spread("25%", "75%", targetFilter=wanted)
        assert await stage.pods(1, job, role="master") == [""]
        assert await stage.pods(2, job, role="worker") == ["a", "b"]
        await stage.counts({"a": (1, 0), "b": (1, 2)})

    play(scenario)


def test_pods_are_found_through_kinds_in_between() -> None:  # WS-18, WS-55
    async def scenario(stage: Stage) -> None:
        await stage.prepare(subResources=[{"Group": GROUP, "Version": "v1", "Kind": "Part"}])
        job = await stage.make(JOBS, "train")
        part = await stage.make(PARTS, "half", meta={"ownerReferences": [owner(job)]})
        await stage.spread(1, 3)
        assert await stage.pods(2, part) == ["a", "b"]
        await stage.counts({"a": (1, 0), "b": (1, 2)})
        stranger = await stage.make(PARTS, "other")
        assert await stage.pods(1, stranger) == [""]

    play(scenario)


def test_a_path_that_leads_nowhere_is_told() -> None:  # WS-30
    async def scenario(stage: Stage) -> None:
        await stage.prepare(replicasPath="spec.size")
        job = await stage.make(JOBS, "train", spec={})
        await stage.spread("50%", "50%")
        with pytest.raises(Exception, match=r"path 'spec\.size' leads nowhere"):
            await stage.pods(1, job)

    play(scenario)


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("TFJob", "tfjobs"), ("Policy", "policies"), ("Gateway", "gateways"), ("Mesh", "meshes"), ("Bus", "buses")],
)
def test_plurals_are_guessed_as_usual(kind: str, plural: str) -> None:
    assert guessed("x.io/v1", kind).plural == plural
