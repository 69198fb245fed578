"""What the server itself writes into an object on create and update, by the rules that all kinds share."""

from __future__ import annotations

from kruise.local.apicore import metadata
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription, ObjectSubresource

_NO_CONTENT = frozenset({"apiVersion", "kind", "metadata"})


def prepare_new(kind: KindDescription, obj: Json) -> Json:
    """A new object has no status yet, and is of generation 1 where the kind counts them."""
    obj = dict(obj)
    if kind.tracks_generation:
        obj["metadata"] = {**obj["metadata"], "generation": 1}
    if kind.has_status and not kind.keeps_status_on_create:
        obj.pop("status", None)
    return kind.prepare_create(obj)


def prepare_status(kind: KindDescription, new: Json, old: Json) -> Json:
    """The new status, and of the rest only the metadata that the kind allows a status write to change.

    Custom kinds take over none of the metadata, so that even a wrong uid in it goes unnoticed.
    """
    about = dict(old["metadata"] if kind.custom else new["metadata"])
    for name in kind.status_keeps:
        _put_back(about, old["metadata"], name)
    result = {**old, "metadata": about}
    _put_back(result, new, "status")
    return result


def changed(kind: KindDescription, part: ObjectSubresource | None, new: Json, old: Json) -> Json:
    """The object to store for an update: what may not change is put back, the generation counts changes of content."""
    if part is not None:
        new = part.prepare(new, old)
    else:
        if kind.has_status:
            new = dict(new)
            _put_back(new, old, "status")
        if kind.prepare_update is not None:
            new = kind.prepare_update(new, old)
    new = metadata.for_update(new, old)
    about = new["metadata"]
    about["resourceVersion"] = old["metadata"]["resourceVersion"]
    counted = kind.counted_metadata if part is None else ()
    if kind.tracks_generation and (
        _content(kind, new) != _content(kind, old)
        or any(about.get(name) != old["metadata"].get(name) for name in counted)
    ):
        about["generation"] = about.get("generation", 0) + 1
    return new


def _put_back(target: Json, source: Json, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _content(kind: KindDescription, obj: Json) -> Json:
    return {
        name: value
        for name, value in obj.items()
        if name not in _NO_CONTENT and not (name == "status" and kind.has_status)
    }
