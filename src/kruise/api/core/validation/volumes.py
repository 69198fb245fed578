"""The volumes of a pod: names, exactly one source each, and the common sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kruise.api.core import formats, quantities
from kruise.api.core.field_errors import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from kruise.api.core.validation import claims, common, projected
from kruise.api.core.validation import remote_volumes as remote
from kruise.api.core.validation.common import Errors, Rules, Struct

_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def volumes(
    path: Path, given: Sequence[Struct], rules: Rules, pod_name: str = ""
) -> tuple[dict[str, Struct], tuple[FieldError, ...]]:
    """The sound volumes by name, and what is wrong with the others."""
    sound: dict[str, Struct] = {}
    errors: list[FieldError] = []
    made = {f"{pod_name}-{volume['name']}" for volume in given if pod_name and volume.get("ephemeral") is not None}
    for position, volume in enumerate(given):
        where, name = path.at(position), volume["name"]
        found = [*_source(where, volume, rules, pod_name)]
        found.extend(common.required_and(where.child("name"), name, formats.dns_label))
        if name in sound:
            found.append(duplicate(where.child("name"), name))
        if found:
            errors.extend(found)
        else:
            sound[name] = volume
        claim = volume.get("persistentVolumeClaim") or {}
        if claim.get("claimName") in made:
            words = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(where.child("persistentVolumeClaim", "claimName"), claim["claimName"], words))
    return sound, tuple(errors)


def _source(path: Path, volume: Struct, rules: Rules, pod_name: str) -> Errors:
    used = [name for name in _ORDER if volume.get(name) is not None]
    if not used:
        yield required(path, "must specify a volume type")
        return
    first, *others = used
    if first == "image":
        yield from _image(path.child("image"), volume["image"], rules)
    else:
        yield from _SOURCES[first](path.child(_OWN_NAMES.get(first, first)), volume[first])
    if first == "ephemeral" and pod_name and volume["name"]:
        claim = f"{pod_name}-{volume['name']}"
        found = (f'PVC name "{claim}": {complaint}' for complaint in formats.dns_subdomain(claim))
        yield from common.complaints(path.child("name"), volume["name"], found)
    for name in others:
        yield forbidden(path.child(_SECOND_NAMES.get(name, name)), "may not specify more than 1 volume type")
    iscsi = volume.get("iscsi") or {}
    if iscsi.get("initiatorName") is not None and len(f"{volume['name']}:{iscsi['targetPortal']}") > 64:
        words = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
            "if iscsi.initiatorName is specified."
        )
        yield invalid(path.child("name"), volume["name"], words)


def _empty_dir(path: Path, source: Struct) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and quantities.sign(limit) < 0:
        yield forbidden(path.child("sizeLimit"), "SizeLimit field must be a valid resource quantity")


def _host_path(path: Path, source: Struct) -> Errors:
    if not source["path"]:
        yield required(path.child("path"))
        return
    yield from common.complaints(path.child("path"), source["path"], formats.no_backsteps(source["path"]))
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield not_supported(path.child("type"), kind, _HOST_PATH_TYPES)


def _git_repo(path: Path, source: Struct) -> Errors:
    if not source["repository"]:
        yield required(path.child("repository"))
    directory = source.get("directory", "")
    yield from common.complaints(path.child("directory"), directory, formats.descending_path(directory))


def _secret(path: Path, source: Struct) -> Errors:
    if not source.get("secretName"):
        yield required(path.child("secretName"))
    yield from _files(path, source)


def _config_map(path: Path, source: Struct) -> Errors:
    if not source.get("name"):
        yield required(path.child("name"))
    yield from _files(path, source)


def _files(path: Path, source: Struct) -> Errors:
    yield from common.file_mode(path.child("defaultMode"), source.get("defaultMode"))
    yield from projected.key_paths(path.child("items"), source.get("items") or ())


def _claim(path: Path, source: Struct) -> Errors:
    if not source["claimName"]:
        yield required(path.child("claimName"))


def _downward(path: Path, source: Struct) -> Errors:
    yield from common.file_mode(path.child("defaultMode"), source.get("defaultMode"))
    for item in source.get("items") or ():
        yield from projected.downward_file(path, item)


def _projected(path: Path, source: Struct) -> Errors:
    yield from common.file_mode(path.child("defaultMode"), source.get("defaultMode"))
    yield from projected.sources(path, source.get("sources") or ())


def _nfs(path: Path, source: Struct) -> Errors:
    for field in ("server", "path"):
        if not source[field]:
            yield required(path.child(field))
    if not source["path"].startswith("/"):
        yield invalid(path.child("path"), source["path"], "must be an absolute path")


def _csi(path: Path, source: Struct) -> Errors:
    driver = source["driver"]
    if not driver:
        yield required(path.child("driver"))
    if formats.byte_length(driver) > 63:
        yield too_long(path.child("driver"), 63)
    yield from common.complaints(path.child("driver"), driver, formats.dns_subdomain(driver.lower()))
    secret = source.get("nodePublishSecretRef")
    if secret is not None:
        name = secret.get("name", "")
        if not name:
            yield required(path.child("nodePublishSecretRef", "name"))
        else:
            yield from common.complaints(path.child("name"), name, formats.dns_subdomain(name))


def _ephemeral(path: Path, source: Struct) -> Errors:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield required(path.child("volumeClaimTemplate"))
    else:
        yield from claims.claim_template(path.child("volumeClaimTemplate"), template)


def _image(path: Path, source: Struct, rules: Rules) -> Errors:
    if rules.is_pod and not source.get("reference"):
        yield required(path.child("reference"))
    yield from common.choice(path.child("pullPolicy"), source.get("pullPolicy", ""), _PULL_POLICIES)


_SOURCES: Mapping[str, Callable[[Path, Struct], Errors]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": remote.gce_disk,
    "awsElasticBlockStore": remote.aws_disk,
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": remote.iscsi,
    "glusterfs": remote.glusterfs,
    "flocker": remote.flocker,
    "persistentVolumeClaim": _claim,
    "rbd": remote.rbd,
    "cinder": remote.cinder,
    "cephfs": remote.cephfs,
    "quobyte": remote.quobyte,
    "downwardAPI": _downward,
    "fc": remote.fibre_channel,
    "flexVolume": remote.flex,
    "configMap": _config_map,
    "azureFile": remote.azure_file,
    "vsphereVolume": remote.vsphere,
    "photonPersistentDisk": remote.photon,
    "portworxVolume": remote.portworx,
    "azureDisk": remote.azure_disk,
    "storageos": remote.storage_os,
    "projected": _projected,
    "scaleIO": remote.scale_io,
    "csi": _csi,
    "ephemeral": _ephemeral,
}
# The order in which the API server looks: the first source is checked, each further one is refused.
_ORDER = (*_SOURCES, "image")
# Where its paths are not the field's name.
_OWN_NAMES = {"gcePersistentDisk": "persistentDisk"}
_SECOND_NAMES = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
