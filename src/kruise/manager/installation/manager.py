"""The Deployment of the manager, and what belongs to it (MGR sections 1 and 11). Pure."""

from __future__ import annotations

from typing import Any

from kruise.manager.installation.pods import (
    NAMESPACE,
    env_of_field,
    if_set,
    image_fields,
    unprivileged_container,
    unprivileged_pod,
)
from kruise.manager.installation.rbac import MANAGER
from kruise.manager.installation.templating import IsSet, Value, When, text
from kruise.manager.installation.values import POD_FAILURE_POLICY

DEPLOYMENT = "kruise-controller-manager"
SERVICE = "kruise-webhook-service"
SECRET = "kruise-webhook-certs"
LABELS = {"control-plane": "controller-manager"}
NOBODY = 65534
CERTIFICATES, LOGS = "/tmp/kruise-webhook-certs", "/log"


def deployment(version: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE, "labels": dict(LABELS)},
        "spec": {
            "replicas": Value("manager.replicas"),
            "selector": {"matchLabels": dict(LABELS)},
            "minReadySeconds": 3,
            # The new replicas answer webhooks before an old one goes.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}},
            "template": {
                "metadata": {"labels": dict(LABELS), "annotations": if_set("manager.podAnnotations")},
                "spec": _pod(version),
            },
        },
    }


def _pod(version: str) -> dict[str, Any]:
    selector = {"matchLabels": dict(LABELS)}
    apart = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {
        "serviceAccountName": MANAGER,
        "imagePullSecrets": if_set("imagePullSecrets"),
        "priorityClassName": if_set("manager.priorityClassName"),
        "hostNetwork": Value("manager.hostNetwork"),
        "nodeSelector": if_set("manager.nodeSelector"),
        "tolerations": if_set("manager.tolerations"),
        "affinity": {
            "nodeAffinity": if_set("manager.nodeAffinity"),
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": apart}]
            },
        },
        "topologySpreadConstraints": [
            {
                "labelSelector": selector,
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
            }
        ],
        # Long enough for webhooks to be answered until nobody asks any more (--shutdown-delay), and for what is then
        # still being answered.
        "terminationGracePeriodSeconds": 45,
        "securityContext": unprivileged_pod(NOBODY, NOBODY),
        "containers": [_container(version)],
        "volumes": [
            {"name": "certificates", "emptyDir": {"medium": "Memory"}},
            {"name": "logs", "emptyDir": {}},
        ],
    }


def _container(version: str) -> dict[str, Any]:
    return {
        "name": "manager",
        **image_fields(version),
        "command": ["kruise", "manager"],
        "args": [
            text("--metrics-addr=:", Value("manager.metrics.port")),
            text("--metrics-per-workload=", Value("metrics.perWorkload")),
            text("--health-probe-addr=:", Value("manager.healthProbe.port")),
            text("--journal-addr=:", Value("manager.journal.port")),
            text("--leader-election-namespace=", NAMESPACE),
            text("--v=", Value("manager.log.level")),
            text("--sync-period=", Value("manager.resyncPeriod")),
            text("--rest-config-qps=", Value("manager.qps")),
            text("--pod-failure-policy=", Value(POD_FAILURE_POLICY)),
            f"--protection-log-path={LOGS}",
            When(IsSet("manager.loggingFormat"), text("--logging-format=", Value("manager.loggingFormat"))),
            When(IsSet("featureGates"), text("--feature-gates=", Value("featureGates"))),
        ],
        "env": [
            env_of_field("POD_NAMESPACE", "metadata.namespace"),
            {"name": "WEBHOOK_PORT", "value": text(Value("manager.webhook.port"))},
            {"name": "WEBHOOK_CERT_DIR", "value": CERTIFICATES},
            When(IsSet("manager.extraEnvs"), Value("manager.extraEnvs")),
        ],
        "ports": [
            {"name": "webhook-server", "containerPort": Value("manager.webhook.port"), "protocol": "TCP"},
            {"name": "metrics", "containerPort": Value("manager.metrics.port"), "protocol": "TCP"},
            {"name": "health", "containerPort": Value("manager.healthProbe.port"), "protocol": "TCP"},
            {"name": "journal", "containerPort": Value("manager.journal.port"), "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 4},
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "health"},
            "initialDelaySeconds": 60,
            "periodSeconds": 20,
            "timeoutSeconds": 10,
        },
        "resources": Value("manager.resources"),
        "securityContext": unprivileged_container(),
        "volumeMounts": [
            {"name": "certificates", "mountPath": "/tmp"},
            {"name": "logs", "mountPath": LOGS},
        ],
    }


def service() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {
            "ports": [
                {"name": "webhook", "port": 443, "protocol": "TCP", "targetPort": Value("manager.webhook.port")},
            ],
            "selector": dict(LABELS),
        },
    }


def disruption_budget() -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {
            "minAvailable": Value("manager.podDisruptionBudget.minAvailable"),
            "selector": {"matchLabels": dict(LABELS)},
        },
    }


def network_policy() -> dict[str, Any]:
    """The API server calls webhooks from addresses that no selector knows, so ports are limited and callers are not."""
    ports = [
        Value("manager.webhook.port"),
        Value("manager.metrics.port"),
        Value("manager.healthProbe.port"),
        Value("manager.journal.port"),
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {
            "podSelector": {"matchLabels": dict(LABELS)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
        },
    }
