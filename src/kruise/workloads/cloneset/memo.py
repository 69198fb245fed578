"""What the plan of a CloneSet remembers for its status and events."""

from __future__ import annotations

from kruise.workloads.cloneset.status import Figures
from kruise.workloads.shared.memo import WorkloadMemo


class Memo(WorkloadMemo, kw_only=True):
    figures: Figures
    """What was counted."""
