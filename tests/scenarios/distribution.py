"""ResourceDistributions: copies in namespaces that come, go and change."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.native.config import CONFIG_MAPS, SECRETS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.resource import Resource
from kruise.machinery.client.errors import AlreadyExistsError, ApiError, NotFoundError
from kruise.machinery.codec import to_builtins
from kruise.operations.resourcedistribution.conclude import CONFLICT, NO_NAMESPACE, TYPES
from kruise.operations.resourcedistribution.snapshot import FROM, HASH
from tests.scenarios.stage import Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
CONFIG = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cfg", "labels": {"a": "b"}},
    "data": {"k": "v1"},
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"}
TOKEN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "token"},
    "stringData": {"k": "hunter2"},
}


class DistributionStage(Stage):
    """A distribution and namespaces, all with names that begin as the scenario's own namespace does."""

    resource: Resource[Any] = RESOURCE_DISTRIBUTIONS

    @property
    def name(self) -> str:
        return f"{self.namespace}-rd"

    def team(self, number: int) -> str:
        return f"{self.namespace}-team-{number}"

    def listed(self, *numbers: int) -> Json:
        return {"list": [{"name": self.team(number)} for number in numbers]}

    @property
    def group(self) -> Mapping[str, str]:
        return {"group": self.namespace}

    async def make_namespaces(self, labels: Mapping[int, Mapping[str, str]]) -> None:
        for number, its in labels.items():
            await self.make_namespace(number, its)

    async def make_namespace(self, number: int, labels: Mapping[str, str]) -> None:
        head = {"apiVersion": "v1", "kind": "Namespace"}
        body = {**head, "metadata": {"name": self.team(number), "labels": dict(labels)}}

        async def made() -> None:
            try:
                await self.client.create(NAMESPACES, body)
            except AlreadyExistsError as error:  # its namesake is on its way out
                raise AssertionError(str(error)) from error

        await self.until(made)

    async def distribute(self, resource: Json, targets: Json, *, version: str = "v1beta1") -> None:
        head = {"apiVersion": f"apps.kruise.io/{version}", "kind": "ResourceDistribution"}
        body = {**head, "metadata": {"name": self.name}, "spec": {"resource": resource, "targets": targets}}
        await self.client.create(dataclasses.replace(RESOURCE_DISTRIBUTIONS, version=version), body)

    async def change_spec(self, spec: Json) -> None:
        await self.client.patch(RESOURCE_DISTRIBUTIONS, self.name, {"spec": spec})

    async def copy(self, number: int, kind: Resource[Any] = CONFIG_MAPS, name: str = "cfg") -> Json | None:
        try:
            found: Json = to_builtins(await self.client.get(kind, name, self.team(number)))
        except NotFoundError:
            return None
        return found

    async def has_copies(self, numbers: Sequence[int], among: Sequence[int], data: Json | None = None) -> None:
        """Exactly these teams have a copy, with this data."""

        async def are_there() -> None:
            copies = {number: await self.copy(number) for number in among}
            assert [number for number, copy in copies.items() if copy is not None] == list(numbers)
            for number in numbers:
                copy = copies[number]
                assert data is None or (copy is not None and copy["data"] == data), copy

        await self.until(are_there)

    async def counts(self, desired: int, succeeded: int, **failed: Sequence[int]) -> Json:
        """What the status says; `failed` are teams by the type of a condition."""

        async def told() -> Json:
            distribution = to_builtins(await self.client.get(RESOURCE_DISTRIBUTIONS, self.name))
            status = distribution.get("status", {})
            assert status.get("observedGeneration") == distribution["metadata"]["generation"]
            assert (status.get("desired", 0), status.get("succeeded", 0)) == (desired, succeeded), status
            assert status.get("failed", 0) == desired - succeeded
            assert tuple(item["type"] for item in status["conditions"]) == TYPES
            for item in status["conditions"]:
                teams = [self.team(number) for number in failed.get(item["type"], ())]
                assert (item["status"], list(item.get("failedNamespaces", ()))) == ("True" if teams else "False", teams)
                assert teams or item["reason"] == "Succeeded"
            return distribution  # type: ignore[no-any-return]

        return await self.until(told)  # type: ignore[no-any-return]

    async def clean(self, *numbers: int) -> None:
        """Namespaces are nobody's, so they stay when the scenario's own goes."""
        for number in numbers:
            try:
                await self.client.delete(NAMESPACES, self.team(number))
            except NotFoundError:
                continue


