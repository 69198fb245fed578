"""CloneSet admission on the local cluster, beyond what was recorded."""

from __future__ import annotations

from tests.support.world import run_local
from tests.workloads.cloneset import admission_scenarios


def test_both_versions() -> None:
    run_local(admission_scenarios.both_versions)
