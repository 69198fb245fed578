"""Jobs that have ended: no verb changes what becomes of them."""

from __future__ import annotations

from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of, value_at
from kruise.verbs.errors import VerbError


def must_go_on(kind: Face, document: Json) -> None:
    """A job tells by its time that it has ended. One that never does may be at rest and go on with the next node."""
    if kind.runs_to_end and (ended := value_at(document, ("status", "completionTime"), "")):
        phase = str(value_at(document, ("status", "phase"), ""))
        how = f"{phase.lower()} at {ended}" if phase else f"at {ended}"
        raise VerbError(
            f"{kind.named(name_of(document))} has ended ({how}): nothing follows from a change; delete it, and create "
            "it anew"
        )
