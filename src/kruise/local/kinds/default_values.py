"""The defaults of native kinds as data: plain values by struct and field, and the few that depend on other fields.

Pods and pod templates are not here: `kruise.api.core.defaults` has theirs. Values are filled in before types are
checked, so that the functions here must bear any JSON value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final

Value = Mapping[str, Any]

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
CLIENT_IP_SECONDS: Final = 10_800
MAX_INT32: Final = 2**31 - 1
NAME_LABEL: Final = "kubernetes.io/metadata.name"

_WEBHOOK: Value = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}

VALUES: Final[Mapping[str, Value]] = {
    "apps.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.ReplicaSetSpec": {"replicas": 1},
    "apps.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.StatefulSetSpec": {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "persistentVolumeClaimRetentionPolicy": {},
    },
    "apps.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "batch.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "batch.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "core.NamespaceStatus": {"phase": "Active"},
    "core.Secret": {"type": "Opaque"},
    "core.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "core.ServicePort": {"protocol": "TCP"},
    "core.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core.PersistentVolumeStatus": {"phase": "Pending"},
    "core.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.HostPathVolumeSource": {"type": ""},
    "core.ISCSIPersistentVolumeSource": {"iscsiInterface": "default"},
    "core.RBDPersistentVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "core.AzureDiskVolumeSource": {"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": False},
    "core.ScaleIOPersistentVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "core.EndpointPort": {"protocol": "TCP"},
    "discovery.EndpointPort": {"name": "", "protocol": "TCP"},
    "storage.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "scheduling.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "rbac.RoleRef": {"apiGroup": RBAC_GROUP},
    "admissionregistration.ValidatingWebhook": _WEBHOOK,
    "admissionregistration.MutatingWebhook": {**_WEBHOOK, "reinvocationPolicy": "Never"},
    "admissionregistration.RuleWithOperations": {"scope": "*"},
    "admissionregistration.ServiceReference": {"port": 443},
}


def _inner(value: Value, name: str) -> Value:
    found = value.get(name)
    return found if isinstance(found, Mapping) else {}


def _with_missing(value: Value, **wanted: Any) -> Value:
    return {**value, **{name: default for name, default in wanted.items() if value.get(name) is None}}


def _rolling_strategy(**wanted: Any) -> Callable[[Value], Value]:
    """A strategy that rolls unless it says otherwise, with the limits of the roll."""

    def fill_in(strategy: Value) -> Value:
        strategy = strategy if strategy.get("type") else {**strategy, "type": "RollingUpdate"}
        if strategy["type"] != "RollingUpdate" or not isinstance(strategy.get("rollingUpdate") or {}, Mapping):
            return strategy
        return {**strategy, "rollingUpdate": _with_missing(strategy.get("rollingUpdate") or {}, **wanted)}

    return fill_in


def _stateful_strategy(strategy: Value) -> Value:
    """A type without settings keeps having none: only where neither is given both are filled in."""
    if not strategy.get("type"):
        strategy = {**_with_missing(strategy, rollingUpdate={}), "type": "RollingUpdate"}
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] != "RollingUpdate" or not isinstance(rolling, Mapping):
        return strategy
    # A field whose feature is off in Kubernetes 1.34.
    rolling = {name: value for name, value in rolling.items() if name != "maxUnavailable"}
    return {**strategy, "rollingUpdate": _with_missing(rolling, partition=0)}


def _job(job: Value) -> Value:
    """The jobs inside a CronJob get none of this before they exist."""
    spec = job.get("spec") or {}
    if not isinstance(spec, Mapping):
        return job
    if spec.get("parallelism") is None:
        completions = spec.get("completions")
        spec = {**spec, "parallelism": 1, "completions": 1 if completions is None else completions}
    spec = _with_missing(
        spec,
        backoffLimit=6 if spec.get("backoffLimitPerIndex") is None else MAX_INT32,
        podReplacementPolicy="TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed",
        completionMode="NonIndexed",
        suspend=False,
        manualSelector=False,
    )
    return {**job, "spec": spec}


def _claim_templates(spec: Value) -> Value:
    templates = spec.get("volumeClaimTemplates")
    if not isinstance(templates, list):
        return spec
    typed = [
        {**one, "apiVersion": one.get("apiVersion") or "v1", "kind": one.get("kind") or "PersistentVolumeClaim"}
        if isinstance(one, Mapping)
        else one
        for one in templates
    ]
    return {**spec, "volumeClaimTemplates": typed}


def _service_spec(spec: Value) -> Value:
    affinity, kind = spec.get("sessionAffinity"), spec.get("type")
    if affinity == "None":
        spec = {name: value for name, value in spec.items() if name != "sessionAffinityConfig"}
    if (
        affinity == "ClientIP"
        and _inner(_inner(spec, "sessionAffinityConfig"), "clientIP").get("timeoutSeconds") is None
    ):
        spec = {**spec, "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": CLIENT_IP_SECONDS}}}
    if is_reached_from_outside(spec) and not spec.get("externalTrafficPolicy"):
        spec = {**spec, "externalTrafficPolicy": "Cluster"}
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec = _with_missing(spec, internalTrafficPolicy="Cluster")
    return _with_missing(spec, allocateLoadBalancerNodePorts=True) if kind == "LoadBalancer" else spec


def is_reached_from_outside(spec: Value) -> bool:
    return spec.get("type") in ("LoadBalancer", "NodePort") or (
        spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs"))
    )


def _service(service: Value) -> Value:
    """Addresses of a load balancer are addresses of its own unless they say otherwise."""
    status, spec = _inner(service, "status"), _inner(service, "spec")
    balancer = _inner(status, "loadBalancer")
    ingress = balancer.get("ingress")
    if spec.get("type") != "LoadBalancer" or not isinstance(ingress, list):
        return service
    known = [
        {**item, "ipMode": "VIP"} if isinstance(item, Mapping) and item.get("ip") and not item.get("ipMode") else item
        for item in ingress
    ]
    return {**service, "status": {**status, "loadBalancer": {**balancer, "ingress": known}}}


def _service_port(port: Value) -> Value:
    if port.get("targetPort") in (None, 0, ""):
        return {**port, "targetPort": port.get("port", 0)}
    return port


def _namespace(namespace: Value) -> Value:
    about = _inner(namespace, "metadata")
    name, labels = about.get("name"), about.get("labels")
    if not name or not isinstance(labels or {}, Mapping):
        return namespace
    return {**namespace, "metadata": {**about, "labels": {**(labels or {}), NAME_LABEL: name}}}


def _node_status(status: Value) -> Value:
    return status if status.get("capacity") is None else _with_missing(status, allocatable=status["capacity"])


def _limit_item(item: Value) -> Value:
    """Limits of containers fill each other in: the largest is the default, the default is asked for."""
    if item.get("type") != "Container":
        return item
    limits = {**_inner(item, "max"), **_inner(item, "default")}
    requests = {**_inner(item, "min"), **limits, **_inner(item, "defaultRequest")}
    return {**item, "default": limits, "defaultRequest": requests}


def _subject(subject: Value) -> Value:
    if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
        return {**subject, "apiGroup": RBAC_GROUP}
    return subject


def _secret(secret: Value) -> Value:
    """Secret data may be sent as plain text; it is stored in one place."""
    plain = secret.get("stringData")
    if not isinstance(plain, Mapping) or not all(isinstance(value, str) for value in plain.values()):
        return secret
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
    kept = {name: value for name, value in secret.items() if name != "stringData"}
    return {**kept, "data": {**_inner(secret, "data"), **encoded}} if encoded else kept


COMPUTED: Final[Mapping[str, Callable[[Value], Value]]] = {
    "apps.DeploymentStrategy": _rolling_strategy(maxUnavailable="25%", maxSurge="25%"),
    "apps.DaemonSetUpdateStrategy": _rolling_strategy(maxUnavailable=1, maxSurge=0),
    "apps.StatefulSetUpdateStrategy": _stateful_strategy,
    "apps.StatefulSetSpec": _claim_templates,
    "batch.Job": _job,
    "core.Namespace": _namespace,
    "core.NodeStatus": _node_status,
    "core.LimitRangeItem": _limit_item,
    "core.Secret": _secret,
    "core.Service": _service,
    "core.ServiceSpec": _service_spec,
    "core.ServicePort": _service_port,
    "rbac.Subject": _subject,
}
