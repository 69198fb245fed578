"""`rollout pause` and `rollout resume`."""

from __future__ import annotations

from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of, value_at, with_value
from kruise.verbs.errors import VerbError


def change(kind: Face, document: Json, *, pause: bool) -> Json:
    named = f'{kind.resource.group_resource} "{name_of(document)}"'
    if kind.paused is None:
        raise VerbError(f"{named} {'pausing' if pause else 'resuming'} is not supported")
    if bool(value_at(document, kind.paused, False)) == pause:
        raise VerbError(f"{named} is already paused" if pause else f"{named} is not paused")
    return with_value(document, kind.paused, pause)
