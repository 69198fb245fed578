"""The table of native kinds: one row per kind, with what is special about it.

How each kind counts generations, answers deletes and takes updates was checked against a real API server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kruise.local.apicore import names
from kruise.local.apicore.kinds import KindDescription, ObjectSubresource, Registry
from kruise.local.kinds import (
    access,
    checks,
    cluster,
    configuration,
    jobs,
    pods,
    services,
    storage,
    webhook_configurations,
    workloads,
)
from kruise.local.kinds.describing import SCALE, and_status, field, fields, native

_ALL: Final = ("all",)
_TEMPLATE: Final = ("spec", "template")
_STORED: Final[Mapping[str, Any]] = {"tracks_generation": False}
_OBJECT_BACK: Final[Mapping[str, Any]] = {"tracks_generation": False, "returns_deleted_object": True}
_ROLES: Final[Mapping[str, Any]] = {
    "tracks_generation": False,
    "creates_on_update": True,
    "name_check": names.path_segment,
}
_CLUSTER: Final[Mapping[str, Any]] = {"namespaced": False}

_EVENT_FIELDS: Final = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "type",
)

CORE: Final = (
    native(
        "v1",
        "pods",
        "Pod",
        has_status=True,
        default=pods.read_pod,
        validate=pods.pod,
        new=pods.new_pod,
        status_keeps=("ownerReferences",),
        returns_deleted_object=True,
        grace_period=pods.pod_grace_period,
        subresources=pods.SUBRESOURCES,
        short_names=("po",),
        categories=_ALL,
        selectable_fields={
            "spec.nodeName": field("spec.nodeName"),
            "spec.restartPolicy": field("spec.restartPolicy", "Always"),
            "spec.schedulerName": field("spec.schedulerName", "default-scheduler"),
            "spec.serviceAccountName": field("spec.serviceAccountName"),
            "spec.hostNetwork": field("spec.hostNetwork", "false"),
            "status.phase": field("status.phase"),
            "status.podIP": field("status.podIP"),
            "status.nominatedNodeName": field("status.nominatedNodeName"),
        },
        indexed_fields=frozenset({"spec.nodeName"}),
    ),
    native("v1", "podtemplates", "PodTemplate", template=("template",), returns_deleted_object=True),
    native(
        "v1",
        "nodes",
        "Node",
        cluster.node,
        **_CLUSTER,
        **_STORED,
        has_status=True,
        keeps_status_on_create=True,
        status=cluster.node,
        new=and_status(cluster.new_node, ("v1", "Node")),
        prepare_update=cluster.changed_node,
        short_names=("no",),
        selectable_fields={"spec.unschedulable": field("spec.unschedulable", "false")},
    ),
    native(
        "v1",
        "namespaces",
        "Namespace",
        cluster.namespace,
        **_CLUSTER,
        **_STORED,
        has_status=True,
        status=cluster.namespace_status,
        name_check=names.dns_label,
        new=cluster.new_namespace,
        prepare_update=cluster.changed_namespace,
        held=cluster.namespace_is_held,
        marked=cluster.marked_namespace,
        subresources={
            "finalize": ObjectSubresource(
                prepare=cluster.finalized_namespace, validate=checks.check(cluster.namespace_finalizers)
            )
        },
        short_names=("ns",),
        selectable_fields=fields("status.phase"),
    ),
    native("v1", "configmaps", "ConfigMap", configuration.config_map, **_STORED, short_names=("cm",)),
    native(
        "v1",
        "secrets",
        "Secret",
        configuration.secret,
        **_STORED,
        selectable_fields={"type": field("type", "Opaque")},
    ),
    native("v1", "serviceaccounts", "ServiceAccount", **_OBJECT_BACK, short_names=("sa",)),
    native(
        "v1",
        "services",
        "Service",
        services.service,
        **_OBJECT_BACK,
        has_status=True,
        creates_on_update=True,
        name_check=names.dns_1035_label,
        new=services.new_service,
        prepare_update=services.changed_service,
        complete=services.allocate,
        short_names=("svc",),
        categories=_ALL,
        selectable_fields=fields("spec.clusterIP", "spec.type"),
    ),
    native(
        "v1",
        "events",
        "Event",
        cluster.event,
        **_STORED,
        creates_on_update=True,
        short_names=("ev",),
        selectable_fields={
            **fields(*_EVENT_FIELDS),
            "source": lambda obj: (obj.get("source") or {}).get("component") or obj.get("reportingComponent", ""),
        },
        indexed_fields=frozenset({"involvedObject.uid"}),
    ),
    native(
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        storage.claim,
        **_OBJECT_BACK,
        has_status=True,
        new=storage.new_claim,
        short_names=("pvc",),
    ),
    native(
        "v1",
        "persistentvolumes",
        "PersistentVolume",
        storage.volume,
        **_CLUSTER,
        **_OBJECT_BACK,
        has_status=True,
        new=storage.new_volume,
        short_names=("pv",),
    ),
    native("v1", "limitranges", "LimitRange", **_STORED, creates_on_update=True, short_names=("limits",)),
    native("v1", "resourcequotas", "ResourceQuota", **_OBJECT_BACK, has_status=True, short_names=("quota",)),
)

APPS: Final = (
    native("apps/v1", "controllerrevisions", "ControllerRevision", workloads.controller_revision, **_STORED),
    native(
        "apps/v1",
        "deployments",
        "Deployment",
        workloads.deployment,
        template=_TEMPLATE,
        has_status=True,
        status=workloads.deployment_status,
        status_keeps=("labels",),
        counted_metadata=("annotations",),
        subresources={"scale": SCALE},
        short_names=("deploy",),
        categories=_ALL,
    ),
    native(
        "apps/v1",
        "replicasets",
        "ReplicaSet",
        workloads.replica_set,
        template=_TEMPLATE,
        has_status=True,
        status=workloads.replica_set_status,
        subresources={"scale": SCALE},
        short_names=("rs",),
        categories=_ALL,
        selectable_fields={"status.replicas": field("status.replicas", "0")},
    ),
    native(
        "apps/v1",
        "statefulsets",
        "StatefulSet",
        workloads.stateful_set,
        template=_TEMPLATE,
        has_status=True,
        status=workloads.stateful_set_status,
        subresources={"scale": SCALE},
        name_check=names.dns_label,
        short_names=("sts",),
        categories=_ALL,
    ),
    native(
        "apps/v1",
        "daemonsets",
        "DaemonSet",
        workloads.daemon_set,
        template=_TEMPLATE,
        has_status=True,
        status=workloads.daemon_set_status,
        new=and_status(workloads.new_daemon_set, ("apps/v1", "DaemonSet")),
        prepare_update=workloads.changed_daemon_set,
        short_names=("ds",),
        categories=_ALL,
    ),
)

BATCH: Final = (
    native(
        "batch/v1",
        "jobs",
        "Job",
        jobs.job,
        template=_TEMPLATE,
        has_status=True,
        status=jobs.job_status,
        new=and_status(jobs.new_job, ("batch/v1", "Job")),
        prepare_update=jobs.changed_job,
        orphans_by_default=True,
        categories=_ALL,
        selectable_fields={"status.successful": field("status.succeeded", "0")},
    ),
    native(
        "batch/v1",
        "cronjobs",
        "CronJob",
        jobs.cron_job,
        template=("spec", "jobTemplate", "spec", "template"),
        has_status=True,
        short_names=("cj",),
        categories=_ALL,
    ),
)

CLUSTER: Final = (
    native(
        "policy/v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        cluster.budget,
        has_status=True,
        status=cluster.budget_status,
        allows_unconditional_update=False,
        short_names=("pdb",),
    ),
    native(
        "coordination.k8s.io/v1",
        "leases",
        "Lease",
        cluster.lease,
        **_STORED,
        creates_on_update=True,
        allows_unconditional_update=False,
    ),
    native(
        "discovery.k8s.io/v1",
        "endpointslices",
        "EndpointSlice",
        cluster.endpoint_slice,
        counted_metadata=("labels", "annotations", "ownerReferences", "finalizers"),
    ),
    native(
        "storage.k8s.io/v1",
        "storageclasses",
        "StorageClass",
        storage.storage_class,
        **_CLUSTER,
        **_OBJECT_BACK,
        short_names=("sc",),
    ),
    native(
        "scheduling.k8s.io/v1",
        "priorityclasses",
        "PriorityClass",
        cluster.priority_class,
        **_CLUSTER,
        **_STORED,
        new=cluster.new_priority_class,
        short_names=("pc",),
    ),
    native("rbac.authorization.k8s.io/v1", "roles", "Role", access.role, **_ROLES),
    native("rbac.authorization.k8s.io/v1", "rolebindings", "RoleBinding", access.role_binding, **_ROLES),
    native("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", access.cluster_role, **_CLUSTER, **_ROLES),
    native(
        "rbac.authorization.k8s.io/v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        access.cluster_role_binding,
        **_CLUSTER,
        **_ROLES,
    ),
    native(
        "admissionregistration.k8s.io/v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        webhook_configurations.configuration,
        **_CLUSTER,
        allows_unconditional_update=False,
        categories=("api-extensions",),
    ),
    native(
        "admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        webhook_configurations.configuration,
        **_CLUSTER,
        allows_unconditional_update=False,
        categories=("api-extensions",),
    ),
    native(
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        **_CLUSTER,
        has_status=True,
        allows_unconditional_update=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
    ),
)

NATIVE_KINDS: Final[tuple[KindDescription, ...]] = (*CORE, *APPS, *BATCH, *CLUSTER)


POD_KIND: Final = next(kind for kind in NATIVE_KINDS if kind.kind == "Pod")


def native_registry(more: Iterable[KindDescription] = ()) -> Registry:
    """The native kinds, and those in `more`, which win where they describe the same kind."""
    return Registry((*NATIVE_KINDS, *more))
