"""Admission of PersistentPodStates on the local cluster, in both versions."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodStateSpec
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION
from kruise.machinery import codec
from kruise.machinery.client.errors import ApiError
from kruise.spread.persistentpodstate import keys
from kruise.spread.persistentpodstate.admission import warnings_of
from tests.support.world import Json, LocalWorld, run_local

NAMES = {"v1alpha1": "nodeTopologyKeys", "v1beta1": "keys"}


def manifest(version: str, name: str = "new", **spec: Any) -> Json:
    target = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "web", **spec.pop("target", {})}
    body = {"targetRef": target, "requiredPersistentTopology": {NAMES[version]: ["zone"]}, **spec}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "PersistentPodState",
        "metadata": {"name": name},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


async def refusal(world: LocalWorld, body: Json) -> str:
    with pytest.raises(ApiError) as refused:
        await world.create(body)
    assert refused.value.code == 400
    return str(refused.value.message)


@pytest.mark.parametrize("version", list(NAMES))
def test_what_is_refused(version: str) -> None:
    """PPS-6 to PPS-11, as recorded: code 400, and what to do."""

    async def scenario(world: LocalWorld) -> None:
        said = await refusal(world, manifest(version, target={"apiVersion": "", "kind": "", "name": ""}))
        assert said.count("spec.targetRef") == 2  # PPS-11
        said = await refusal(world, manifest(version, target={"kind": "CloneSet"}))
        assert "StatefulSet" in said
        assert keys.WHITELIST in said
        said = await refusal(world, manifest(version, requiredPersistentTopology=None))
        assert "requiredPersistentTopology or preferredPersistentTopology must be given" in said
        await world.create(manifest(version, "live", requiredPersistentTopology={NAMES[version]: []}))
        said = await refusal(world, manifest(version, "other", target={"apiVersion": "apps.kruise.io/v1alpha1"}))
        assert "in conflict with other PersistentPodState live" in said
        await world.create(manifest(version, "native", target={"apiVersion": "apps/v1"}))
        with pytest.raises(ApiError, match="targetRef cannot be modified"):
            await world.patch(PERSISTENT_POD_STATES, "live", {"spec": {"targetRef": {"name": "x"}}})

    run_local(scenario)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({}, []),
        ({"requiredPersistentTopology": {"keys": []}}, ["spec: no labels of nodes are named"]),
        ({"requiredPersistentTopology": {"keys": ["bad key"]}}, ['spec: no node has a label "bad key"']),
        ({"persistentPodAnnotations": [{"key": ""}]}, ["spec.persistentPodAnnotations[0].key: it is empty"]),
        (
            {"preferredPersistentTopology": [{"weight": 200, "preference": {"keys": ["zone"]}}]},
            ["spec.preferredPersistentTopology[0].weight: 200 is not from 1 to 100"],
        ),
    ],
)
def test_what_remembers_nothing_is_warned_of(spec: Json, told: list[str]) -> None:  # PPS-10
    given = codec.convert(manifest("v1beta1", **spec)["spec"], PersistentPodStateSpec)
    warnings = list(warnings_of(given))
    assert len(warnings) == len(told)
    assert all(warning.startswith(words) for warning, words in zip(warnings, told, strict=True))


def test_further_kinds_are_listed() -> None:
    """PPS-3, PPS-4, PPS-7."""

    async def scenario(world: LocalWorld) -> None:
        game = manifest("v1beta1", target={"apiVersion": "example.io/v1", "kind": "Game"})
        await refusal(world, game)
        text = '{"workloads": [{"Group": "example.io", "Version": "v1", "Kind": "Game"}]}'
        body = {"metadata": {"name": CONFIGURATION}, "data": {keys.WHITELIST: text}}
        await world.client.create(CONFIG_MAPS, body, "kruise-system")
        await world.create(game)
        await world.client.patch(CONFIG_MAPS, CONFIGURATION, {"data": {keys.WHITELIST: "{"}}, "kruise-system")
        said = await refusal(world, {**game, "metadata": {"name": "again"}})
        assert keys.WHITELIST in said

    run_local(scenario)
