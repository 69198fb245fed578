"""What a change sets in an object, field by field, in the words that people use for fields."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kruise.foresight.forecast import FieldChange
from kruise.machinery import codec
from kruise.machinery.patches.values import same

_MISSING = object()


def changes_between(before: Any, after: Any, computed: Collection[str] = ()) -> tuple[FieldChange, ...]:
    """The fields of the spec, and labels and annotations, that differ between two typed objects; None: not there.
    Annotations that are `computed` follow from the rest."""
    return tuple(_differences("", _shown(before, computed), _shown(after, computed)))


def _shown(obj: Any, computed: Collection[str]) -> dict[str, Any]:
    if obj is None:
        return {}
    document: dict[str, Any] = codec.decode(codec.encode(obj), dict[str, Any])
    metadata = document.get("metadata") or {}
    told = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in computed}
    metadata = {**metadata, "annotations": told}
    parts = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    return {**({"metadata": parts} if parts else {}), "spec": document.get("spec") or {}}


def _differences(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if before is not _MISSING and after is not _MISSING and same(before, after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in sorted(before.keys() | after.keys()):
            inner = _member(path, name)
            yield from _differences(inner, before.get(name, _MISSING), after.get(name, _MISSING))
    elif (one := _by_name(before)) is not None and (other := _by_name(after)) is not None:
        for name in dict.fromkeys((*one, *other)):
            yield from _differences(f"{path}[{name}]", one.get(name, _MISSING), other.get(name, _MISSING))
        if one.keys() == other.keys() and list(one) != list(other):
            yield FieldChange(path=path, before=_text(list(one)), after=_text(list(other)))
    else:
        yield FieldChange(path=path, before=_text(before), after=_text(after))


def _member(path: str, name: str) -> str:
    if not path:
        return name
    plain = name.replace("_", "").replace("-", "").isalnum()
    return f"{path}.{name}" if plain else f"{path}['{name}']"


def _by_name(value: Any) -> dict[str, Any] | None:
    """A list of objects that each have a name of their own, such as containers."""
    if not isinstance(value, list) or not value:
        return None
    names = [item.get("name") if isinstance(item, dict) else None for item in value]
    if any(not isinstance(name, str) for name in names) or len(set(names)) != len(names):
        return None
    return {str(name): item for name, item in zip(names, value, strict=True)}


def _text(value: Any) -> str:
    return "" if value is _MISSING else codec.encode(value).decode()
