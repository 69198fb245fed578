"""Plain descriptions of native kinds, without the rules of their own, and one for custom kinds.

They are what tests of the core, and of machinery on top of it, need. `kruise.local.kinds` describes all native kinds
in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.api.core.schema import merge_schema
from kruise.api.native import apps, config, events, extensions, nodes, pod, storage
from kruise.api.resource import Resource
from kruise.local.apicore import names
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import ActionSubresource, KindDescription, Registry, ViewSubresource
from kruise.local.apicore.subresources import bind, evict, read_scale, write_scale


def custom_kind(resource: Resource[Any], **more: Any) -> KindDescription:
    """A kind as a custom resource definition without a schema would make it, with a status subresource."""
    return KindDescription.of(resource, **{"custom": True, "has_status": True, **more})


def native_kind(resource: Resource[Any], **more: Any) -> KindDescription:
    """A kind of Kubernetes itself, without rules of its own beyond those in `more`."""

    def schema(version: str) -> Any:
        return merge_schema(f"{resource.group}/{version}" if resource.group else version, resource.kind)

    return KindDescription.of(resource, **{"merge_schema": schema, **more})


def _reader(*path: str, default: str = "") -> Callable[[Json], str]:
    def read(obj: Json) -> str:
        value: Any = obj
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            return "true" if value else "false"
        return default if value is None else str(value)

    return read


def pod_grace_period(obj: Json, asked: int | None) -> int:
    """A pod that runs nowhere, or has ended, has nothing to wind up."""
    spec = obj.get("spec") or {}
    period = spec.get("terminationGracePeriodSeconds", 0) if asked is None else asked
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else int(period)


def _default_pod(obj: Json) -> Json:
    spec = obj.get("spec") or {}
    if "terminationGracePeriodSeconds" in spec:
        return obj
    return {**obj, "spec": {**spec, "terminationGracePeriodSeconds": 30}}


def _new_pod(obj: Json) -> Json:
    return {**obj, "status": {"phase": "Pending"}}


POD_KIND = native_kind(
    pod.PODS,
    has_status=True,
    status_keeps=("ownerReferences",),
    returns_deleted_object=True,
    grace_period=pod_grace_period,
    default=_default_pod,
    prepare_create=_new_pod,
    subresources={"eviction": ActionSubresource(create=evict), "binding": ActionSubresource(create=bind)},
    selectable_fields={
        "spec.nodeName": _reader("spec", "nodeName"),
        "spec.restartPolicy": _reader("spec", "restartPolicy", default="Always"),
        "spec.schedulerName": _reader("spec", "schedulerName", default="default-scheduler"),
        "spec.serviceAccountName": _reader("spec", "serviceAccountName"),
        "spec.hostNetwork": _reader("spec", "hostNetwork", default="false"),
        "status.phase": _reader("status", "phase"),
        "status.podIP": _reader("status", "podIP"),
        "status.nominatedNodeName": _reader("status", "nominatedNodeName"),
    },
)

SCALE = ViewSubresource(read=read_scale, write=write_scale)

_EVENT_FIELDS = ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid")

NATIVE: tuple[KindDescription, ...] = (
    POD_KIND,
    native_kind(
        nodes.NODES,
        has_status=True,
        tracks_generation=False,
        selectable_fields={"spec.unschedulable": _reader("spec", "unschedulable", default="false")},
    ),
    native_kind(
        nodes.NAMESPACES,
        has_status=True,
        tracks_generation=False,
        name_check=names.dns_label,
        selectable_fields={"status.phase": _reader("status", "phase")},
    ),
    native_kind(config.CONFIG_MAPS, tracks_generation=False),
    native_kind(config.SECRETS, tracks_generation=False, selectable_fields={"type": _reader("type", default="Opaque")}),
    native_kind(
        config.SERVICES,
        has_status=True,
        tracks_generation=False,
        creates_on_update=True,
        returns_deleted_object=True,
        name_check=names.dns_1035_label,
    ),
    native_kind(config.SERVICE_ACCOUNTS, tracks_generation=False, returns_deleted_object=True),
    native_kind(
        events.EVENTS,
        tracks_generation=False,
        creates_on_update=True,
        selectable_fields={
            **{name: _reader(*name.split(".")) for name in _EVENT_FIELDS},
            "reason": _reader("reason"),
            "reportingComponent": _reader("reportingComponent"),
            "type": _reader("type"),
        },
    ),
    native_kind(events.LEASES, tracks_generation=False, creates_on_update=True, allows_unconditional_update=False),
    native_kind(
        storage.PERSISTENT_VOLUME_CLAIMS,
        has_status=True,
        tracks_generation=False,
        returns_deleted_object=True,
    ),
    native_kind(
        storage.PERSISTENT_VOLUMES,
        has_status=True,
        tracks_generation=False,
        returns_deleted_object=True,
    ),
    native_kind(storage.STORAGE_CLASSES, tracks_generation=False, returns_deleted_object=True),
    native_kind(apps.CONTROLLER_REVISIONS, tracks_generation=False),
    native_kind(
        apps.DEPLOYMENTS,
        has_status=True,
        status_keeps=("labels",),
        counted_metadata=("annotations",),
        subresources={"scale": SCALE},
    ),
    native_kind(apps.REPLICA_SETS, has_status=True, subresources={"scale": SCALE}),
    native_kind(apps.STATEFUL_SETS, has_status=True, subresources={"scale": SCALE}),
    native_kind(apps.DAEMON_SETS, has_status=True),
    native_kind(apps.JOBS, has_status=True, orphans_by_default=True),
    native_kind(extensions.CUSTOM_RESOURCE_DEFINITIONS, has_status=True, allows_unconditional_update=False),
    native_kind(extensions.MUTATING_WEBHOOK_CONFIGURATIONS, allows_unconditional_update=False),
    native_kind(extensions.VALIDATING_WEBHOOK_CONFIGURATIONS, allows_unconditional_update=False),
)


def native_registry(more: Iterable[KindDescription] = ()) -> Registry:
    """The native kinds, and those in `more`, which win where they describe the same kind."""
    return Registry((*NATIVE, *more))
