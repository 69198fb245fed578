"""Who owns which field: `managedFields` and server-side apply.

`sets` are sets of fields, `schema` the types behind them, `typed` walks values along types, `merge` decides who owns
what after a write, `managers` reads and writes the entries. All of that is pure. `tracking` and `apply` connect it with
an API core.
"""

from __future__ import annotations

from kruise.local.apicore.core import ApiCore
from kruise.local.fields.apply import ApplyReader
from kruise.local.fields.tracking import Tracker

__all__ = ["ApplyReader", "Tracker", "install"]


def install(core: ApiCore) -> Tracker:
    """Let a core keep count of field owners and understand server-side apply."""
    tracker = Tracker(core.clock)
    core.field_tracker = tracker
    core.apply_reader = ApplyReader(tracker)
    return tracker
