"""The kinds that a forecast can be made for: those whose faces say what it has to know."""

from __future__ import annotations

from typing import Any

from kruise.api.resource import Resource
from kruise.faces.forecast import ForecastFacts
from kruise.foresight.errors import UnknownKindError
from kruise.kinds import face_of


def facts_of(subject: Resource[Any]) -> ForecastFacts:
    """Raises UnknownKindError."""
    face = face_of(subject.group, subject.kind)
    facts = face.forecast_facts() if face is not None else None
    if facts is None:
        raise UnknownKindError(subject)
    return facts
