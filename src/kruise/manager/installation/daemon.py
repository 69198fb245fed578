"""The DaemonSet that brings the node daemon to every node (DMN-5, DMN-6). Pure."""

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
from kruise.manager.installation.rbac import DAEMON
from kruise.manager.installation.templating import IsSet, Value, When, text

MOUNTED_AT = "/hostvarrun"
PLUGINS_AT = "/kruise/plugins"
PLUGIN_CONFIG_AT = "/kruise/config"
PLUGIN_CONFIG_FILE = "CredentialProviderPlugin.yaml"
NOBODY, SOCKET_GROUP = 65532, 0
"""Container runtimes make their sockets for user and group root. A member of the group may speak to them without being
root."""
LABELS = {"control-plane": "daemon"}
_HAS_PLUGINS = IsSet("daemon.credentialProvider.enable")


def daemon_set(version: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": DAEMON, "namespace": NAMESPACE, "labels": dict(LABELS)},
        "spec": {
            "selector": {"matchLabels": dict(LABELS)},
            "minReadySeconds": 3,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
            "template": {"metadata": {"labels": dict(LABELS)}, "spec": _pod(version)},
        },
    }


def _pod(version: str) -> dict[str, Any]:
    return {
        "serviceAccountName": DAEMON,
        "imagePullSecrets": if_set("imagePullSecrets"),
        "priorityClassName": if_set("daemon.priorityClassName"),
        # Probes by TCP and HTTP go to addresses of pods, from the node.
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 10,
        "nodeSelector": if_set("daemon.nodeSelector"),
        "affinity": if_set("daemon.affinity"),
        "securityContext": unprivileged_pod(NOBODY, SOCKET_GROUP),
        "containers": [_container(version)],
        "volumes": [
            {"name": "runtime-sockets", "hostPath": {"path": Value("daemon.socketLocation"), "type": "Directory"}},
            When(
                _HAS_PLUGINS,
                [
                    {"name": "plugin-config", "configMap": {"name": Value("daemon.credentialProvider.configmap")}},
                    {"name": "plugins", "hostPath": {"path": Value("daemon.credentialProvider.hostPath")}},
                ],
            ),
            When(
                IsSet("daemon.credentialProvider.awsCredentialsDir"),
                {"name": "aws", "hostPath": {"path": Value("daemon.credentialProvider.awsCredentialsDir")}},
            ),
        ],
    }


def _container(version: str) -> dict[str, Any]:
    return {
        "name": "daemon",
        **image_fields(version),
        "command": ["kruise", "daemon"],
        "args": [
            text("--addr=:", Value("daemon.port")),
            f"--socket-dir={MOUNTED_AT}",
            text("--max-workers-for-pull-image=", Value("daemon.maxWorkersForPullImage")),
            text("--v=", Value("daemon.log.level")),
            When(IsSet("daemon.socketFile"), text("--socket-file=", Value("daemon.socketFile"))),
            When(IsSet("featureGates"), text("--feature-gates=", Value("featureGates"))),
            When(
                _HAS_PLUGINS,
                [
                    f"--plugin-config-file={PLUGIN_CONFIG_AT}/{PLUGIN_CONFIG_FILE}",
                    f"--plugin-bin-dir={PLUGINS_AT}",
                ],
            ),
        ],
        "env": [
            env_of_field("NODE_NAME", "spec.nodeName"),
            When(IsSet("daemon.extraEnvs"), Value("daemon.extraEnvs")),
        ],
        "ports": [{"name": "health", "containerPort": Value("daemon.port"), "protocol": "TCP"}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": Value("daemon.port")},
            "initialDelaySeconds": 60,
            "periodSeconds": 10,
        },
        "resources": Value("daemon.resources"),
        "securityContext": unprivileged_container(),
        "volumeMounts": [
            {"name": "runtime-sockets", "mountPath": MOUNTED_AT, "readOnly": True},
            When(
                _HAS_PLUGINS,
                [
                    {"name": "plugin-config", "mountPath": PLUGIN_CONFIG_AT, "readOnly": True},
                    {"name": "plugins", "mountPath": PLUGINS_AT, "readOnly": True},
                ],
            ),
            When(
                IsSet("daemon.credentialProvider.awsCredentialsDir"),
                {"name": "aws", "mountPath": "/root/.aws", "readOnly": True},
            ),
        ],
    }
