"""What pods remember of the SidecarSets whose sidecars they have: annotations with JSON maps (SCS-60, SCS-103)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kruise.machinery import codec
from kruise.machinery.codec import Struct, field
from kruise.machinery.times import format_time
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.content import Content

Annotations = Mapping[str, str]


class RecordError(ValueError):
    """An annotation cannot be read; the text names it and the remedy."""


class Record(Struct):
    """Which content of a SidecarSet a pod has."""

    update_timestamp: str = ""
    hash: str = ""
    sidecar_set_name: str = ""
    sidecar_list: tuple[str, ...] | None = ()
    controller_revision: str = ""


class LastStatus(Struct):
    image_id: str = field(default="", name="imageID")


class UpdateState(Struct):
    """The containers that were changed, with the images that they ran before."""

    revision: str = ""
    update_timestamp: str = ""
    last_container_statuses: dict[str, LastStatus] = field(default_factory=dict)


def _read(annotations: Annotations, key: str) -> dict[str, Any]:
    text = annotations.get(key)
    if not text:
        return {}
    try:
        found = codec.decode(text.encode(), dict)
    except codec.DecodeError as error:
        raise RecordError(f"annotation {key} is not the JSON that a SidecarSet writes: remove it ({error})") from error
    return found


def raw_records(annotations: Annotations, key: str = keys.HASH) -> dict[str, Any]:
    """Entries as they stand, those in the old form (a hash alone) in the new one. Raises RecordError."""
    return {
        name: {"hash": entry, "sidecarSetName": name} if isinstance(entry, str) else entry
        for name, entry in _read(annotations, key).items()
    }


def record_of(annotations: Annotations, name: str, key: str = keys.HASH) -> Record | None:
    """The entry of a SidecarSet; None where there is none, or where it cannot be read."""
    try:
        entry = raw_records(annotations, key).get(name)
        return codec.convert(entry, Record) if isinstance(entry, dict) else None
    except (RecordError, codec.DecodeError):
        return None


def entry(content: Content, now: datetime, *, without_image: bool = False) -> dict[str, Any]:
    """In the order in which it is written."""
    found: dict[str, Any] = {
        "updateTimestamp": format_time(now),
        "hash": content.hash_without_image if without_image else content.hash,
        "sidecarSetName": content.owner,
        "sidecarList": content.sidecar_list,
    }
    if content.revision and not without_image:
        found["controllerRevision"] = content.revision
    return found


def text_of(entries: Mapping[str, Any]) -> str:
    return codec.encode({name: entries[name] for name in sorted(entries)}).decode()


def injected(annotations: Annotations) -> tuple[str, ...]:
    """The SidecarSets whose sidecars a pod has."""
    text = annotations.get(keys.INJECTED_LIST, "")
    return tuple(name for part in text.split(",") if (name := part.strip())) if text else ()


def injected_text(names: Iterable[str]) -> str:
    return ",".join(sorted(set(names)))


def working_twins(annotations: Annotations) -> dict[str, str]:
    """Sidecar -> the one of its two containers that works. Raises RecordError."""
    return {name: str(twin) for name, twin in _read(annotations, keys.WORKING).items()}


def update_states(annotations: Annotations) -> dict[str, Any]:
    """SidecarSet -> its `UpdateState`, as it stands. Raises RecordError."""
    return _read(annotations, keys.UPDATE_STATE)


def state_of(entry: Any) -> UpdateState:
    """Raises RecordError."""
    try:
        return codec.convert(entry, UpdateState)
    except codec.DecodeError as error:
        raise RecordError(f"annotation {keys.UPDATE_STATE} cannot be read: remove it ({error})") from error
