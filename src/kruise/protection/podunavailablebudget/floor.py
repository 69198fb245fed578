"""How many pods have to stay available (PUB-35)."""

from __future__ import annotations

from kruise.api.policy.podunavailablebudget import BudgetSpecBase
from kruise.machinery.intorpercent import scaled


def floor_of(spec: BudgetSpecBase, total: int) -> int:
    """Of the pods that there should be. Raises IntOrPercentError."""
    if spec.max_unavailable is not None:
        return max(0, total - scaled(spec.max_unavailable, total, round_up=True))
    return max(0, scaled(spec.min_available, total, round_up=True))
