"""Volumes on storage of particular makers. Most of their drivers are gone, but their fields are still checked."""

from __future__ import annotations

import re

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct

_IQN = re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([A-Za-z0-9\-.]+)(:[^,;*&$|\s]+)\Z")
_EUI = re.compile(r"eui.[A-Za-z0-9]{16}")
_NAA = re.compile(r"naa.[A-Za-z0-9]{32}")
_CACHING_MODES = ("None", "ReadOnly", "ReadWrite")
_DISK_KINDS = ("Dedicated", "Managed", "Shared")
_MANAGED_URI = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_URI = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_PAIRS = "must be a host:port pair or multiple pairs separated by commas"


def _required(path: Path, source: Struct, *fields: str) -> Errors:
    for field in fields:
        if not source.get(field):
            yield required(path.child(field))


def _secret(path: Path, source: Struct) -> Errors:
    secret = source.get("secretRef")
    if secret is not None and not secret.get("name"):
        yield required(path.child("secretRef", "name"))


def gce_disk(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "pdName")
    yield from _partition(path, source)


def aws_disk(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "volumeID")
    yield from _partition(path, source)


def _partition(path: Path, source: Struct) -> Errors:
    if not 0 <= source.get("partition", 0) <= 255:
        yield invalid(path.child("partition"), source["partition"], formats.range_words(1, 255))


def iscsi(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "targetPortal", "iqn")
    if source["iqn"]:
        yield from common.complaints(path.child("iqn"), source["iqn"], _initiator(source["iqn"]))
    if not 0 <= source["lun"] <= 255:
        yield invalid(path.child("lun"), source["lun"], formats.range_words(0, 255))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield required(path.child("secretRef"))
    name = source.get("initiatorName")
    if name is not None:
        yield from common.complaints(path.child("initiatorname"), name, _initiator(name))


def _initiator(name: str) -> list[str]:
    if not name.startswith(("iqn", "eui", "naa")):
        return ["must be valid format starting with iqn, eui, or naa"]
    if name.startswith("iqn"):
        sound = _IQN.search(name) is not None
    else:
        sound = (_EUI if name.startswith("eui") else _NAA).fullmatch(name) is not None
    return [] if sound else ["must be valid format"]


def glusterfs(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "endpoints", "path")


def flocker(path: Path, source: Struct) -> Errors:
    name, identity = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not identity:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and identity:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid(path.child("datasetName"), name, "must not contain '/'")


def rbd(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "monitors", "image")


def cinder(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "volumeID")
    yield from _secret(path, source)


def cephfs(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "monitors")


def quobyte(path: Path, source: Struct) -> Errors:
    registry = source["registry"]
    if not registry:
        yield required(path.child("registry"), _PAIRS)
    elif formats.byte_length(source.get("tenant", "")) >= 65:
        yield required(path.child("tenant"), "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            host, colon, port = pair.rpartition(":")
            if not colon or (":" in host and not host.startswith("[")) or "[" in port:
                yield invalid(path.child("registry"), registry, _PAIRS)
    yield from _required(path, source, "volume")


def fibre_channel(path: Path, source: Struct) -> Errors:
    names, identities, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not names and not identities:
        yield required(path.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
    if names and identities:
        yield invalid(path.child("targetWWNs"), names, "targetWWNs and wwids can not be specified simultaneously")
    if names and lun is None:
        yield required(path.child("lun"), "lun is required if targetWWNs is specified")
    elif names and lun is not None and not 0 <= lun <= 255:
        yield invalid(path.child("lun"), lun, formats.range_words(0, 255))


def flex(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "driver")
    for key in source.get("options") or ():
        namespace = f".{key.partition('/')[0].lower()}"
        if namespace.endswith((".kubernetes.io", ".k8s.io")):
            words = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid(path.child("options").key(key), key, words)


def azure_file(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "secretName", "shareName")


def vsphere(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "volumePath")


def photon(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "pdID")


def portworx(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "volumeID")


def azure_disk(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "diskName", "diskURI")
    mode, kind, uri = source.get("cachingMode"), source.get("kind"), source["diskURI"]
    if mode is not None and mode not in _CACHING_MODES:
        yield not_supported(path.child("cachingMode"), mode, _CACHING_MODES)
    if kind is not None and kind not in _DISK_KINDS:
        yield not_supported(path.child("kind"), kind, _DISK_KINDS)
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield not_supported(path.child("diskURI"), uri, (_MANAGED_URI,))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        yield not_supported(path.child("diskURI"), uri, (_BLOB_URI,))


def storage_os(path: Path, source: Struct) -> Errors:
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    yield from common.required_and(path.child("volumeName"), name, formats.dns_label)
    if namespace:
        yield from common.complaints(path.child("volumeNamespace"), namespace, formats.dns_label(namespace))
    yield from _secret(path, source)


def scale_io(path: Path, source: Struct) -> Errors:
    yield from _required(path, source, "gateway", "system", "volumeName")
