"""What may change in a pod through its subresources: resize, ephemeral containers, status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import formats, pod_resources, schema, values
from kruise.api.core.field_errors import Path, forbidden, invalid
from kruise.api.core.pod_resources import amounts
from kruise.api.core.validation import common, metadata
from kruise.api.core.validation.common import Errors, Struct

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_MUTABLE = ("cpu", "memory")
# How the API server writes the path of the object itself.
_NOWHERE = "[]"


def not_resizable(new: Struct, old: Struct) -> Errors:
    """Pods that can never be resized. Nothing else is said about them."""
    for pod in (old, new):
        resources = pod["spec"].get("resources") or {}
        if resources.get("requests") or resources.get("limits"):
            yield forbidden(_NOWHERE, "pods with pod-level resources cannot be resized")
            return
    if metadata.MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden(_NOWHERE, "static pods cannot be resized")
    elif (old["spec"].get("os") or {}).get("name") == "windows":
        yield forbidden(_NOWHERE, "windows pods cannot be resized")


def resize(new: Struct, old: Struct) -> Errors:
    path = Path("spec")
    status = old.get("status") or {}
    before = status.get("qosClass") or pod_resources.qos_class(old["spec"])
    if before != pod_resources.qos_class(new["spec"]):
        words = "Pod QOS Class may not change as a result of resizing"
        yield invalid(path, (new.get("status") or {}).get("qosClass", ""), words)
    if not _node_supports_resize(status):
        yield forbidden(path, "Pod running on node without support for resize")
    out_of_order = tuple(_same_containers(path, new["spec"], old["spec"]))
    yield from out_of_order
    if not out_of_order:
        yield from _only_compute_changed(path, new["spec"], old["spec"])


def _node_supports_resize(status: Struct) -> bool:
    """A node that reports the resources of running containers can change them. Without any it is assumed."""
    for container in status.get("containerStatuses") or ():
        if (container.get("state") or {}).get("running") is not None:
            return container.get("resources") is not None
    return True


def _same_containers(path: Path, new: Struct, old: Struct) -> Errors:
    for kind in ("containers", "initContainers"):
        after, before = new.get(kind) or (), old.get(kind) or ()
        if len(after) != len(before):
            yield forbidden(path.child(kind), f"{kind} may not be added or removed on resize")
            continue
        for position, (one, other) in enumerate(zip(after, before, strict=True)):
            if one["name"] != other["name"]:
                where = path.child(kind).at(position).child("name")
                yield forbidden(where, f"{kind} may not be renamed or reordered on resize")


def _only_compute_changed(path: Path, new: Struct, old: Struct) -> Errors:
    for kind in ("initContainers", "containers"):
        pairs = zip(new.get(kind) or (), old.get(kind) or (), strict=True)
        for position, (after, before) in enumerate(pairs):
            if kind == "containers" or pod_resources.is_sidecar(before):
                yield from _nothing_removed(path.child(kind).at(position).child("resources"), after, before)
    for kind, words in (
        ("containers", "only cpu and memory resources are mutable"),
        ("initContainers", "only cpu and memory resources for sidecar containers are mutable"),
    ):
        for after, before in zip(new.get(kind) or (), old.get(kind) or (), strict=True):
            fixed = kind == "initContainers" and not pod_resources.is_sidecar(after)
            expected = after if fixed else _with_compute_of(before, after)
            if not values.equal(expected, before, schema.CONTAINER):
                yield forbidden(path, "resources for non-sidecar init containers are immutable" if fixed else words)


def _nothing_removed(path: Path, new: Struct, old: Struct) -> Errors:
    for member in ("requests", "limits"):
        if amounts(old, member).keys() - amounts(new, member).keys():
            yield forbidden(path.child(member), f"resource {member} cannot be removed")


def _with_compute_of(old: Struct, new: Struct) -> dict[str, Any]:
    """The new container with the old cpu and memory. Resources that had no list before cannot get one."""
    munged: dict[str, Mapping[str, str]] = {}
    for member in ("limits", "requests"):
        before = amounts(old, member)
        if before:
            kept = {name: amount for name, amount in amounts(new, member).items() if name not in _MUTABLE}
            munged[member] = {**kept, **{name: before[name] for name in _MUTABLE if name in before}}
    return {**new, "resources": munged}


def ephemeral_containers(new: Struct, old: Struct) -> Errors:
    """They can be added, and never change or go away."""
    if metadata.MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden(_NOWHERE, "static pods do not support ephemeral containers")
        return
    path = Path("spec").child("ephemeralContainers")
    after = {container["name"]: container for container in new["spec"].get("ephemeralContainers") or ()}
    for before in old["spec"].get("ephemeralContainers") or ():
        name = before["name"]
        if name not in after:
            yield forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')
        elif not values.equal(after[name], before, "core.EphemeralContainer"):
            yield forbidden(path, f'existing ephemeral containers "{name}" may not be changed\n')


def status(new: Struct, old: Struct) -> Errors:
    path, after, before = Path("status"), new.get("status") or {}, old.get("status") or {}
    for position, condition in enumerate(after.get("conditions") or ()):
        where = path.child("conditions").at(position)
        if condition.get("observedGeneration", 0) < 0:
            words = "must be a non-negative integer"
            yield invalid(where.child("observedGeneration"), condition["observedGeneration"], words)
        if condition["type"] not in _SYSTEM_CONDITIONS:
            yield from common.label_name(where.child("Type"), condition["type"])
    nominated = after.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        where = path.child("nominatedNodeName")
        yield from common.complaints(where, nominated, formats.dns_subdomain(nominated))
        if old["spec"].get("nodeName"):
            yield forbidden(where, "may not be set on pods that are already bound to a node")
    if after.get("observedGeneration", 0) < 0:
        yield invalid(path.child("observedGeneration"), after["observedGeneration"], "must be a non-negative integer")
    if after.get("qosClass", "") != before.get("qosClass", ""):
        yield invalid(path.child("qosClass"), after.get("qosClass", ""), metadata.IMMUTABLE)
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        yield from _transitions(path.child(kind), after.get(kind) or (), before.get(kind) or (), kind, old["spec"])
    yield from _addresses(path.child("podIPs"), after.get("podIPs") or (), before.get("podIPs") or ())
    yield from _one_of_each_family(path.child("hostIPs"), after.get("hostIPs") or ())


def _transitions(path: Path, new: Sequence[Struct], old: Sequence[Struct], kind: str, spec: Struct) -> Errors:
    """A container that ended stays ended, unless it is to be restarted."""
    policy = "Never" if kind == "ephemeralContainerStatuses" else spec.get("restartPolicy")
    sidecars = {one["name"] for one in spec.get("initContainers") or () if pod_resources.is_sidecar(one)}
    restarted = sidecars if kind == "initContainerStatuses" else set()
    if policy == "Always":
        return
    alive = {one["name"] for one in new if (one.get("state") or {}).get("terminated") is None}
    for position, before in enumerate(old):
        ended = (before.get("state") or {}).get("terminated")
        if ended is None or before["name"] in restarted or (ended.get("exitCode") and policy == "OnFailure"):
            continue
        if before["name"] in alive:
            yield forbidden(path.at(position).child("state"), "may not be transitioned to non-terminated state")


def _addresses(path: Path, new: Sequence[Struct], old: Sequence[Struct]) -> Errors:
    known = [address.get("ip", "") for address in old]
    for position, address in enumerate(new):
        ip = address.get("ip", "")
        if ip not in known:
            yield from common.complaints(path.at(position), ip, formats.ip_address(ip))
    yield from _one_of_each_family(path, new)


def _one_of_each_family(path: Path, addresses: Sequence[Struct]) -> Errors:
    families = [":" in address.get("ip", "") for address in addresses]
    if len(families) > 1 and (len(families) > 2 or len(set(families)) == 1):
        shown = [{"IP": address.get("ip", "")} for address in addresses]
        yield invalid(path, shown, "may specify no more than one IP for each IP family")
