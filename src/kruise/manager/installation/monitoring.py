"""What the Prometheus operator and Grafana are told of an installation: where metrics are, alerts, dashboards. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.manager.installation import alerts, daemon, dashboards, manager
from kruise.manager.installation.pods import NAMESPACE, if_set
from kruise.manager.installation.templating import Value

RULES, DASHBOARDS = "kruise-alerts", "kruise-dashboards"
EVERYTHING: Mapping[str, Any] = {
    "metrics.serviceMonitor.enabled": True,
    "metrics.rules.enabled": True,
    "metrics.dashboards.enabled": True,
}
"""Values with which all of it is there."""


def manager_service() -> dict[str, Any]:
    return _service(alerts.MANAGER_JOB, manager.LABELS, Value("manager.metrics.port"))


def daemon_service() -> dict[str, Any]:
    return _service(alerts.DAEMON_JOB, daemon.LABELS, Value("daemon.port"))


def manager_monitor() -> dict[str, Any]:
    return _monitor(alerts.MANAGER_JOB)


def daemon_monitor() -> dict[str, Any]:
    return _monitor(alerts.DAEMON_JOB)


def _service(name: str, selector: Mapping[str, str], port: Value) -> dict[str, Any]:
    """One that only names pods: each of them is asked."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": name}},
        "spec": {
            "clusterIP": "None",
            # Who does not answer webhooks yet has something to tell all the same.
            "publishNotReadyAddresses": True,
            "ports": [{"name": "metrics", "port": port, "protocol": "TCP", "targetPort": port}],
            "selector": dict(selector),
        },
    }


def _monitor(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": if_set("metrics.serviceMonitor.labels")},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": name}},
            "endpoints": [
                {
                    "port": "metrics",
                    "interval": Value("metrics.serviceMonitor.interval"),
                    # `namespace` is that of a workload, and not that of the manager's pod.
                    "honorLabels": True,
                }
            ],
        },
    }


def rules() -> dict[str, Any]:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": RULES, "namespace": NAMESPACE, "labels": if_set("metrics.rules.labels")},
        "spec": {"groups": alerts.groups()},
    }


def dashboard_files() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": DASHBOARDS, "namespace": NAMESPACE, "labels": if_set("metrics.dashboards.labels")},
        "data": dashboards.files(),
    }
