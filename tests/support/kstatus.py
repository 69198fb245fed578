"""How kstatus reads an object of a kind that it does not know: by its generation and by three conditions.

Written from its documentation (cli-utils, pkg/kstatus). Flux waits for objects with it.
"""

from __future__ import annotations

import enum
from typing import Any


class Status(enum.StrEnum):
    CURRENT = "Current"
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"


def status_of(document: dict[str, Any]) -> Status:
    metadata, status = document.get("metadata", {}), document.get("status", {})
    if metadata.get("deletionTimestamp"):
        return Status.TERMINATING
    observed = status.get("observedGeneration")
    if observed is not None and observed != metadata.get("generation"):
        return Status.IN_PROGRESS
    conditions = {one.get("type"): one.get("status") for one in status.get("conditions", ()) if isinstance(one, dict)}
    if conditions.get("Reconciling") == "True":
        return Status.IN_PROGRESS
    if conditions.get("Stalled") == "True":
        return Status.FAILED
    if conditions.get("Ready") in ("False", "Unknown"):
        return Status.IN_PROGRESS
    return Status.CURRENT
