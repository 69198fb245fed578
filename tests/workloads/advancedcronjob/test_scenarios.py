"""Every scenario of AdvancedCronJobs on the local cluster and virtual time."""

from __future__ import annotations

import pytest

from tests.scenarios.local import play_locally
from tests.scenarios.schedules import SCENARIOS
from tests.scenarios.settings import settings_for


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario(name: str) -> None:
    play_locally(SCENARIOS[name], SCENARIOS[name].gates)


def test_every_scenario_suits_a_setting_of_the_real_runs() -> None:
    assert all(settings_for(scenario) for scenario in SCENARIOS.values())
