"""How long each step of a pod takes: one typical time, the same for all pods, so that one sees waves and not chance."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds."""

    schedule: float = 0.0
    """From a pod's creation until it has a node."""
    start: float = 3.0
    """From there until its containers run, pull included."""
    ready: float = 1.0
    """From there until it is ready."""
    restart: float = 3.0
    """From the change of a running pod until the changed containers run again, pull included."""
    resize: float = 1.0
    """From the change of resources until they apply."""
    stop: float = 2.0
    """From a pod's deletion until its containers have ended; never more than its grace period."""
    agent: float = 4.0
    """From a change of labels or annotations until the node agent stops a container that draws on them."""
    report: float = 1.0
    """From the start of a container until the node agent has told of it."""
    learnt: frozenset[str] = frozenset()
    """The names of the times that were learnt from pods; the others are assumed."""
