"""Where ours differs from a recording on purpose: what, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "uniteddeployment-cloneset": (
        Chosen(
            r"remove subset a: \[status\.UnitedDeployment/ud\.subsets\.a\] ",
            "A subset that was removed leaves the status (UD-14).",
        ),
    ),
    "uniteddeployment-percent-partitions": (
        Chosen(
            r".*: \[status\.UnitedDeployment/ud\.conditions\.UnitedDeploymentUpdated\] recorded 'True', ours 'False'",
            "While pods keep the old template, the condition says so, also with CloneSets.",
        ),
    ),
    "workloadspread-deployment-evict": (
        Chosen(
            r"scale to 2: \[(pods|status)\.",
            "A percentage is one of the new size before the first pod goes: the subset that is above it gives one up.",
        ),
    ),
    "workloadspread-statefulset": (
        Chosen(
            r"(delete pod web-1|scale to 2): \[(pods|status)\.",
            "The maximum of a subset holds for StatefulSets, too: a pod that finds its subset full goes to the next.",
        ),
    ),
}
CLOSED: Mapping[str, frozenset[str]] = {"workloadspread-deployment": frozenset("a")}
"""Zones in which none of the first pods was."""