_scenario = functools.partial(
    scenario, into=SCENARIOS, stage=DistributionStage, gates={"ResourceDistributionGate": True}
)


@_scenario("RD-20", "RD-21", "RD-33", "RD-34", "RD-36", "RD-40", "RD-41", "RD-50", "RD-62", "RD-64", smoke=True)
async def listed_and_selected_namespaces_get_a_copy(stage: DistributionStage) -> None:
    """The union of list and selector, without those that are excluded; all go with the distribution."""
    group = stage.group
    await stage.make_namespaces({1: group, 2: group, 3: group, 4: group, 5: {}})
    targets = {
        "includedNamespaces": stage.listed(1, 2, 3, 5),
        "namespaceSelector": {"matchLabels": group},
        "excludedNamespaces": stage.listed(4),
    }
    await stage.distribute(CONFIG, targets)
    await stage.counts(4, 4)
    await stage.has_copies([1, 2, 3, 5], range(1, 6), {"k": "v1"})
    copy = await stage.copy(1)
    distribution = await stage.client.get(RESOURCE_DISTRIBUTIONS, stage.name)
    raw = json.dumps(json.loads(bytes(distribution.spec.resource)), sort_keys=True, separators=(",", ":"))
    assert copy is not None
    assert copy["metadata"]["annotations"] == {FROM: stage.name, HASH: hashlib.sha256(raw.encode()).hexdigest()}
    assert copy["metadata"]["labels"] == {"a": "b"}
    (owner,) = copy["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["uid"]) == ("apps.kruise.io/v1beta1", distribution.metadata.uid)

    await stage.client.delete(NAMESPACES, stage.team(1))
    await stage.counts(4, 3, **{NO_NAMESPACE: [1]})
    changed = {"includedNamespaces": stage.listed(2), "namespaceSelector": None, "excludedNamespaces": None}
    await stage.change_spec({"targets": changed})
    await stage.counts(1, 1)
    await stage.has_copies([2], range(2, 6))
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)
    await stage.has_copies([], range(2, 6))
    await stage.clean(*range(1, 6))


@_scenario("RD-35", "RD-37", "RD-44", "RD-61")
async def copies_are_kept_as_they_should_be(stage: DistributionStage) -> None:
    """What is changed by hand is put right, what is deleted comes back; labels of others stay."""
    await stage.make_namespaces({1: {}, 2: {}})
    await stage.distribute(CONFIG, {"includedNamespaces": stage.listed(1, 2)})
    await stage.counts(2, 2)
    await stage.change_spec({"resource": {"data": {"k": "v2", "k2": "x"}}})
    await stage.has_copies([1, 2], [1, 2], {"k": "v2", "k2": "x"})

    # Labels and annotations alone are no difference (RD-35): they come with the next one.
    await stage.change_spec({"resource": {"metadata": {"labels": {"a": "c"}}}})
    await stage.counts(2, 2)
    copy = await stage.copy(1)
    assert copy is not None
    assert copy["metadata"]["labels"] == {"a": "b"}
    by_hand = {"data": {"hand": "made"}, "metadata": {"labels": {"own": "1"}, "annotations": {FROM: "other"}}}
    await stage.client.patch(CONFIG_MAPS, "cfg", by_hand, stage.team(1))
    await stage.has_copies([1, 2], [1, 2], {"k": "v2", "k2": "x"})
    copy = await stage.copy(1)
    assert copy is not None
    assert copy["metadata"]["labels"] == {"a": "c", "own": "1"}
    assert copy["metadata"]["annotations"][FROM] == stage.name
    await stage.client.delete(CONFIG_MAPS, "cfg", stage.team(2))
    await stage.has_copies([1, 2], [1, 2], {"k": "v2", "k2": "x"})
    await stage.counts(2, 2)
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)
    await stage.clean(1, 2)


