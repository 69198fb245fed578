"""The whole list: importing a module of scenarios puts its behaviours on it."""

from __future__ import annotations

from tests.scenarios import (
    claims,
    failure_budget,
    inplace,
    lifecycle,
    predownload,
    progress,
    resizing,
    scaling,
    templates,
    updating,
    versions,
)
from tests.scenarios.stage import SCENARIOS, Scenario

MODULES = (
    scaling,
    updating,
    inplace,
    resizing,
    lifecycle,
    claims,
    progress,
    predownload,
    templates,
    versions,
    failure_budget,
)

__all__ = ["MODULES", "SCENARIOS", "Scenario"]
