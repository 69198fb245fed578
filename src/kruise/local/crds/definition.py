"""CustomResourceDefinition objects as a kind of the API: their defaults, what a server adds, how they go."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kruise.api.core import values
from kruise.api.core.field_errors import TemplateTypeError
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.local.apicore import errors
from kruise.local.apicore.builtin import native_kind
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.metadata import parse_timestamp
from kruise.local.crds import naming
from kruise.local.crds.definition_rules import problems
from kruise.machinery.codec import decode, encode

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
RESOURCE: Final = CUSTOM_RESOURCE_DEFINITIONS.group_resource

_STRUCT: Final = "apiextensions.CustomResourceDefinition"
_PROPS: Final = "apiextensions.JSONSchemaProps"


# Reading


def read(obj: Json) -> Json:
    """A definition as a server reads and writes it, with defaults; raises `StatusError`."""
    try:
        read = _read(encode(obj))
    except TemplateTypeError as error:
        kind = "CustomResourceDefinition"
        text = f'{kind} in version "v1" cannot be handled as a {kind}: {error.error.path}: {error.error.detail}'
        raise errors.bad_request(text) from error
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], **read, "metadata": obj["metadata"]}


@functools.lru_cache(maxsize=64)
def _read(obj: bytes) -> Json:
    # Each local cluster of a process is given the same ones, and their schemas are long.
    return values.normalise(decode(obj, dict), _STRUCT, form=_FORM)


def _fill_in(struct: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Defaults, and the parts of a schema that may be several things, which the table of types cannot say."""
    if struct == _PROPS:
        return _with_open_parts(value)
    if struct == "apiextensions.CustomResourceDefinitionSpec":
        names = value.get("names")
        if isinstance(names, Mapping):
            names = dict(names)
            kind = names.get("kind") or ""
            if isinstance(kind, str) and kind:
                names["singular"] = names.get("singular") or kind.lower()
                names["listKind"] = names.get("listKind") or f"{kind}List"
            value = {**value, "names": names}
        if value.get("conversion") is None:
            value = {**value, "conversion": {"strategy": "None"}}
        return value
    if struct == "apiextensions.ServiceReference" and value.get("port") is None:
        return {**value, "port": 443}
    if struct == _STRUCT:
        stored = list(storage_versions(value))[:1]
        status = value.get("status") or {}
        if stored and isinstance(status, Mapping) and not status.get("storedVersions"):
            return {**value, "status": {**status, "storedVersions": stored}}
    return value


def _with_open_parts(value: Mapping[str, Any]) -> Mapping[str, Any]:
    changes: dict[str, Any] = {}
    for name in ("items", "additionalProperties", "additionalItems"):
        part = value.get(name)
        if isinstance(part, Mapping):
            changes[name] = values.normalise(part, _PROPS, form=_FORM)
        elif isinstance(part, list):
            changes[name] = [values.normalise(item, _PROPS, form=_FORM) for item in part]
    return {**value, **changes} if changes else value


_FORM: Final = values.Form(null_times=False, null_empty_lists=True, fill_in=_fill_in)


def storage_versions(obj: Mapping[str, Any]) -> Iterator[str]:
    spec = obj.get("spec")
    for version in spec.get("versions") or () if isinstance(spec, Mapping) else ():
        if isinstance(version, Mapping) and version.get("storage") is True and isinstance(version.get("name"), str):
            yield version["name"]


def new_status(obj: Json) -> Json:
    """A new definition is accepted by nobody yet."""
    status = {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": [*storage_versions(obj)][:1] or None,
    }
    return {**obj, "status": status}


def keep_stored_versions(new: Json, old: Json) -> Json:
    """What was ever a storage version stays noted, and a new one is added."""
    status = new.get("status") or {}
    stored = list(status.get("storedVersions") or ())
    for version in [*storage_versions(new)][:1]:
        if version not in stored:
            return {**new, "status": {**status, "storedVersions": [*stored, version]}}
    return new


# Deleting


def _is_held(obj: Json) -> bool:
    """The first delete always marks: the objects of the kind have to go first."""
    return "deletionTimestamp" not in obj["metadata"]


def marked(obj: Json) -> Json:
    """As the first delete leaves a definition."""
    about = dict(obj["metadata"])
    if CLEANUP in about.get("finalizers", ()):
        return obj
    about["finalizers"] = [*about.get("finalizers", ()), CLEANUP]
    about.pop("deletionGracePeriodSeconds", None)
    # A definition is marked by its own rule, which does not count as a change of its content.
    about["generation"] = about["generation"] - 1
    now = parse_timestamp(about["deletionTimestamp"])
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    obj = {**obj, "metadata": about}
    return naming.with_condition(obj, "Terminating", "True", "InstanceDeletionPending", text, now)


def definition_kind(base: KindDescription | None = None) -> KindDescription:
    """The kind of definitions, for a registry; of a description that is there already the rest is kept."""
    if base is None:
        base = native_kind(
            CUSTOM_RESOURCE_DEFINITIONS,
            singular="customresourcedefinition",
            has_status=True,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
        )
    return dataclasses.replace(
        base,
        allows_unconditional_update=False,
        default=read,
        validate=problems,
        prepare_create=new_status,
        prepare_update=keep_stored_versions,
        held=_is_held,
        marked=marked,
    )
