"""Volume mounts and block devices of a container."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, forbidden, invalid, not_found, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")


def volume_mounts(path: Path, container: Struct, volumes: Mapping[str, Struct]) -> Errors:
    """Complaints about sub-paths and propagation name the list and not the mount, as the API server has it."""
    devices = {device["name"]: device["devicePath"] for device in container.get("volumeDevices") or ()}
    seen: set[str] = set()
    for position, mount in enumerate(container.get("volumeMounts") or ()):
        where, name, at = path.at(position), mount["name"], mount["mountPath"]
        if not name:
            yield required(where.child("name"))
        if name not in volumes:
            yield not_found(where.child("name"), name)
        if not at:
            yield required(where.child("mountPath"))
        if at in seen:
            yield invalid(where.child("mountPath"), at, "must be unique")
        seen.add(at)
        if name in devices:
            yield invalid(where.child("name"), name, "must not already exist in volumeDevices")
        if at in devices.values():
            yield invalid(where.child("mountPath"), at, "must not already exist as a path in volumeDevices")
        yield from _sub_paths(path, where, mount)
        yield from _propagation(path.child("mountPropagation"), mount.get("mountPropagation"), container)
        yield from _recursive_read_only(path.child("recursiveReadOnly"), mount)


def _sub_paths(path: Path, where: Path, mount: Struct) -> Errors:
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub_path:
        yield from common.complaints(path.child("subPath"), sub_path, formats.descending_path(sub_path))
    if expression:
        if sub_path:
            yield invalid(where.child("subPathExpr"), expression, "subPathExpr and subPath are mutually exclusive")
        yield from common.complaints(path.child("subPathExpr"), expression, formats.descending_path(expression))


def _propagation(path: Path, mode: str | None, container: Struct) -> Errors:
    if mode is None:
        return
    if mode not in _PROPAGATIONS:
        yield not_supported(path, mode, _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if mode == "Bidirectional" and not privileged:
        yield forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def _recursive_read_only(path: Path, mount: Struct) -> Errors:
    mode = mount.get("recursiveReadOnly")
    if mode is None or mode == "Disabled":
        return
    if mode not in ("Enabled", "IfPossible"):
        yield not_supported(path, mode, ("Disabled", "Enabled", "IfPossible"))
        return
    if not mount.get("readOnly"):
        yield forbidden(path, "may only be specified when readOnly is true")
    if mount.get("mountPropagation") not in (None, "None"):
        yield forbidden(path, "may only be specified when mountPropagation is None or not specified")


def volume_devices(path: Path, container: Struct, volumes: Mapping[str, Struct]) -> Errors:
    mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts") or ()}
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for position, device in enumerate(container.get("volumeDevices") or ()):
        where, name, at = path.at(position), device["name"], device["devicePath"]
        if not name:
            yield required(where.child("name"))
        if name in seen_names:
            yield invalid(where.child("name"), name, "must be unique")
        if name not in volumes:
            yield not_found(where.child("name"), name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            complaint = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(where.child("name"), name, complaint)
        if not at:
            yield required(where.child("devicePath"))
        if at in seen_paths:
            yield invalid(where.child("devicePath"), at, "must be unique")
        if at and formats.no_backsteps(at):
            yield invalid(where.child("devicePath"), at, "can not contain backsteps ('..')")
        else:
            seen_paths.add(at)
        if name in mounts:
            yield invalid(where.child("name"), name, "must not already exist in volumeMounts")
        if at in mounts.values():
            yield invalid(where.child("devicePath"), at, "must not already exist as a path in volumeMounts")
        if name:
            seen_names.add(name)
