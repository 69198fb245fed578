"""What a change will do, worked out before it is made: the kinds' own decisions, carried out in a model of the cluster.

Nothing here talks to a cluster. Objects come in as they were read, a `Forecast` comes out.

    needed       what to read                          (needs.py)
    foresee      objects and a change in, forecast out (foreseeing.py)

Pods that a change makes find nodes, or do not, by the rules of the scheduler (`kruise.model.room`).

    admitting, learning -> playing (controllers in `kruise.model`) -> watching (moves, waves) -> telling, warnings
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kruise.foresight.errors import ForesightError, RefusedError, UnknownKindError
    from kruise.foresight.foreseeing import foresee
    from kruise.foresight.needs import Need, needed
    from kruise.foresight.playing import Bounds

_HOMES = {
    "Bounds": "playing",
    "ForesightError": "errors",
    "Need": "needs",
    "RefusedError": "errors",
    "UnknownKindError": "errors",
    "foresee": "foreseeing",
    "needed": "needs",
}

__all__ = ["Bounds", "ForesightError", "Need", "RefusedError", "UnknownKindError", "foresee", "needed"]


def __getattr__(name: str) -> Any:
    """Loaded when asked for: who only shows a forecast needs none of the kinds."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
