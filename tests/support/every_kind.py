"""A life in which every kind has one object: the first manifest of each that the documents show."""

from __future__ import annotations

from kruise.kinds import features
from tests.support.applied_twice import cases, create, resource_of
from tests.support.world import World


async def one_of_each_kind(world: World) -> None:
    made: set[str] = set()
    for case in cases(features()):
        kind = str(case.manifest["kind"])
        if kind not in made:
            made.add(kind)
            await create(world, resource_of(case, features()), case)
    await world.sleep(200)
