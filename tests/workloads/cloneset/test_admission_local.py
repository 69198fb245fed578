"""CloneSet admission on the local cluster: schema, conversion and webhooks together, on virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.support.world import World, run_local
from tests.workloads.cloneset import admission_scenarios


@pytest.mark.parametrize(
    "scenario",
    [
        admission_scenarios.recorded_verdicts,
        admission_scenarios.recorded_defaults,
        admission_scenarios.subresources,
        admission_scenarios.both_versions,
    ],
    ids=lambda scenario: scenario.__name__,
)
def test_admission(scenario: Callable[[World], Awaitable[None]]) -> None:
    run_local(scenario)


def test_deletion_protection() -> None:
    run_local(admission_scenarios.protected, feature_gates="ResourcesDeletionProtection=true")
