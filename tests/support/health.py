"""How an object stands in the words of GitOps tools, by what `rollout status` says of it. The scripts of all kinds are
held against it.

What is half-updated is never healthy. Where nothing goes on by itself, since it is paused, a partition keeps pods, or
somebody has to delete them, it is suspended.
"""

from __future__ import annotations

import enum

from kruise.faces.face import Face
from kruise.faces.progress import Phase, is_observed, is_rolling
from kruise.machinery.documents import Json


class Health(enum.StrEnum):
    """The words of Argo CD."""

    HEALTHY = "Healthy"
    PROGRESSING = "Progressing"
    SUSPENDED = "Suspended"
    DEGRADED = "Degraded"


def health_of(face: Face, document: Json) -> Health:
    if face.progress is None:
        is_seen = not face.tells_generation or is_observed(document)
        return Health.HEALTHY if is_seen else Health.PROGRESSING
    seen = face.progress(document)
    is_half = seen.updated < seen.wanted
    match seen.phase:
        case Phase.FAILED:
            # A rollout by hand cannot be waited for, but nothing is wrong with it.
            by_hand = face.template is not None and not is_rolling(document) and seen.updated < seen.total
            return Health.SUSPENDED if by_hand else Health.DEGRADED
        case Phase.DONE if face.runs_to_end:
            return Health.HEALTHY
        case Phase.DONE:
            return Health.SUSPENDED if seen.is_paused or is_half else Health.HEALTHY
        case _:
            return Health.SUSPENDED if seen.is_paused else Health.PROGRESSING
