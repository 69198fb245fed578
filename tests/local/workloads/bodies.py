"""Workloads in a few words. Pods carry their node from the template where no scheduler is to place them."""

from __future__ import annotations

from typing import Any


def template(labels: dict[str, str], image: str = "app:1", *, node: str = "n0", **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"containers": [{"name": "main", "image": image}], **spec}
    if node:
        body["nodeName"] = node
    return {"metadata": {"labels": labels}, "spec": body}


def replica_set(name: str, replicas: int, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    labels = labels or {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template(labels),
            **spec,
        },
    }


def deployment(name: str, replicas: int, image: str = "app:1", *, node: str = "n0", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template({"app": name}, image, node=node),
            **spec,
        },
    }


def stateful_set(name: str, replicas: int, image: str = "app:1", *, node: str = "n0", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "template": template({"app": name}, image, node=node),
            **spec,
        },
    }


def claim_template(name: str = "data", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


def daemon_set(name: str, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": template({"app": name}, image, node=""),
            **spec,
        },
    }


def image(text: str) -> dict[str, Any]:
    """A strategic merge patch."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": text}]}}}}


def job(name: str, *, node: str = "n0", restart: str = "Never", **spec: Any) -> dict[str, Any]:
    body = template({}, node=node, restartPolicy=restart)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": body, **spec}}


def pod(name: str, *, node: str = "n0", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    body = template(labels or {}, node=node, **spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**body["metadata"], "name": name},
        "spec": body["spec"],
    }
