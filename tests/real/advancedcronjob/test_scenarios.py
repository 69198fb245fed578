"""The scenarios of AdvancedCronJobs on a real control plane, see `tests.scenarios.theatre`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.scenarios.schedules import SCENARIOS
from tests.scenarios.settings import Setting
from tests.scenarios.stage import Scenario
from tests.scenarios.theatre import Theatre, cases_of, theatre_for


@pytest.fixture(scope="module")
def theatre(request: pytest.FixtureRequest) -> Iterator[Theatre]:
    with theatre_for(request) as opened:
        yield opened


@pytest.mark.parametrize(("setting", "scenario"), cases_of(SCENARIOS.values(), "advancedcronjob"))
def test_scenario(theatre: Theatre, setting: Setting, scenario: Scenario) -> None:
    wrong = theatre.result(setting, scenario)
    assert not wrong, wrong
