"""What the daemon has decided lately, for its log when somebody asks. There is no address for it: it says what pods
run."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kruise.machinery.journal import Journal

log = logging.getLogger(__name__)

MOST = 100
"""Decisions that are logged at once, of all parts."""


def small_journal() -> Journal:
    """It is on every node, so it remembers less than a manager's."""
    return Journal(snapshots=4, capacity=64)


def log_decisions(journal: Journal) -> None:
    """The oldest first, one line each."""
    for entry in reversed(journal.entries(limit=MOST)):
        log.info("decision", extra={name: value for name, value in _fields(entry).items() if value})


def _fields(entry: Mapping[str, Any]) -> dict[str, str]:
    plan, conclusion, key = entry["plan"], entry["conclusion"], entry["key"]
    return {
        "part": entry["controller"],
        "object": "/".join(word for word in (key["namespace"], key["name"]) if word),
        "decided": str(entry["time"]),
        "seen": entry["digest"],
        "actions": _counted(plan.get("counts", {})),
        "jobs": ", ".join(plan.get("jobs", ())),
        "drops": ", ".join(plan.get("drops", ())),
        "wakes": ", ".join(f"in {wake['after']:.1f} s: {wake['reason']}" for wake in plan.get("wakes", ())),
        "outcome": _counted(entry["outcomes"]),
        "troubles": ", ".join(f"{one['action']}: {one['error'] or one['result']}" for one in entry["troubles"]),
        "events": ", ".join(conclusion.get("events", ())),
        "error": entry["error"],
    }


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items())
