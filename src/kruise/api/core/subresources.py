"""What an update through a pod's subresource takes over from the object that was sent; everything else stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import schema, values
from kruise.api.core.values import Value

_KEPT_METADATA = (
    "deletionTimestamp",
    "generation",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
)
_RESIZED = ("resources", "resizePolicy")


def resized_pod(new: Mapping[str, Any], old: Mapping[str, Any]) -> Value:
    """`pods/resize`: resources and resize policies. Where containers come and go the new pod is left for refusal."""
    for kind in ("containers", "initContainers"):
        if len(new["spec"].get(kind) or ()) != len(old["spec"].get(kind) or ()):
            return dict(new)
    spec = dict(old["spec"])
    for kind in ("containers", "initContainers"):
        if new["spec"].get(kind):
            spec[kind] = _resized_containers(new["spec"][kind], old["spec"][kind])
    return _taken(new, old, spec)


def _resized_containers(new: Sequence[Value], old: Sequence[Value]) -> Sequence[Value]:
    if [container["name"] for container in new] != [container["name"] for container in old]:
        return new
    merged = []
    for after, before in zip(new, old, strict=True):
        changed = {name: value for name, value in before.items() if name not in _RESIZED}
        changed.update({name: after[name] for name in _RESIZED if name in after})
        merged.append(values.ordered(changed, schema.CONTAINER))
    return merged


def pod_with_ephemeral_containers(new: Mapping[str, Any], old: Mapping[str, Any]) -> Value:
    """`pods/ephemeralcontainers`: the ephemeral containers."""
    spec = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    if new["spec"].get("ephemeralContainers"):
        spec["ephemeralContainers"] = new["spec"]["ephemeralContainers"]
    return _taken(new, old, values.ordered(spec, schema.POD_SPEC))


def _taken(new: Mapping[str, Any], old: Mapping[str, Any], spec: Value) -> Value:
    meta = {name: value for name, value in new["metadata"].items() if name not in _KEPT_METADATA}
    meta.update({name: old["metadata"][name] for name in _KEPT_METADATA if name in old["metadata"]})
    return {**new, "metadata": values.ordered(meta, "meta.ObjectMeta"), "spec": spec, "status": old.get("status") or {}}


def pod_with_status(new: Mapping[str, Any], old: Mapping[str, Any]) -> Value:
    """`pods/status`: the status, and labels and annotations too. The quality of service is never lost."""
    meta = {
        name: value for name, value in new["metadata"].items() if name not in ("ownerReferences", "deletionTimestamp")
    }
    for name in ("ownerReferences", "deletionTimestamp"):
        if name in old["metadata"]:
            meta[name] = old["metadata"][name]
    status, before = dict(new.get("status") or {}), old.get("status") or {}
    if not status.get("qosClass") and before.get("qosClass"):
        status["qosClass"] = before["qosClass"]
    if not status.get("observedGeneration") and before.get("observedGeneration"):
        status["observedGeneration"] = before["observedGeneration"]
    return {
        **new,
        "metadata": values.ordered(meta, "meta.ObjectMeta"),
        "spec": old["spec"],
        "status": values.ordered(status, "core.PodStatus"),
    }
