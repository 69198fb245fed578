"""What may stand in a definition, and what may change in it.

A real server moves whatever all versions have in common (schema, subresources, columns, selectable fields) to the top
of the spec before it looks at it, so that is where its complaints point to.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, Path
from kruise.api.core.formats import dns_subdomain
from kruise.local.apicore import warnings
from kruise.local.apicore.errors import Json
from kruise.local.crds import naming, schema
from kruise.local.crds.conversion_rules import conversion_problems, one_of
from kruise.local.crds.schema_parts import walk
from kruise.local.crds.structural import schema_problems, unrecognized_formats
from kruise.machinery.codec import decode, encode
from kruise.machinery.names import dns_1035_label_problems

APPROVED: Final = "api-approved.kubernetes.io"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE: Final = 8
_IMMUTABLE: Final = "field is immutable"


def problems(new: Json, old: Json | None) -> Sequence[FieldError]:
    found: list[FieldError] = []
    spec = new["spec"]
    if old is None:
        wanted = f"{spec['names'].get('plural', '')}.{spec.get('group', '')}"
        name = new["metadata"].get("name", "")
        if name and name != wanted:
            found.append(field_errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found.extend(_spec_problems(new, old))
    if old is not None:
        found.extend(_change_problems(new, old))
    found.extend(_stored_problems(new))
    found.extend(_approval_problems(new, old))
    if spec.get("preserveUnknownFields") and not (old is not None and old["spec"].get("preserveUnknownFields")):
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        found.append(field_errors.invalid("spec.preserveUnknownFields", True, words))
    if not found:
        _warn(new, old)
    return found


def _warn(new: Json, old: Json | None) -> None:
    known = {name for version in _versions(old) for name in _noticed(encode(_schema_of(version) or {}))[0]}
    for version in _versions(new):
        formats, has_rules = _noticed(encode(_schema_of(version) or {}))
        for name in formats:
            if name not in known:
                warnings.warn(f'unrecognized format "{name}"')
        if has_rules:
            warnings.warn(
                f"spec.versions[{version['name']}]: x-kubernetes-validations are kept but not evaluated by this server"
            )


@functools.lru_cache(maxsize=64)
def _noticed(source: bytes) -> tuple[Sequence[str], bool]:
    """Formats of a schema that nobody knows, and whether it has rules."""
    read = decode(source, dict)
    return unrecognized_formats(read), schema.has_rules(read)


def _versions(obj: Json | None) -> Sequence[Json]:
    return () if obj is None else obj["spec"].get("versions") or ()


def _schema_of(version: Json) -> Json | None:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _has_defaults(version: Json) -> bool:
    return any(part.get("default") is not None for part in walk(_schema_of(version) or {}))


def _common(versions: Sequence[Json], name: str) -> Any:
    """What all versions have in common; None where they differ or have nothing."""
    first = versions[0].get(name) if versions else None
    return first if first and all(version.get(name) == first for version in versions) else None


def _spec_problems(obj: Json, old: Json | None) -> Iterator[FieldError]:
    spec, versions = obj["spec"], _versions(obj)
    path = Path("spec")
    group = spec.get("group", "")
    if not group:
        yield field_errors.required(path.child("group"))
    elif dns_subdomain(group):
        yield field_errors.invalid(path.child("group"), group, ",".join(dns_subdomain(group)))
    elif "." not in group:
        yield field_errors.invalid(path.child("group"), group, "should be a domain with at least one dot")
    yield from one_of(path.child("scope"), spec.get("scope", ""), ("Cluster", "Namespaced"))
    for position, version in enumerate(versions):
        if _schema_of(version) is None:
            yield field_errors.required(path.child("versions").at(position).child("schema", "openAPIV3Schema"))
    if spec.get("preserveUnknownFields"):
        if any(_has_defaults(version) for version in versions):
            words = "must be false in order to use defaults in the schema"
            yield field_errors.invalid(path.child("preserveUnknownFields"), True, words)
        if spec["conversion"].get("strategy") != "None":
            words = "must be None if spec.preserveUnknownFields is true"
            yield field_errors.invalid(
                path.child("conversion", "strategy"), spec["conversion"].get("strategy", ""), words
            )
    yield from _version_problems(versions, path)
    first = versions[0].get("name", "") if versions else ""
    if first and dns_1035_label_problems(first):
        yield field_errors.invalid(path.child("version"), first, ",".join(dns_1035_label_problems(first)))
    names = spec["names"]
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield field_errors.required(path.child("names", name))
    yield from naming.name_problems(names, path.child("names"))
    established = old is not None and naming.is_true(old, "Established")
    yield from conversion_problems(spec["conversion"], path.child("conversion"), established)


def _version_problems(versions: Sequence[Json], path: Path) -> Iterator[FieldError]:
    place = path.child("versions")
    shared = {name: _common(versions, name) for name in ("schema", "subresources", *_LISTS)}
    seen: set[str] = set()
    unique = True
    for position, version in enumerate(versions):
        at, name = place.at(position), version.get("name", "")
        unique = unique and name not in seen
        seen.add(name)
        wrong = dns_1035_label_problems(name)
        if wrong:
            yield field_errors.invalid(at.child("name"), name, ",".join(wrong))
        yield from _deprecation_problems(version, at)
        own = {key: version.get(key) for key in shared if shared[key] is None}
        yield from _part_problems(own, at, at.child("schema"), _has_status(version), version)
    if versions:
        common = {key: value for key, value in shared.items() if value is not None}
        has_status = any(_has_status(version) for version in versions)
        yield from _part_problems(common, path, path.child("validation"), has_status, versions[0])
    shown = [{key: value for key, value in version.items() if key != "schema"} for version in versions]
    if not unique:
        yield field_errors.invalid(place, shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield field_errors.invalid(place, shown, "must have exactly one version marked as storage version")


_LISTS: Final = ("additionalPrinterColumns", "selectableFields")


def _has_status(version: Json) -> bool:
    return (version.get("subresources") or {}).get("status") is not None


def _part_problems(
    parts: Mapping[str, Any], path: Path, schema_path: Path, has_status: bool, version: Json
) -> Iterator[FieldError]:
    source = (parts.get("schema") or {}).get("openAPIV3Schema")
    if source is not None:
        yield from schema_problems(source, schema_path.child("openAPIV3Schema"), has_status=has_status)
    scale = (parts.get("subresources") or {}).get("scale")
    if scale is not None:
        yield from _scale_problems(scale, path.child("subresources"))
    for position, column in enumerate(parts.get("additionalPrinterColumns") or ()):
        yield from _column_problems(column, path.child("additionalPrinterColumns").at(position))
    if parts.get("selectableFields"):
        yield from _selectable_problems(parts["selectableFields"], _schema_of(version), path.child("selectableFields"))


def _deprecation_problems(version: Json, path: Path) -> Iterator[FieldError]:
    text = version.get("deprecationWarning")
    place = path.child("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield field_errors.invalid(place, text, "can only be set for deprecated versions")
        return
    if len(text.encode()) > 256:
        yield field_errors.invalid(place, text, "must be <= 256 characters long")
    if not text:
        yield field_errors.invalid(place, text, "must not be an empty string")
    for position, char in enumerate(text):
        if not char.isprintable():
            index = len(text[:position].encode())
            words = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            yield field_errors.invalid(place, text, words)
            break


def _scale_problems(scale: Json, path: Path) -> Iterator[FieldError]:
    for name, roots, words in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        place, given = path.child(f"scale.{name}"), scale.get(name, "")
        if not given:
            if name != "labelSelectorPath":
                yield field_errors.required(place)
        elif not given.startswith("."):
            yield field_errors.invalid(place, given, "must be a simple json path starting with .")
        elif not given.startswith(roots):
            yield field_errors.invalid(place, given, words)


def _column_problems(column: Json, path: Path) -> Iterator[FieldError]:
    if not column.get("name"):
        yield field_errors.required(path.child("name"))
    kind = column.get("type", "")
    words = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield field_errors.required(path.child("type"), words)
    elif kind not in _COLUMN_TYPES:
        yield field_errors.invalid(path.child("type"), kind, words)
    form = column.get("format", "")
    if form and form not in _COLUMN_FORMATS:
        yield field_errors.invalid(path.child("format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    given = column.get("jsonPath", "")
    if not given:
        yield field_errors.required(path.child("JSONPath"))
    elif not given.startswith("."):
        yield field_errors.invalid(path.child("JSONPath"), given, "must be a simple json path starting with .")


def _selectable_problems(fields: Sequence[Json], source: Json | None, path: Path) -> Iterator[FieldError]:
    if source is None:
        words = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield field_errors.invalid(path, "", words)
        return
    seen: set[str] = set()
    for position, field in enumerate(fields):
        place, given = path.at(position).child("jsonPath"), field.get("jsonPath", "")
        if not given:
            yield field_errors.required(place)
            continue
        found = _schema_at(source, given)
        if isinstance(found, str):
            yield field_errors.invalid(place, given, f"is an invalid path: {found}")
            continue
        if given.startswith(".metadata"):
            yield field_errors.invalid(place, given, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            words = "must point to a field of type string, boolean or integer. Enum string fields and strings with "
            yield field_errors.invalid(place, given, words + "formats are allowed.")
        if given in seen:
            yield field_errors.duplicate(place, given)
        seen.add(given)
    if len(seen) > _MAX_SELECTABLE:
        yield field_errors.too_many(path, len(seen), _MAX_SELECTABLE)


def _schema_at(source: Json, path: str) -> Json | str:
    """The schema that a simple path leads to, or why it leads nowhere."""
    if "[" in path:
        return "array notation is not allowed"
    if not path.startswith("."):
        return f"expected [ or . but got: {re.split(r'[.]', path)[0]}"
    for name in path[1:].split("."):
        properties = source.get("properties") or {}
        if name not in properties:
            return "does not refer to a valid field"
        source = properties[name]
    return source


def _change_problems(new: Json, old: Json) -> Iterator[FieldError]:
    path = Path("spec")
    after, before = new["spec"], old["spec"]
    if naming.is_true(old, "Established"):
        if after.get("scope") != before.get("scope"):
            yield field_errors.invalid(path.child("scope"), after.get("scope", ""), _IMMUTABLE)
        if after["names"].get("kind") != before["names"].get("kind"):
            yield field_errors.invalid(path.child("names", "kind"), after["names"].get("kind", ""), _IMMUTABLE)
    if after.get("group") != before.get("group"):
        yield field_errors.invalid(path.child("group"), after.get("group", ""), _IMMUTABLE)
    if after["names"].get("plural") != before["names"].get("plural"):
        yield field_errors.invalid(path.child("names", "plural"), after["names"].get("plural", ""), _IMMUTABLE)


def _stored_problems(obj: Json) -> Iterator[FieldError]:
    path = Path("status.storedVersions")
    stored = list((obj.get("status") or {}).get("storedVersions") or ())
    if not stored:
        yield field_errors.invalid(path, None, "must have at least one stored version")
        return
    names = {version.get("name") for version in _versions(obj)}
    for version in _versions(obj):
        if version.get("storage") and version.get("name") not in stored:
            yield field_errors.invalid(path, stored, f"must have the storage version {version.get('name')}")
    for position, name in enumerate(stored):
        if name not in names:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield field_errors.invalid(path.at(position), name, words)


def _approval_problems(new: Json, old: Json | None) -> Iterator[FieldError]:
    state, words = naming.approval(new)
    if not state or (old is not None and naming.approval(old)[0] == state):
        return
    place = Path("metadata.annotations").key(APPROVED)
    if state == "Missing":
        yield field_errors.required(place, words)
    elif state == "Invalid":
        yield field_errors.invalid(place, new["metadata"]["annotations"][APPROVED], words)
