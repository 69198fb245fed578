"""Every scenario of budgets on the local cluster and virtual time, with the product's gates and with all on."""

from __future__ import annotations

import pytest

from tests.scenarios.budgets import SCENARIOS
from tests.scenarios.local import play_locally
from tests.scenarios.settings import EVERYTHING_ON, settings_for


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario(name: str) -> None:
    play_locally(SCENARIOS[name], SCENARIOS[name].gates)


@pytest.mark.parametrize("name", [name for name, one in SCENARIOS.items() if one.is_smoke])
def test_scenario_with_everything_on(name: str) -> None:
    play_locally(SCENARIOS[name], {**EVERYTHING_ON, **SCENARIOS[name].gates})


def test_every_scenario_suits_a_setting_of_the_real_runs() -> None:
    assert all(settings_for(scenario) for scenario in SCENARIOS.values())
