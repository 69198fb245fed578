"""How many random examples are tried: always the same few, or new ones, `KRUISE_EXAMPLES` times as many."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = int(os.environ.get("KRUISE_EXAMPLES", "1"))


def story_settings(examples: int) -> settings:
    """For tests that play long stories, so many by default: drawing one takes its time, and some are too long."""
    return settings(
        max_examples=examples * EXAMPLES,
        deadline=None,
        derandomize=EXAMPLES == 1,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
