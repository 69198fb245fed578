"""Every scenario of PodProbeMarkers on the local cluster and virtual time."""

from __future__ import annotations

import pytest

from tests.scenarios.local import play_locally
from tests.scenarios.probing import SCENARIOS
from tests.scenarios.settings import EVERYTHING_ON


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_scenario(name: str) -> None:
    play_locally(SCENARIOS[name], SCENARIOS[name].gates)


def test_with_everything_on() -> None:
    """PPM-44: annotations for virtual nodes do not disturb the ordinary way."""
    play_locally(SCENARIOS["results_become_conditions_and_marks"], EVERYTHING_ON)
