"""The rules for `metadata` that all kinds share: what users may write there, and what only the server writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, go_quote
from kruise.local.apicore import errors, names
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription
from kruise.machinery.names import dns_label_problems, label_value_problems, qualified_name_problems

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"

_ANNOTATIONS_LIMIT: Final = 256 * 1024
_IMMUTABLE: Final = "field is immutable"
_SERVER_WRITTEN: Final = frozenset(
    {"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"}
)


def timestamp(moment: datetime) -> str:
    """A time as `metav1.Time` is written: UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text)


def checked(kind: KindDescription, obj: Json, namespace: str) -> Json:
    """An object as it was sent, with a well-formed `metadata` in the request's namespace; raises `StatusError`."""
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = {}
    elif not isinstance(metadata, dict):
        raise _unreadable(kind, obj, "ObjectMeta", "metadata", metadata, "v1.ObjectMeta")
    _check_types(kind, obj, metadata)
    metadata = {name: value for name, value in metadata.items() if _says_something(value)}
    own = metadata.get("namespace", "")
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif not own:
        metadata["namespace"] = namespace
    elif own != namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if "ownerReferences" in metadata:
        metadata["ownerReferences"] = _without_repeats(metadata["ownerReferences"])
    return {**obj, "metadata": metadata}


def _says_something(value: Any) -> bool:
    """Go leaves out nulls and empty texts, maps and lists of the metadata when it writes an object."""
    return value is not None and value != "" and value != {} and value != []


def _check_types(kind: KindDescription, obj: Json, metadata: Json) -> None:
    for name, value in metadata.items():
        if value is None:
            continue
        if name in ("labels", "annotations"):
            if not isinstance(value, dict):
                raise _unreadable(kind, obj, "ObjectMeta", f"metadata.{name}", value, "map[string]string")
            for item in value.values():
                if not isinstance(item, str):
                    raise _unreadable(kind, obj, "ObjectMeta", f"metadata.{name}", item, "string")
        elif name == "finalizers":
            if not isinstance(value, list):
                raise _unreadable(kind, obj, "ObjectMeta", "metadata.finalizers", value, "[]string")
            for item in value:
                if not isinstance(item, str):
                    raise _unreadable(kind, obj, "ObjectMeta", "metadata.finalizers", item, "string")
        elif name == "ownerReferences":
            if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
                raise _unreadable(kind, obj, "ObjectMeta", "metadata.ownerReferences", value, "[]v1.OwnerReference")
        elif name in ("name", "namespace", "generateName", "uid", "resourceVersion") and not isinstance(value, str):
            raise _unreadable(kind, obj, "ObjectMeta", f"metadata.{name}", value, "string")


_GO_NAMES: Mapping[type, str] = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}


def _unreadable(
    kind: KindDescription, obj: Json, struct: str, field: str, value: Any, wanted: str
) -> errors.StatusError:
    version = str(obj.get("apiVersion", "")).rpartition("/")[2]
    found = _GO_NAMES.get(type(value), "object")
    text = f"json: cannot unmarshal {found} into Go struct field {struct}.{field} of type {wanted}"
    return errors.bad_request(f"{kind.kind} in version {go_quote(version)} cannot be handled as a {kind.kind}: {text}")


def _without_repeats(references: list[Json]) -> list[Json]:
    unique: list[Json] = []
    for reference in references:
        if reference not in unique:
            unique.append(reference)
    return unique


def for_create(obj: Json) -> Json:
    """Without what only the server writes."""
    metadata = obj["metadata"]
    if _SERVER_WRITTEN.isdisjoint(metadata):
        return obj
    kept = {name: value for name, value in metadata.items() if name not in _SERVER_WRITTEN}
    return {**obj, "metadata": kept}


def for_update(new: Json, old: Json) -> Json:
    """With what an update cannot change put back."""
    before = old["metadata"]
    metadata = {name: value for name, value in new["metadata"].items() if name not in ("selfLink", "managedFields")}
    for name in ("generation", "creationTimestamp"):
        if name in before:
            metadata[name] = before[name]
        else:
            metadata.pop(name, None)
    metadata.setdefault("uid", before["uid"])
    if "deletionTimestamp" in before:
        metadata["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in before:
        metadata.setdefault("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"])
    if "generateName" in before:
        metadata.setdefault("generateName", before["generateName"])
    return {**new, "metadata": metadata}


