"""What the API server refuses about PersistentVolumeClaims, PersistentVolumes and StorageClasses."""

from __future__ import annotations

from typing import Final

from kruise.api.core import formats, quantities, schema
from kruise.api.core.field_errors import forbidden, invalid, not_supported, required
from kruise.api.core.validation import common, validate_claim_spec
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.apicore.errors import Json
from kruise.local.kinds import checks
from kruise.local.kinds.checks import SPEC

_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_CLASS_RECLAIM: Final = ("Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_NO_SOURCES: Final = frozenset(
    {
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    }
)
_IMMUTABLE_CLAIM: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def requested_storage(claim: Struct) -> str:
    return str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage", "0"))


def new_claim(obj: Json) -> Json:
    return {**obj, "status": {"phase": "Pending"}}


def claim(new: Struct, old: Struct | None) -> Errors:
    yield from validate_claim_spec(new["spec"])
    if old is None:
        return
    spec, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName"):
        before.pop("volumeName", None)
        spec.pop("volumeName", None)
    after_class, class_before = _beta_class(new), _beta_class(old)
    if after_class != class_before:
        where = checks.METADATA.child("annotations").key(_BETA_CLASS)
        yield invalid(where, after_class, checks.IMMUTABLE)
    if before.get("storageClassName") is None and not class_before:
        spec.pop("storageClassName", None)
    bound = (new.get("status") or {}).get("phase") == "Bound"
    if bound:
        spec["resources"] = _same_size(spec.get("resources") or {}, requested_storage(old))
        for holder in (spec, before):
            holder.pop("volumeAttributesClassName", None)
    if spec != before:
        yield forbidden(SPEC, _IMMUTABLE_CLAIM)
    if quantities.compare(requested_storage(new), requested_storage(old)) < 0:
        size = ((old.get("status") or {}).get("capacity") or {}).get("storage", "0")
        if quantities.compare(requested_storage(new), size) <= 0:
            where = SPEC.child("resources", "requests", "storage")
            yield forbidden(where, "field can not be less than status.capacity")
    yield from checks.immutable("volumeMode", new["spec"].get("volumeMode"), old["spec"].get("volumeMode"))


def _same_size(resources: Struct, size: str) -> Struct:
    return {**resources, "requests": {**(resources.get("requests") or {}), "storage": size}}


def _beta_class(obj: Struct) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(_BETA_CLASS, ""))


def new_volume(obj: Json) -> Json:
    return {**obj, "status": {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"]["creationTimestamp"]}}


def volume(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required(SPEC.child("accessModes"))
    for mode in modes:
        yield from checks.one_of(SPEC.child("accessModes"), mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield forbidden(SPEC.child("accessModes"), "may not use ReadWriteOncePod with other access modes")
    yield from _capacity(spec)
    yield from checks.one_of(
        SPEC.child("persistentVolumeReclaimPolicy"), spec.get("persistentVolumeReclaimPolicy"), _RECLAIM
    )
    sources = _sources(spec)
    if not sources:
        yield required(SPEC, "must specify a volume type")
    for name in list(sources)[1:]:
        yield forbidden(SPEC.child(name), "may not specify more than 1 volume type")
    yield from _source(spec)
    if spec.get("storageClassName"):
        found = formats.dns_subdomain(spec["storageClassName"])
        yield from common.complaints(SPEC.child("storageClassName"), spec["storageClassName"], found)
    yield from checks.one_of(SPEC.child("volumeMode"), spec.get("volumeMode"), ("Block", "Filesystem"))
    if old is not None:
        if sources != _sources(old["spec"]):
            text = "spec.persistentvolumesource is immutable after creation"
            yield forbidden(SPEC.child("persistentvolumesource"), text)
        yield from checks.immutable("volumeMode", spec.get("volumeMode"), old["spec"].get("volumeMode"))
        if old["spec"].get("nodeAffinity") is not None:
            yield from checks.immutable("nodeAffinity", spec.get("nodeAffinity"), old["spec"]["nodeAffinity"])


def _sources(spec: Struct) -> Struct:
    known = (field.name for field in schema.struct_type("core.PersistentVolumeSpec").fields)
    return {name: spec[name] for name in known if name not in _NO_SOURCES and spec.get(name) is not None}


def _source(spec: Struct) -> Errors:
    """The sources that a local cluster can serve; those of other systems are for their drivers to refuse."""
    host, local, nfs, csi = (spec.get(name) for name in ("hostPath", "local", "nfs", "csi"))
    if host is not None:
        if not host["path"]:
            yield required(SPEC.child("hostPath", "path"))
        else:
            where = SPEC.child("hostPath", "path")
            yield from common.complaints(where, host["path"], formats.no_backsteps(host["path"]))
    if local is not None:
        if not local["path"]:
            yield required(SPEC.child("local", "path"))
        if spec.get("nodeAffinity") is None:
            yield required(SPEC.child("nodeAffinity"), "Local volume requires node affinity")
    if nfs is not None:
        for name in ("server", "path"):
            if not nfs[name]:
                yield required(SPEC.child("nfs", name))
    if csi is not None:
        for name in ("driver", "volumeHandle"):
            if not csi[name]:
                yield required(SPEC.child("csi", name))


def _capacity(spec: Struct) -> Errors:
    path, capacity = SPEC.child("capacity"), spec.get("capacity") or {}
    if not capacity:
        yield required(path)
    if "storage" not in capacity or len(capacity) > 1:
        yield not_supported(path, capacity or None, ("storage",))
    for name, value in capacity.items():
        if quantities.sign(value) <= 0:
            yield invalid(path.key(name), value, common.NOT_POSITIVE)


def storage_class(new: Struct, old: Struct | None) -> Errors:
    if old is not None:
        for name in ("parameters", "provisioner", "reclaimPolicy"):
            if new.get(name) != old.get(name):
                yield forbidden(name, f"updates to {name} are forbidden.")
        yield from checks.immutable("volumeBindingMode", new.get("volumeBindingMode"), old.get("volumeBindingMode"))
        return
    provisioner = new["provisioner"]
    if not provisioner:
        yield required("provisioner", provisioner)
    else:
        lowered = provisioner.lower()
        yield from common.complaints("provisioner", lowered, formats.qualified_name(lowered))
    for key in new.get("parameters") or {}:
        if not key:
            yield invalid("parameters", key, "field can not be empty.")
    yield from checks.one_of("reclaimPolicy", new.get("reclaimPolicy"), _CLASS_RECLAIM)
    yield from checks.one_of("volumeBindingMode", new.get("volumeBindingMode"), _BINDING)
