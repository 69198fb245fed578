"""What the plan of a StatefulSet remembers for its status and events."""

from __future__ import annotations

from kruise.workloads.shared.memo import WorkloadMemo
from kruise.workloads.statefulset.status import Figures


class Memo(WorkloadMemo, kw_only=True):
    owner: str
    """Name of the StatefulSet."""
    figures: Figures
    """What was counted."""
