"""What stands before `helm uninstall`: a Job that fails while there are objects of ours (MGR-62). Helm would delete
their definitions, and with these all objects and the pods that they own. Pure.

Only the chart has it. It is there for as long as Helm runs it, and runs the manager's image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.manager.installation import manager, rbac
from kruise.manager.installation.pods import (
    NAMESPACE,
    if_set,
    image_fields,
    unprivileged_container,
    unprivileged_pod,
)
from kruise.manager.installation.templating import Value, text

Manifest = dict[str, Any]

ACCOUNT = "kruise-helm-hook"
RELEASE = "open-release"
"""Stands for the name of the release, which only Helm knows."""
_RIGHTS_FIRST, _THEN = "-5", "0"


def manifests(version: str, definitions: Sequence[Mapping[str, Any]]) -> list[Manifest]:
    found = [*rbac.hook_manifests(ACCOUNT, NAMESPACE, definitions), _job(version)]
    return [_hooked(manifest) for manifest in found]


def _hooked(manifest: Manifest) -> Manifest:
    annotations = {
        "helm.sh/hook": "pre-delete",
        "helm.sh/hook-weight": _THEN if manifest["kind"] == "Job" else _RIGHTS_FIRST,
        # One that failed stays: its log says what there still is.
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    }
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def _job(version: str) -> Manifest:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{RELEASE}-finalizer", "namespace": NAMESPACE},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    "imagePullSecrets": if_set("imagePullSecrets"),
                    "nodeSelector": if_set("manager.nodeSelector"),
                    "tolerations": if_set("manager.tolerations"),
                    "restartPolicy": "Never",
                    "securityContext": unprivileged_pod(manager.NOBODY, manager.NOBODY),
                    "containers": [
                        {
                            "name": "finalizer",
                            **image_fields(version),
                            "command": ["kruise", "uninstall", "--check"],
                            "args": [text("--namespace=", Value("installation.namespace"))],
                            "securityContext": unprivileged_container(),
                        }
                    ],
                }
            },
        },
    }