def problems_on_create(kind: KindDescription, obj: Json) -> list[FieldError]:
    return _problems(obj, kind, kind.name_check)


def problems_on_update(kind: KindDescription, new: Json, old: Json) -> list[FieldError]:
    after, before = new["metadata"], old["metadata"]
    problems = _change_problems(after, before)
    if any(after.get(name) != before.get(name) for name in ("labels", "annotations", "ownerReferences", "finalizers")):
        problems.extend(_problems(new, kind, names.path_segment))
    return problems


def _problems(obj: Json, kind: KindDescription, check: names.NameCheck) -> list[FieldError]:
    metadata = obj["metadata"]
    problems: list[FieldError] = []
    prefix = metadata.get("generateName")
    if prefix:
        problems.extend(field_errors.invalid("metadata.generateName", prefix, text) for text in check(prefix, True))
    name = metadata.get("name")
    if not name:
        problems.append(field_errors.required("metadata.name", "name or generateName is required"))
    else:
        problems.extend(field_errors.invalid("metadata.name", name, text) for text in check(name, False))
    if kind.namespaced:
        namespace = metadata.get("namespace")
        if not namespace:
            problems.append(field_errors.required("metadata.namespace"))
        else:
            problems.extend(
                field_errors.invalid("metadata.namespace", namespace, text) for text in dns_label_problems(namespace)
            )
    problems.extend(_label_problems(metadata))
    finalizers = metadata.get("finalizers", ())
    for finalizer in finalizers:
        problems.extend(
            field_errors.invalid("metadata.finalizers", finalizer, text) for text in qualified_name_problems(finalizer)
        )
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        text = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        problems.append(field_errors.invalid("metadata.finalizers", list(finalizers), text))
    if not kind.custom:
        for position, finalizer in enumerate(finalizers):
            if "/" not in finalizer and finalizer not in ("kubernetes", ORPHAN, FOREGROUND):
                text = "name is neither a standard finalizer name nor is it fully qualified"
                problems.append(field_errors.invalid(f"metadata.finalizers[{position}]", finalizer, text))
    return problems


def _label_problems(metadata: Json) -> list[FieldError]:
    problems: list[FieldError] = []
    for name, value in metadata.get("labels", {}).items():
        problems.extend(field_errors.invalid("metadata.labels", name, text) for text in qualified_name_problems(name))
        problems.extend(field_errors.invalid("metadata.labels", value, text) for text in label_value_problems(value))
    annotations = metadata.get("annotations", {})
    size = 0
    for name, value in annotations.items():
        size += len(name) + len(value)
        problems.extend(
            field_errors.invalid("metadata.annotations", name, text) for text in qualified_name_problems(name.lower())
        )
    if size > _ANNOTATIONS_LIMIT // 4:
        size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
        if size > _ANNOTATIONS_LIMIT:
            problems.append(field_errors.too_long("metadata.annotations", _ANNOTATIONS_LIMIT))
    problems.extend(_owner_problems(metadata.get("ownerReferences", ())))
    return problems


def _owner_problems(references: Any) -> list[FieldError]:
    problems: list[FieldError] = []
    controller = ""
    path = "metadata.ownerReferences"
    for reference in references:
        if not reference.get("apiVersion"):
            problems.append(field_errors.invalid(f"{path}.apiVersion", "", "version must not be empty"))
        for name in ("kind", "name", "uid"):
            if not reference.get(name):
                problems.append(field_errors.invalid(f"{path}.{name}", "", "must not be empty"))
        if reference.get("apiVersion") == "v1" and reference.get("kind") == "Event":
            problems.append(field_errors.invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.get("controller"):
            current = f"{reference.get('kind', '')}/{reference.get('name', '')}"
            if controller:
                text = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {current}"
                )
                problems.append(field_errors.invalid(path, list(references), text))
            else:
                controller = current
    return problems


def _change_problems(after: Json, before: Json) -> list[FieldError]:
    problems: list[FieldError] = []
    if "deletionTimestamp" in before:
        extra = sorted(set(after.get("finalizers", ())) - set(before.get("finalizers", ())))
        if extra:
            shown = "[]string{" + ", ".join(go_quote(item) for item in extra) + "}"
            text = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
            problems.append(field_errors.forbidden("metadata.finalizers", text))
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if after.get(name) != before.get(name):
            problems.append(field_errors.invalid(f"metadata.{name}", after.get(name, ""), _IMMUTABLE))
    return problems
