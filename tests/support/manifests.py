"""Workloads as users write them down, for tests that talk to a cluster."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS


def cloneset_manifest(name: str, **rolling: Any) -> dict[str, Any]:
    """Three pods that are updated in place, one after the other. `rolling` are fields of `rollingUpdate`."""
    labels = {"app": name}
    strategy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1, **rolling}}
    return {
        "apiVersion": CLONE_SETS.api_version,
        "kind": CLONE_SETS.kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            "updateStrategy": strategy,
        },
    }
