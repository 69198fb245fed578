"""Every kind that this build of PyKruise knows. A new kind adds its feature here, and nowhere else."""

from __future__ import annotations

from kruise.feature import Feature
from kruise.readiness.controller import FEATURE as READINESS
from kruise.workloads.cloneset.controller import FEATURE as CLONE_SET

FEATURES: tuple[Feature, ...] = (CLONE_SET, READINESS)
