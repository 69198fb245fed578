"""Admission of workloads on the local cluster: schema, conversion and webhooks together, on virtual time."""

from __future__ import annotations

import itertools

import pytest

from kruise import kinds
from kruise.api.versions import NEWER
from kruise.feature import Feature
from tests.support.admission import Json
from tests.support.admission_scenarios import Stage
from tests.support.lossless import WAYS, loses_nothing
from tests.support.recorded_admission import KINDS, Recorded
from tests.support.world import World, run_local
from tests.workloads.cloneset import admission_scenarios as of_clonesets

pytestmark = pytest.mark.parametrize("kind", KINDS, ids=str)


def features(kind: Recorded) -> tuple[Feature, ...]:
    """Of this kind, and those without a kind, as readiness."""
    known = {feature.name: feature for feature in kinds.features()}
    return tuple({**known, kind.feature.name: kind.feature}.values())


def test_verdicts_and_subresources(kind: Recorded) -> None:
    """CS-40 to CS-50, ST-29 to ST-32, DS-17 to DS-19."""

    async def scenario(world: World) -> None:
        stage = Stage(world, kind)
        if kind == of_clonesets.KIND:
            stage = await of_clonesets.with_pods(world)
        else:
            await stage.create_bases()
        await stage.verdicts()
        await stage.subresources()

    run_local(scenario, features=features(kind))


def test_defaults(kind: Recorded) -> None:
    """CS-30 to CS-33, ST-23 to ST-27, DS-13 to DS-15."""
    run_local(lambda world: Stage(world, kind).defaults(), features=features(kind))


def test_deletion_protection(kind: Recorded) -> None:
    """CS-52, ST-34, UD-36."""
    gate = "ResourcesDeletionProtection=true"
    run_local(lambda world: Stage(world, kind).protected(), features=features(kind), feature_gates=gate)


def newer_manifests(kind: Recorded) -> list[Json]:
    """Objects with fields that only v1beta1 has."""
    recorded = [case["sent"] for case in kind.conversions if case["created"] == NEWER]
    if not recorded and kind.name != "cloneset":
        recorded = [{"spec": base["spec"]} for base in kind.bases.values()]  # both versions have the same fields
    sent = recorded or [{"spec": {**kind.base("cs")["spec"], **CLONE_SET_FIELDS}}]
    return [{**kind.head(NEWER), "metadata": {}, **one} for one in sent]


CLONE_SET_FIELDS: Json = {
    "replicas": 0,
    "scaleStrategy": {"excludePreparingDelete": True, "enablePVCReuse": True},
    "updateStrategy": {"type": "OnDelete", "rollingUpdate": {"podUpdatePolicy": "InPlaceOnly", "partition": 2}},
}


def test_a_write_through_v1alpha1_loses_nothing(kind: Recorded) -> None:
    """ST-6 and its like: the original erases what only v1beta1 has."""

    async def scenario(world: World) -> None:
        stage = Stage(world, kind)
        cases = list(itertools.product(newer_manifests(kind), WAYS))
        for number, (manifest, way) in enumerate(cases):
            if way != "scale" or "replicas" in manifest["spec"]:
                metadata = {**manifest["metadata"], "name": f"both-{number}"}
                await loses_nothing(stage, {**manifest, "metadata": metadata}, way)

    run_local(scenario, features=features(kind))
