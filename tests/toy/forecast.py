"""What `kruise plan` asks a Troupe beside its decisions."""

from __future__ import annotations

from kruise.faces.forecast import Around, ForecastFacts, Limits
from kruise.inplace.availability import is_available

from .api import TROUPES, Troupe


def _wanted(troupe: Troupe, around: Around) -> int:
    return troupe.spec.replicas


FORECAST = ForecastFacts(
    resource=TROUPES,
    wanted=_wanted,
    serves=is_available,
    limits=lambda troupe: Limits(is_paused=troupe.spec.paused),
    update_revision=lambda troupe: troupe.status.update_revision,
)
