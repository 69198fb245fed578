"""What a distribution copies: the Secret or ConfigMap in its spec, and whether a copy is still the same. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.core.go_json import go_escaped
from kruise.api.native.config import CONFIG_MAPS, SECRETS, ConfigMap, Secret
from kruise.api.resource import Resource
from kruise.machinery.codec import DecodeError, Raw, canonical, decode, encode

Json = Mapping[str, Any]

KINDS: Mapping[str, Resource[Any]] = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}
FIELDS = ("data", "binaryData", "immutable", "type")
"""All that a copy holds beside its metadata."""
_SHOWN = ("apiVersion", "kind", "metadata", "immutable", "type")
"""All else could be what people keep in it, under a misspelt name, too."""
_KNOWN = {
    "ConfigMap": frozenset({"apiVersion", "kind", "metadata", "data", "binaryData", "immutable"}),
    "Secret": frozenset({"apiVersion", "kind", "metadata", "data", "stringData", "immutable", "type"}),
}
HIDDEN = "(hidden)"
_OPAQUE = "Opaque"


def read(resource: Raw) -> dict[str, Any]:
    """The object in the spec; empty where it is none."""
    try:
        found = decode(resource, object)
    except DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def kind_of(template: Json) -> Resource[Any] | None:
    """None: it is neither a Secret nor a ConfigMap (RD-14)."""
    version = template.get("apiVersion", "")
    is_core = isinstance(version, str) and "/" not in version
    return KINDS.get(str(template.get("kind"))) if is_core else None


def name_of(template: Json) -> str:
    metadata = template.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""


def problem_of(template: Json) -> str:
    """What stands in the way of copies, where nobody has looked at the object before; empty: nothing."""
    if kind_of(template) is None or not name_of(template):
        return "spec.resource is no Secret or ConfigMap with a name"
    metadata = template["metadata"]
    maps = {name: template.get(name) for name in ("data", "stringData", "binaryData")}
    maps |= {f"metadata.{name}": metadata.get(name) for name in ("labels", "annotations")}
    for name, value in maps.items():
        if value and not isinstance(value, Mapping):
            return f"spec.resource.{name} is no map"
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not all(isinstance(item, str) for item in finalizers):
        return "spec.resource.metadata.finalizers is no list of names"
    return ""


def hash_of(resource: Raw) -> str:
    """RD-41: over the value as an API server written in Go writes it."""
    return hashlib.sha256(go_escaped(canonical(decode(resource, object)))).hexdigest()


def content_of(template: Json) -> dict[str, Any]:
    """What a copy holds, as the API server stores it: so a `stringData` or a missing type makes no difference for ever
    (RD-35, RD-71)."""
    found: dict[str, Any] = {}
    data = dict(template.get("data") or {})
    if template.get("kind") == "Secret":
        for key, text in (template.get("stringData") or {}).items():
            data[key] = base64.b64encode(str(text).encode()).decode()
        found["type"] = template.get("type") or _OPAQUE
    elif template.get("binaryData"):
        found["binaryData"] = template["binaryData"]
    if data:
        found["data"] = data
    if template.get("immutable"):
        found["immutable"] = True
    return found


def content_of_copy(copy: ConfigMap | Secret) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(copy, Secret):
        found["type"] = copy.type or _OPAQUE
        data = {key: base64.b64encode(value).decode() for key, value in copy.data.items()}
    else:
        data = dict(copy.data)
        if copy.binary_data:
            found["binaryData"] = dict(copy.binary_data)
    if data:
        found["data"] = data
    if copy.immutable:
        found["immutable"] = True
    return found


def unknown_fields(template: Json) -> Iterator[str]:
    """Fields that no API server keeps: most likely misspelt."""
    known = _KNOWN.get(str(template.get("kind")), frozenset(template))
    return (name for name in template if name not in known)


def concealed(resource: Raw) -> Raw:
    """The object without the values that people keep in it."""
    template = read(resource)
    hidden: dict[str, Any] = {}
    for name, value in template.items():
        if name == "metadata" and isinstance(value, Mapping) and isinstance(value.get("annotations"), Mapping):
            hidden[name] = {**value, "annotations": dict.fromkeys(value["annotations"], HIDDEN)}
        elif name in _SHOWN:
            hidden[name] = value
        else:
            hidden[name] = dict.fromkeys(value, HIDDEN) if isinstance(value, Mapping) else HIDDEN
    return Raw(encode(hidden))
