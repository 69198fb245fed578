"""What the plan of a BroadcastJob remembers for its status and events."""

from __future__ import annotations

from datetime import datetime

from kruise.machinery.codec import Struct
from kruise.machinery.plan import EventNote


class End(Struct, kw_only=True):
    """How the job ends."""

    condition: str
    event: str
    message: str


class Memo(Struct, kw_only=True):
    phase: str
    desired: int
    active: int
    succeeded: int
    failed: int
    start_time: datetime
    end: End | None = None
    events: tuple[EventNote, ...] = ()
    active_pods: tuple[str, ...] = ()
    """Of those that are deleted, the names of those that are counted as active."""
    stopped: int = 0
    """Of those that count as failed, how many had not ended when the job failed."""
    lost: str = ""
    """What a pod that failed and is deleted, since it would restart for ever, has told of it."""
    is_frozen: bool = False
    """The job is over: its numbers are those of its end, but for pods that still run."""
