"""Every scenario with all alpha and beta gates on (IPU-1), but for those that it wants off. Virtual time."""

from __future__ import annotations

import pytest

from tests.scenarios.all import SCENARIOS
from tests.scenarios.local import play_locally
from tests.scenarios.settings import EVERYTHING_ON


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario_with_everything_on(name: str) -> None:
    scenario = SCENARIOS[name]
    play_locally(scenario, {**EVERYTHING_ON, **scenario.gates})
