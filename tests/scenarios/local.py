"""Playing a scenario on the local cluster, on virtual time."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.api.native.storage import STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from tests.scenarios.settings import gates_text
from tests.scenarios.stage import Scenario
from tests.support.world import LocalWorld, run_local


def play_locally(scenario: Scenario, chosen: Mapping[str, bool]) -> None:
    """In a world of its own, with these gates."""

    async def play(world: LocalWorld) -> None:
        await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
        await scenario.play(scenario.stage(world, gates=world.options.gates))

    run_local(play, feature_gates=gates_text(chosen), **scenario.flags)
