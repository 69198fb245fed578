"""Pods as a busy cluster has them: about 8 KB each, the same every time for the same number."""

from __future__ import annotations

import hashlib
from typing import Any

PODS_PER_OWNER = 20
NODES = 200
_MADE = "2030-01-01T00:00:00Z"
_CONDITIONS = (
    "PodReadyToStartContainers", "Initialized", "InPlaceUpdateReady", "Ready", "ContainersReady", "PodScheduled"
)  # fmt: skip
_OWNED_FIELDS = {
    "metadata": ("labels", "annotations", "generateName", "ownerReferences"),
    "spec": ("containers", "dnsPolicy", "restartPolicy", "tolerations", "volumes", "securityContext"),
    "status": ("conditions", "containerStatuses", "hostIP", "phase", "podIP", "startTime"),
}


def stored_pod(number: int, version: str) -> dict[str, Any]:
    """A running pod as the API server sends it."""
    owner = f"checkout-{number // PODS_PER_OWNER:04d}"
    reference = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": owner, "uid": _uid(owner)}
    metadata = {
        "name": f"{owner}-{_hex(number)[:5]}",
        "generateName": f"{owner}-",
        "namespace": f"team-{number // PODS_PER_OWNER % 10}",
        "uid": _uid(f"pod {number}"),
        "resourceVersion": version,
        "generation": 1,
        "creationTimestamp": _MADE,
        **_marks(owner, _hex(number)),
        "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
        "managedFields": [
            _managed("kube-controller-manager", "metadata", "spec"),
            _managed("kube-scheduler", "status"),
            _managed("kubelet", "status"),
        ],
    }
    placed = {"nodeName": f"node-{number % NODES:03d}", "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}
    status = {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _MADE} for kind in _CONDITIONS
        ],
        "hostIP": f"10.0.{number % NODES}.1",
        "podIP": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "startTime": _MADE,
        "qosClass": "Burstable",
        "containerStatuses": [_container_status(name, number) for name in ("main", "proxy")],
    }
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {**_spec(), **placed}, "status": status}


def new_pod(name: str, namespace: str) -> dict[str, Any]:
    """A pod as a controller creates it."""
    metadata = {"name": name, "namespace": namespace, **_marks("checkout", name)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec()}


def _hex(seed: object) -> str:
    return hashlib.sha256(str(seed).encode()).hexdigest()


def _uid(seed: str) -> str:
    text = _hex(seed)
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:32]}"


def _marks(owner: str, seed: str) -> dict[str, Any]:
    return {
        "labels": {
            "app.kubernetes.io/name": "checkout",
            "app.kubernetes.io/instance": owner,
            "app.kubernetes.io/version": "2.14.3",
            "controller-revision-hash": f"{owner}-{_hex(owner)[:10]}",
            "lifecycle.apps.kruise.io/state": "Normal",
        },
        "annotations": {
            "checksum/config": _hex(f"config {owner}"),
            "lifecycle.apps.kruise.io/timestamp": _MADE,
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "9102",
            "example.com/trace": _hex(f"trace {seed}"),
        },
    }


def _spec() -> dict[str, Any]:
    taints = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    return {
        "containers": [
            _container("main", "registry.example.com/shop/checkout:2.14.3", 8080),
            _container("proxy", "registry.example.com/mesh/proxy:1.29.0", 15001),
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": "checkout", "defaultMode": 420}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 1000},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for taint in taints
        ],
    }


def _container(name: str, image: str, port: int) -> dict[str, Any]:
    env = [{"name": f"{name.upper()}_SETTING_{index}", "value": f"value-{index}"} for index in range(6)]
    field = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
    timing = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/checkout/config.yaml", f"--listen=:{port}"],
        "ports": [{"name": "http", "containerPort": port, "protocol": "TCP"}],
        "env": [*env, {"name": "POD_NAME", "valueFrom": field}],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/checkout"}, {"name": "scratch", "mountPath": "/tmp"}],
        "livenessProbe": {"httpGet": {"path": "/livez", "port": port, "scheme": "HTTP"}, **timing},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": port, "scheme": "HTTP"}, **timing},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def _container_status(name: str, number: int) -> dict[str, Any]:
    return {
        "name": name,
        "state": {"running": {"startedAt": _MADE}},
        "lastState": {},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": f"registry.example.com/shop/{name}:2.14.3",
        "imageID": f"registry.example.com/shop/{name}@sha256:{_hex(name)}",
        "containerID": f"containerd://{_hex(f'{name} {number}')}",
    }


def _managed(manager: str, *parts: str) -> dict[str, Any]:
    leaf: dict[str, Any] = {
        ".": {}, "f:type": {}, "f:status": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}
    }  # fmt: skip
    fields = {f"f:{part}": {f"f:{name}": leaf for name in _OWNED_FIELDS[part]} for part in parts}
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": _MADE, "fieldsType": "FieldsV1"}
    return {**entry, "fieldsV1": fields}
