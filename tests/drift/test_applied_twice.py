"""Applying what is there changes nothing, on the local cluster."""

from __future__ import annotations

from kruise.kinds import features
from tests.support.applied_twice import GATES, applied_twice
from tests.support.world import LocalWorld, run_local


def test_every_manifest_in_every_version_by_every_way() -> None:
    async def scenario(world: LocalWorld) -> None:
        assert await applied_twice(world, features()) > 40, "the manifests are not found"

    run_local(scenario, feature_gates=GATES)
