"""The DaemonSet that brings the node daemon to every node (DMN-5, DMN-6). Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.manager.installation.rbac import DAEMON

PORT = 10221
SOCKETS, MOUNTED_AT = "/var/run", "/hostvarrun"
NOBODY, SOCKET_GROUP = 65532, 0
"""Container runtimes make their sockets for user and group root. A member of the group may speak to them without being
root."""
_LABELS = {"control-plane": "daemon"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DaemonImage:
    """What is known of the daemon only where it is deployed."""

    image: str
    socket_directory: str = SOCKETS
    """Of the node: where its container runtimes have their sockets."""
    feature_gates: str = ""
    """The manager's."""


def daemon_set(daemon: DaemonImage, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": DAEMON, "namespace": namespace, "labels": dict(_LABELS)},
        "spec": {
            "selector": {"matchLabels": dict(_LABELS)},
            "minReadySeconds": 3,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": dict(_LABELS)}, "spec": _pod(daemon)},
        },
    }


def _pod(daemon: DaemonImage) -> dict[str, Any]:
    virtual = {"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]}
    terms = [{"matchExpressions": [virtual]}]
    return {
        "serviceAccountName": DAEMON,
        # Probes by TCP and HTTP go to addresses of pods, from the node.
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 10,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": SOCKET_GROUP,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(daemon)],
        "volumes": [
            {"name": "runtime-sockets", "hostPath": {"path": daemon.socket_directory, "type": "Directory"}},
        ],
    }


def _container(daemon: DaemonImage) -> dict[str, Any]:
    gates = [f"--feature-gates={daemon.feature_gates}"] if daemon.feature_gates else []
    return {
        "name": "daemon",
        "image": daemon.image,
        "command": ["kruise", "daemon"],
        "args": [f"--addr=:{PORT}", f"--socket-dir={MOUNTED_AT}", *gates],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "ports": [{"name": "health", "containerPort": PORT, "protocol": "TCP"}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": PORT},
            "initialDelaySeconds": 60,
            "periodSeconds": 10,
        },
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "runtime-sockets", "mountPath": MOUNTED_AT, "readOnly": True}],
    }
