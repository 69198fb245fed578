"""Every kind that this build of PyKruise knows. A new kind adds its feature here, and nowhere else."""

from __future__ import annotations

from kruise.feature import Feature

FEATURES: tuple[Feature, ...] = ()
