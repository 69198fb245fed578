"""Persistent volume claims: the spec of one, and the template of one inside a volume."""

from __future__ import annotations

from kruise.api.core import formats, quantities
from kruise.api.core.field_errors import Path, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common, resources
from kruise.api.core.validation.common import Errors, Struct

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_TEMPLATE_META = ("labels", "annotations", "creationTimestamp")


def claim_template(path: Path, template: Struct) -> Errors:
    meta = template.get("metadata") or {}
    where = path.child("metadata")
    yield from common.annotation_set(where.child("annotations"), meta.get("annotations"))
    yield from common.label_set(where.child("labels"), meta.get("labels"))
    for name in meta:
        if name not in _TEMPLATE_META:
            yield forbidden(where.child(name), "cannot be set")
    yield from claim_spec(path.child("spec"), template["spec"])


def claim_spec(path: Path, spec: Struct) -> Errors:
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(path.child("accessModes"), "at least 1 access mode is required")
    yield from common.label_selector(path.child("selector"), spec.get("selector"))
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield not_supported(path.child("accessModes"), mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in _ACCESS_MODES[:3] for mode in modes):
        yield forbidden(path.child("accessModes"), "may not use ReadWriteOncePod with other access modes")
    yield from _storage(path.child("resources").key("storage"), spec)
    for field in ("storageClassName", "volumeAttributesClassName"):
        name = spec.get(field)
        if name:
            yield from common.complaints(path.child(field), name, formats.dns_subdomain(name))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        yield not_supported(path.child("volumeMode"), mode, ("Block", "Filesystem"))
    yield from _data_sources(path, spec)


def _storage(path: Path, spec: Struct) -> Errors:
    amount = (spec["resources"].get("requests") or {}).get("storage")
    if amount is None:
        yield required(path)
    elif quantities.sign(amount) <= 0:
        yield invalid(path, amount, common.NOT_POSITIVE)
    else:
        yield from resources.amount_of(path, "storage", amount)


def _data_sources(path: Path, spec: Struct) -> Errors:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None:
        yield from _data_source(path.child("dataSource"), source)
    if reference is not None:
        yield from _data_source(path.child("dataSourceRef"), reference)
        namespace = reference.get("namespace")
        if namespace:
            at = path.child("dataSourceRef", "namespace")
            yield from common.complaints(at, namespace, formats.dns_label(namespace))
    if source is None or reference is None:
        return
    if reference.get("namespace"):
        yield invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        yield invalid(path, {}, "must match dataSourceRef")


def _data_source(path: Path, source: Struct) -> Errors:
    for name in ("name", "kind"):
        if not source[name]:
            yield required(path.child(name))
    group = source.get("apiGroup")
    if not group and source["kind"] != "PersistentVolumeClaim":
        complaint = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        yield invalid(path, source["kind"], complaint)
    if group:
        yield from common.complaints(path.child("apiGroup"), group, formats.dns_subdomain(group))
