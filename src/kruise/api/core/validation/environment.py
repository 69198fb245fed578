"""Environment variables, where their values come from, and references to fields and resources."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.core import formats, quantities
from kruise.api.core.field_errors import Path, invalid, not_found, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct

_ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN_FIELDS = frozenset(
    {*_ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"},
)
_RESOURCE_FIELDS = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_UNITS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def variables(path: Path, given: Sequence[Struct]) -> Errors:
    for position, variable in enumerate(given):
        where = path.at(position)
        yield from common.required_and(where.child("name"), variable["name"], formats.env_name)
        source = variable.get("valueFrom")
        if source is not None:
            yield from _value_from(where.child("valueFrom"), source, has_value=bool(variable.get("value")))


def _value_from(path: Path, source: Struct, *, has_value: bool) -> Errors:
    used = [name for name in _SOURCES if source.get(name) is not None]
    if "fieldRef" in used:
        yield from field_reference(path.child("fieldRef"), source["fieldRef"], _ENV_FIELDS)
    if "resourceFieldRef" in used:
        yield from resource_reference(path.child("resourceFieldRef"), source["resourceFieldRef"], in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in used:
            yield from _key_reference(path.child(name), source[name])
    if "fileKeyRef" in used:
        yield from _file_reference(path.child("fileKeyRef"), source["fileKeyRef"])
    if not used:
        words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield invalid(path, "", words)
    elif has_value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(used) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def field_reference(path: Path, reference: Struct, allowed: Sequence[str]) -> Errors:
    version, field = reference.get("apiVersion", ""), reference["fieldPath"]
    if not version:
        yield required(path.child("apiVersion"))
        return
    if not field:
        yield required(path.child("fieldPath"))
        return
    name, subscript = _split_subscript(field)
    problem = _unknown_field(version, field, name, subscript)
    if problem:
        yield invalid(path.child("fieldPath"), field, f"error converting fieldPath: {problem}")
    elif subscript is not None:
        key = subscript.lower() if name == "metadata.annotations" else subscript
        yield from common.complaints(path, key, formats.qualified_name(key))
    else:
        name = "spec.nodeName" if name == "spec.host" else name
        if name not in allowed:
            yield not_supported(path.child("fieldPath"), name, allowed)


def _split_subscript(field: str) -> tuple[str, str | None]:
    if field.endswith("']") and "['" in field[:-2]:
        name, _, subscript = field[:-2].partition("['")
        if name:
            return name, subscript
    return field, None


def _unknown_field(version: str, field: str, name: str, subscript: str | None) -> str:
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        if name in ("metadata.annotations", "metadata.labels"):
            return ""
        return f"field label does not support subscript: {field}"
    return "" if name in _KNOWN_FIELDS or name == "spec.host" else f"field label not supported: {field}"


def resource_reference(path: Path, reference: Struct, *, in_volume: bool) -> Errors:
    resource = reference["resource"]
    if in_volume and not reference.get("containerName"):
        yield required(path.child("containerName"))
    elif not resource:
        yield required(path.child("resource"))
    elif resource not in _RESOURCE_FIELDS and not resource.startswith(_HUGE_PAGES):
        yield not_supported(path.child("resource"), resource, _RESOURCE_FIELDS)
    yield from _divisor(path.child("divisor"), resource, reference["divisor"])


def _divisor(path: Path, resource: str, divisor: str) -> Errors:
    if quantities.sign(divisor) == 0:
        return
    units = ", ".join(_UNITS)
    if resource in ("limits.cpu", "requests.cpu"):
        if divisor not in ("1m", "1"):
            yield invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")
        return
    what = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(resource.partition(".")[2], "")
    if resource.startswith(_HUGE_PAGES):
        what = "hugepages"
    if what and divisor not in _UNITS:
        yield invalid(path, resource, f"only divisor's values {units} are supported with the {what} resource")


def _key_reference(path: Path, reference: Struct) -> Errors:
    name, key = reference.get("name", ""), reference["key"]
    yield from common.complaints(path.child("name"), name, formats.dns_subdomain(name))
    yield from common.required_and(path.child("key"), key, formats.config_key)


def _file_reference(path: Path, reference: Struct) -> Errors:
    yield from common.required_and(path.child("key"), reference["key"], formats.env_name)
    yield from common.required_and(path.child("volumeName"), reference["volumeName"], formats.dns_label)
    yield from common.required_and(path.child("path"), reference["path"], formats.no_backsteps)


def sources(path: Path, given: Sequence[Struct]) -> Errors:
    """`envFrom`. Complaints about the kind of source name the list, as the API server has it."""
    for position, source in enumerate(given):
        where = path.at(position)
        prefix = source.get("prefix", "")
        if prefix:
            yield from common.complaints(where.child("prefix"), prefix, formats.env_name(prefix))
        used = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in used:
            wanted = source[name].get("name", "")
            at = where.child(name, "name")
            yield from common.required_and(at, wanted, lambda text: formats.dns_subdomain(formats.name_prefix(text)))
        if not used:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(used) > 1:
            yield invalid(path, "", "may not have more than one field specified at a time")


def file_reference_volumes(path: Path, spec: Struct) -> Errors:
    """Variables read from files need an emptyDir that the files are written to."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes") or ()}
    for where, container in common.containers_of(spec, path):
        for position, variable in enumerate(container.get("env") or ()):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference["volumeName"]
            at = where.child("env").at(position).child("valueFrom", "fileKeyRef", "volumeName")
            if name not in volumes:
                yield not_found(at, name)
            elif volumes[name].get("emptyDir") is None:
                yield invalid(at, name, "referenced volume must be of type emptyDir")
