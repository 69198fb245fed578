"""The note of what was there before a takeover: a ConfigMap, from which the way back is found. Pure."""

from __future__ import annotations

import base64
import dataclasses
import enum
import gzip
from collections.abc import Mapping
from typing import Any

from kruise.machinery.codec import DecodeError, canonical, decode
from kruise.manager.installation.documents import Json, Named, named

NAME = "kruise-takeover"
_NOT_KEPT = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""What an API server writes itself."""


class State(enum.StrEnum):
    UNDER_WAY = "under-way"
    DONE = "done"
    GOING_BACK = "going-back"


class NoteError(ValueError):
    """The note cannot be read; the text says why."""


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    state: State
    since: str
    original: str
    """The image of the manager that was there; empty: there was none any more."""
    documents: Mapping[Named, Json]
    """What was there, by its name, as it can be brought back."""


def as_it_was(document: Json) -> Json:
    """An object without what belongs to its life in the cluster."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in _NOT_KEPT}
    return {**{key: value for key, value in document.items() if key != "status"}, "metadata": metadata}


def written(note: Note, namespace: str) -> dict[str, Any]:
    """The ConfigMap. Definitions are large texts of one kind, so they are packed."""
    packed = {}
    for index, (name, document) in enumerate(note.documents.items()):
        text = gzip.compress(canonical(document), mtime=0)
        packed[f"{index:03}.{name.kind.lower()}.{name.name}"] = base64.b64encode(text).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace},
        "data": {"state": note.state.value, "since": note.since, "original": note.original},
        "binaryData": packed,
    }


def read(config_map: Json) -> Note:
    """Raises `NoteError`."""
    data = config_map.get("data") or {}
    packed: Mapping[str, str] = config_map.get("binaryData") or {}
    try:
        documents = [decode(gzip.decompress(base64.b64decode(packed[key])), dict[str, Any]) for key in sorted(packed)]
        return Note(
            State(data.get("state", "")),
            str(data.get("since", "")),
            str(data.get("original", "")),
            {named(document): document for document in documents},
        )
    except (ValueError, KeyError, EOFError, OSError, DecodeError) as error:
        raise NoteError(
            f"configmap/{NAME} cannot be read ({error}): without it there is no way back. Bring it back from a backup, "
            "or delete it and take over anew"
        ) from error