@_scenario("RD-39", "RD-60", "RD-70")
async def namespaces_come_and_go(stage: DistributionStage) -> None:
    """One that is made later gets its copy, one that is labelled later too, and one that loses its label loses it."""
    await stage.make_namespace(1, stage.group)
    targets = {"namespaceSelector": {"matchLabels": stage.group}, "includedNamespaces": stage.listed(4)}
    await stage.distribute(CONFIG, targets)
    await stage.counts(2, 1, **{NO_NAMESPACE: [4]})
    await stage.make_namespace(2, stage.group)
    await stage.make_namespace(3, {})
    await stage.client.patch(NAMESPACES, stage.team(3), {"metadata": {"labels": dict(stage.group)}})
    await stage.client.patch(NAMESPACES, stage.team(1), {"metadata": {"labels": {"group": None}}})
    await stage.counts(3, 2, **{NO_NAMESPACE: [4]})
    await stage.make_namespace(4, {})
    await stage.counts(3, 3)
    await stage.has_copies([2, 3, 4], [1, 2, 3, 4])
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)
    await stage.clean(1, 2, 3, 4)


@_scenario("RD-31", "RD-33", "RD-44", "RD-51")
async def what_belongs_to_others_is_left_alone(stage: DistributionStage) -> None:
    """An object of the same name is a conflict until it goes. A copy that only lost its owner reference is taken back;
    without our marks, too, it is somebody else's."""
    await stage.make_namespaces({1: {}, 2: {}})
    await stage.client.create(CONFIG_MAPS, {**CONFIG, "data": {"mine": "1"}}, stage.team(1))
    await stage.distribute(CONFIG, {"includedNamespaces": stage.listed(1, 2)})
    await stage.counts(2, 1, **{CONFLICT: [1]})
    await stage.has_copies([1], [1], {"mine": "1"})
    await stage.client.delete(CONFIG_MAPS, "cfg", stage.team(1))
    await stage.counts(2, 2)
    await stage.client.patch(CONFIG_MAPS, "cfg", {"metadata": {"ownerReferences": None}}, stage.team(2))
    uid = (await stage.client.get(RESOURCE_DISTRIBUTIONS, stage.name)).metadata.uid

    async def taken_back() -> None:
        copy = await stage.copy(2)
        assert copy is not None
        assert [owner["uid"] for owner in copy["metadata"].get("ownerReferences", ())] == [uid]

    await stage.until(taken_back)
    await stage.counts(2, 2)
    away = {"ownerReferences": None, "annotations": {FROM: None, HASH: None}}
    await stage.client.patch(CONFIG_MAPS, "cfg", {"metadata": away}, stage.team(2))
    await stage.counts(2, 1, **{CONFLICT: [2]})
    await stage.change_spec({"resource": {"data": {"k": "v2"}}})
    await stage.has_copies([1], [1], {"k": "v2"})
    await stage.has_copies([2], [2], {"k": "v1"})
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)
    await stage.has_copies([2], [1, 2])
    await stage.clean(1, 2)


@_scenario("RD-4", "RD-63", "RD-65", "RD-71")
async def a_secret_goes_everywhere_but_to_the_system(stage: DistributionStage) -> None:
    """All namespaces, written in v1alpha1 with stringData; nothing is written again when all is well."""
    await stage.make_namespace(1, {})
    await stage.distribute(TOKEN, {"allNamespaces": True}, version="v1alpha1")

    async def everywhere() -> None:
        status = (await stage.client.get(RESOURCE_DISTRIBUTIONS, stage.name)).status
        assert status.desired > 1
        assert status.failed == 0

    await stage.until(everywhere)
    copy = await stage.copy(1, SECRETS, "token")
    assert copy is not None
    assert copy["data"] == {"k": "aHVudGVyMg=="}

    async def untouched() -> None:
        assert await stage.copy(1, SECRETS, "token") == copy
        for system in ("kube-system", "kube-public"):
            try:
                await stage.client.get(SECRETS, "token", system)
            except NotFoundError:
                continue
            raise AssertionError(f"{system} has a copy")

    await stage.stays(untouched)
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)
    await stage.clean(1)


