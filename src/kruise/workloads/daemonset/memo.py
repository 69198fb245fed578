"""What the plan of a DaemonSet remembers for its status and events."""

from __future__ import annotations

from kruise.machinery.codec import field
from kruise.machinery.delays import Delay
from kruise.workloads.daemonset.status import Figures
from kruise.workloads.shared.memo import WorkloadMemo


class Memo(WorkloadMemo, kw_only=True):
    figures: Figures
    """What was counted."""
    delays: dict[str, Delay] = field(default_factory=dict)
    """How long failed pods stay from now on, by node."""
    is_complete: bool = True
    """The pass came to the end: it adopts, creates and deletes nothing before it rolls (DS-36)."""
