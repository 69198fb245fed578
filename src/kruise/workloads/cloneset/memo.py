"""What the plan of a CloneSet remembers for its status and events."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.machinery.codec import field
from kruise.machinery.memo import RolloutMemo
from kruise.machinery.plan import EventNote
from kruise.workloads.cloneset.status import Figures
from kruise.workloads.shared.failure_budget import Judgement
from kruise.workloads.shared.waiting import Waiting


class Memo(RolloutMemo, kw_only=True):
    figures: Figures
    """What was counted."""
    events: tuple[EventNote, ...] = ()
    """Those that do not depend on the writes."""
    moves: Mapping[str, str] = field(default_factory=dict)
    """How the pods of phase `update` move, by name."""
    target_revision: str = ""
    """Where they move: the update revision, or the current one when they go back."""
    failure_budget: Judgement | None = None
    """None: no budget was looked at, its condition stays as it is."""
    waiting: Waiting | None = None
    """None: nobody looked at what waits, its condition stays as it is."""
