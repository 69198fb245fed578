"""Applying what is there changes nothing, on the local cluster."""

from __future__ import annotations

from kruise.kinds import features
from tests.support.applied_twice import WAYS, apply, cases, create, drift, resource_of
from tests.support.world import LocalWorld, run_local


def test_every_manifest_in_every_version_by_every_way() -> None:
    found = cases(features())
    assert len(found) > 40, "the manifests are not found"

    async def scenario(world: LocalWorld) -> None:
        drifted = []
        for case in found:
            resource = resource_of(case, features())
            await create(world, resource, case)
            for way in WAYS:
                first = await apply(world, resource, case, way)
                again = await apply(world, resource, case, way)
                drifted += [f"{case}, {way}: {what}" for what in (drift(first, again),) if what]
        assert not drifted, "\n".join(drifted)

    run_local(scenario)