@_scenario("RD-11", "RD-13", "RD-14", "RD-15", "RD-16", "RD-17", "RD-18")
async def nonsense_is_refused(stage: DistributionStage) -> None:
    """Each refusal names the field, and what the API server itself says of the copy."""
    targets = {"includedNamespaces": stage.listed(1)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    cases: list[tuple[Json, Json, str]] = [
        (pod, targets, "spec.resource: Invalid value: .*only support .Secret ConfigMap."),
        ({**CONFIG, "apiVersion": "apps/v1"}, targets, "only support .Secret ConfigMap."),
        ({**CONFIG, "metadata": {}}, targets, "spec.resource.metadata.name: Required value"),
        (
            {**CONFIG, "metadata": {"name": "x", "ownerReferences": [OWNER]}},
            targets,
            "belong to the distribution alone",
        ),
        ({**CONFIG, "data": {"a b": "c"}}, targets, "spec.resource: Invalid value: spec.resource is invalid: .*a b"),
        ({**CONFIG, "data": {"k": 5}}, targets, "spec.resource is invalid: "),
        (CONFIG, {"includedNamespaces": {"list": [{"name": "Bad_Name"}]}}, "spec.targets.includedNamespaces"),
        (CONFIG, {**targets, "excludedNamespaces": stage.listed(1)}, "ambiguous targets because namespace"),
        (CONFIG, {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Of"}]}}, "namespaceSelector"),
    ]
    for resource, chosen, words in cases:
        text = await stage.is_refused(stage.distribute(resource, chosen))
        assert re.search(words, text), f"{text}\ndoes not say\n{words}"
    await stage.distribute(CONFIG, targets)
    for change in ({"metadata": {"name": "other"}}, {"kind": "Secret", "data": None}):
        text = await stage.is_refused(stage.change_spec({"resource": change}))
        assert "resource apiVersion, kind, and name are immutable" in text
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)


@_scenario("RD-12", "RD-42", "RD-43", "RD-72", "RD-73")
async def one_that_cannot_change_does_not_hold_the_others(stage: DistributionStage) -> None:
    """An immutable copy refuses, is told by name and tried again; the others follow, and keep what others noted."""
    await stage.make_namespaces({1: {}, 2: {}, 3: {}})
    with pytest.raises(ApiError) as refused:
        await stage.client.create(
            RESOURCE_DISTRIBUTIONS,
            {
                "apiVersion": RESOURCE_DISTRIBUTIONS.api_version,
                "kind": RESOURCE_DISTRIBUTIONS.kind,
                "metadata": {"name": "Not_A_Name"},
                "spec": {"resource": CONFIG, "targets": {}},
            },
        )
    assert refused.value.code == 422
    await stage.distribute(CONFIG, {"includedNamespaces": stage.listed(1, 2, 3)})
    await stage.counts(3, 3)
    before = await stage.copy(1)
    assert before is not None
    noted = {"kruise.io/resourcedistribution.resource.distributed.timestamp": "2021-01-01 00:00:00"}
    await stage.client.patch(CONFIG_MAPS, "cfg", {"metadata": {"annotations": noted}}, stage.team(1))
    # A copy of another hand that nobody can change any more, with our marks on it.
    await stage.client.patch(CONFIG_MAPS, "cfg", {"data": {"k": "v2"}, "immutable": True}, stage.team(2))
    await stage.counts(3, 2, UpdateResourceFailed=[2])
    await stage.change_spec({"resource": {"data": {"k": "v3"}}})
    await stage.counts(3, 2, UpdateResourceFailed=[2])
    await stage.has_copies([1, 3], [1, 3], {"k": "v3"})
    after = await stage.copy(1)
    assert after is not None
    assert noted.items() <= after["metadata"]["annotations"].items()
    assert after["metadata"]["annotations"][HASH] != before["metadata"]["annotations"][HASH]
    await stage.client.delete(CONFIG_MAPS, "cfg", stage.team(2))
    await stage.counts(3, 3)
    await stage.client.delete(RESOURCE_DISTRIBUTIONS, stage.name)
    await stage.clean(1, 2, 3)
