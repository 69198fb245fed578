"""`set env`: variables of containers, set, removed, taken from a ConfigMap or Secret, or listed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of, value_at
from kruise.verbs import containers
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.lookup import pod_spec

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")


@dataclasses.dataclass(frozen=True, slots=True)
class Edits:
    """Variables to set, as entries of `env`, and names to remove."""

    wanted: tuple[Json, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.wanted or self.removed)


def parse(words: Iterable[str]) -> Edits:
    """`NAME=VALUE` and `NAME-`."""
    wanted: dict[str, str] = {}
    removed: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and word.endswith("-") and len(word) > 1:
            removed.append(word[:-1])
        elif not equals:
            raise UsageError(f'"{word}" is neither NAME=VALUE nor NAME- (which removes NAME)')
        else:
            wanted[name] = value
    wrong = [name for name in (*wanted, *removed) if not _NAME.fullmatch(name)]
    if wrong:
        raise UsageError(f'"{wrong[0]}" is no name of a variable: letters, digits, "_", "-" and "." are allowed')
    both = wanted.keys() & set(removed)
    if both:
        raise UsageError(f'"{min(both)}" is both set and removed')
    return Edits(tuple({"name": name, "value": value} for name, value in wanted.items()), tuple(removed))


def parse_lines(text: str) -> list[str]:
    """The assignments of a file: one a line, empty lines and comments left out."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def from_source(source: Json, keys: Collection[str] = ()) -> tuple[Json, ...]:
    """Entries that refer to the keys of a ConfigMap or Secret; all keys where none is named."""
    fields = {"ConfigMap": "configMapKeyRef", "Secret": "secretKeyRef"}
    field = fields.get(str(source.get("kind")))
    if field is None:
        raise UsageError("unsupported resource specified in --from: name configmap/NAME or secret/NAME")
    data: Mapping[str, Any] = source.get("data") or {}
    missing = [key for key in keys if key not in data]
    if missing:
        known = ", ".join(sorted(data)) or "none"
        raise VerbError(f"{source['kind']} {name_of(source)} has no key {missing[0]}; its keys are {known}")
    return tuple(
        {"name": variable_name(key), "valueFrom": {field: {"name": name_of(source), "key": key}}}
        for key in sorted(data)
        if not keys or key in keys
    )


def variable_name(key: str) -> str:
    return _NO_NAME.sub("_", key).upper()


def with_prefix(edits: Edits, prefix: str) -> Edits:
    return dataclasses.replace(
        edits, wanted=tuple({**entry, "name": f"{prefix}{entry['name']}"} for entry in edits.wanted)
    )


def change(
    kind: Face, document: Json, edits: Edits, *, pattern: str = containers.EVERY, overwrite: bool = True
) -> Json:
    """The object with other variables. Those that stay keep their places; new ones come behind."""

    def edit(container: Json) -> None:
        present = container.get("env") or []
        if not overwrite:
            _refuse_overwrites(present, edits.wanted)
        changed = updated(present, edits)
        if changed:
            container["env"] = changed
        else:
            container.pop("env", None)

    return containers.edited(kind, document, pattern, edit)


def updated(present: Sequence[Json], edits: Edits) -> list[Json]:
    wanted = {entry["name"]: entry for entry in edits.wanted}
    kept = [wanted.pop(entry.get("name"), entry) for entry in present if entry.get("name") not in edits.removed]
    return [*kept, *wanted.values()]


def _refuse_overwrites(present: Sequence[Json], wanted: Sequence[Json]) -> None:
    values = {entry.get("name"): entry for entry in present}
    for entry in wanted:
        found = values.get(entry["name"])
        if found is not None and found != entry:
            raise VerbError(
                f"'{entry['name']}' already has a value ({found.get('value', '')}), and --overwrite is false"
            )


def listing(kind: Face, document: Json, pattern: str, resolved: Mapping[tuple[str, str, str], str]) -> list[str]:
    """The variables as text. `resolved` holds values by kind, name and key of their source, where they were read."""
    wanted = set(containers.chosen(kind, document, pattern))
    lines = []
    for container in containers.listed(value_at(document, pod_spec(kind, document), {})):
        if container.get("name") not in wanted:
            continue
        lines.append(f"# {kind} {name_of(document)}, container {container['name']}")
        for entry in container.get("env") or ():
            source = entry.get("valueFrom")
            value = resolved.get(source_of(entry) or ("", "", "")) if source else entry.get("value", "")
            text = f"{entry['name']}={value}" if value is not None else f"# {entry['name']} from {_reference(source)}"
            lines.append(text)
    return lines


def sources(kind: Face, document: Json) -> set[tuple[str, str, str]]:
    """Kind, name and key of every ConfigMap and Secret entry that variables are taken from."""
    spec = value_at(document, pod_spec(kind, document), {})
    found = (source_of(entry) for container in containers.listed(spec) for entry in container.get("env") or ())
    return {source for source in found if source is not None}


def source_of(entry: Json) -> tuple[str, str, str] | None:
    source = entry.get("valueFrom") or {}
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        reference = source.get(field)
        if reference:
            return kind, str(reference.get("name", "")), str(reference.get("key", ""))
    return None


def _reference(source: Json) -> str:
    if "configMapKeyRef" in source:
        return f"configmap {source['configMapKeyRef'].get('name')}, key {source['configMapKeyRef'].get('key')}"
    if "secretKeyRef" in source:
        return f"secret {source['secretKeyRef'].get('name')}, key {source['secretKeyRef'].get('key')}"
    if "fieldRef" in source:
        return f"field path {source['fieldRef'].get('fieldPath')}"
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        behind = f" in container {reference['containerName']}" if reference.get("containerName") else ""
        return f"resource field {reference.get('resource')}{behind}"
    return "unknown reference"
