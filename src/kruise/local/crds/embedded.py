"""Objects inside of objects (`x-kubernetes-embedded-resource`): their metadata is read as the server's own is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.core import field_errors, schema, values
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError
from kruise.local.apicore import metadata as object_metadata
from kruise.local.apicore import names
from kruise.local.apicore.kinds import KindDescription
from kruise.local.crds.nodes import Node
from kruise.machinery.names import dns_1035_label_problems

_OBJECT_META = "meta.ObjectMeta"
_TOP = Path()


class MalformedError(ValueError):
    """The metadata of an embedded object cannot be read."""

    def __init__(self, field: str, value: Any, detail: str) -> None:
        super().__init__(detail)
        self.field = field
        self.value = value
        self.detail = detail


def coerced(value: dict[str, Any]) -> dict[str, Any]:
    """The object with its metadata as a server writes it; raises `MalformedError`."""
    for name in ("apiVersion", "kind"):
        if name in value and not isinstance(value[name], str):
            raise MalformedError(name, value[name], "must be a string")
    if "metadata" not in value:
        return value
    about = value["metadata"]
    written = read_metadata(about)
    return value if written == about else {**value, "metadata": written}


def read_metadata(about: Any) -> dict[str, Any]:
    """Metadata as a typed server reads and writes it: without what it does not know; raises `MalformedError`."""
    try:
        return values.normalise(about, _OBJECT_META, form=values.SERVER_FORM)
    except TemplateTypeError as error:
        raise MalformedError("metadata", about, _unmarshal_text(error.error)) from error


_GO_NAMES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_GO_TYPES = {"labels": "map[string]string", "annotations": "map[string]string", "finalizers": "[]string"}


def _unmarshal_text(error: FieldError) -> str:
    found = _GO_NAMES.get(type(error.value), "object")
    if not error.path:
        return f"json: cannot unmarshal {found} into Go value of type v1.ObjectMeta"
    name = error.path.partition("[")[0].partition(".")[0]
    wire = schema.struct_type(_OBJECT_META).by_name[name].type
    wanted = _GO_TYPES.get(name, wire) if error.path == name else "string"
    return f"json: cannot unmarshal {found} into Go struct field ObjectMeta.{name} of type {wanted}"


def locate(node: Node, value: Any, path: Path = _TOP) -> FieldError | None:
    """Where in an object the metadata cannot be read."""
    if isinstance(value, dict):
        if node.embedded:
            try:
                coerced(value)
            except MalformedError as error:
                return field_errors.invalid(path.child(error.field), error.value, error.detail)
        for name, item in value.items():
            found = None
            if name in node.properties:
                found = locate(node.properties[name], item, path.child(name))
            elif isinstance(node.additional, Node):
                found = locate(node.additional, item, path.key(name))
            if found is not None:
                return found
    elif isinstance(value, list) and node.items is not None:
        for position, item in enumerate(value):
            found = locate(node.items, item, path.at(position))
            if found is not None:
                return found
    return None


_NAMESPACED = KindDescription(plural="embedded", kind="Embedded", custom=True, name_check=names.path_segment)
_CLUSTER_SCOPED = KindDescription(
    plural="embedded", kind="Embedded", custom=True, namespaced=False, name_check=names.path_segment
)


def problems(node: Node, value: Any, path: Path = _TOP) -> list[FieldError]:
    """What is wrong with the embedded objects anywhere in a value."""
    found: list[FieldError] = []
    if isinstance(value, dict):
        if node.embedded:
            found.extend(object_problems(value, path))
        for name, item in value.items():
            if name in node.properties:
                found.extend(problems(node.properties[name], item, path.child(name)))
            elif isinstance(node.additional, Node):
                found.extend(problems(node.additional, item, path.key(name)))
    elif isinstance(value, list) and node.items is not None:
        for position, item in enumerate(value):
            found.extend(problems(node.items, item, path.at(position)))
    return found


def object_problems(value: Mapping[str, Any], path: Path = _TOP) -> list[FieldError]:
    """What is wrong with the type and the metadata of one embedded object."""
    found = [field_errors.required(path.child(name)) for name in ("apiVersion", "kind") if name not in value]
    for name in ("apiVersion", "kind"):
        text = value.get(name)
        if name not in value:
            continue
        if not isinstance(text, str):
            found.append(field_errors.invalid(path.child(name), text, "must be a string"))
        elif not text:
            found.append(field_errors.invalid(path.child(name), text, "must not be empty"))
        elif name == "apiVersion" and text.count("/") > 1:
            found.append(field_errors.invalid(path.child(name), text, f"unexpected GroupVersion string: {text}"))
        elif name == "kind":
            wrong = dns_1035_label_problems(text.lower())
            if wrong:
                words = "may have mixed case, but should otherwise match: " + ",".join(wrong)
                found.append(field_errors.invalid(path.child(name), text, words))
    if "metadata" in value:
        found.extend(_metadata_problems(value["metadata"], path))
    return found


def _metadata_problems(about: Any, path: Path) -> list[FieldError]:
    try:
        about = read_metadata(about)
    except MalformedError as error:
        return [field_errors.invalid(path.child("metadata"), error.value, error.detail)]
    kind = _NAMESPACED if about.get("namespace") else _CLUSTER_SCOPED
    complete = {"metadata": {**about, "name": about.get("name") or "fakename"}}
    return [
        FieldError(item.type, path.child(item.path), item.value, item.detail)
        for item in object_metadata.problems_on_create(kind, complete)
    ]
