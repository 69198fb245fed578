"""What the plan of a SidecarSet remembers for its status and events."""

from __future__ import annotations

from kruise.api.apps.shared import FailureBudgetStatus
from kruise.machinery.codec import Struct


class Memo(Struct, kw_only=True):
    matched: int = 0
    updated: int = 0
    ready: int = 0
    updated_ready: int = 0
    not_selected: int = 0
    stuck: int = 0
    """Selected, and not to be updated in place."""
    revision: str = ""
    collision_count: int = 0
    has_newly_stuck: bool = False
    """Of one of them it was not told before."""
    failure_budget: FailureBudgetStatus | None = None
    """What is remembered of a rollout that stopped."""
    stopped: str = ""
    """Why it stopped just now; empty: it has not, or that is no news."""
