"""Schedule and policies of an AdvancedCronJob, each with a title."""

from __future__ import annotations

from kruise.faces.face import Setting
from kruise.machinery.documents import Json, value_at


def settings(document: Json) -> list[Setting]:
    spec = value_at(document, ("spec",), {})
    found = [("Schedule", str(spec.get("schedule", ""))), ("Time Zone", str(spec.get("timeZone") or "of the manager"))]
    found.append(("Concurrency", str(spec.get("concurrencyPolicy") or "Allow")))
    if spec.get("startingDeadlineSeconds") is not None:
        found.append(("Starting Deadline", f"{spec['startingDeadlineSeconds']}s"))
    kept = f"{spec.get('successfulJobsHistoryLimit', 3)} successful, {spec.get('failedJobsHistoryLimit', 1)} failed"
    found.append(("Kept", kept))
    return found
