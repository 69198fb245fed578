"""The CloneSet that does what a Deployment does (KK-4). Pure."""

from __future__ import annotations

from kruise.machinery.documents import Json, value_at

_COPIED = ("selector", "template", "revisionHistoryLimit", "minReadySeconds")
_LIMITS = ("maxUnavailable", "maxSurge")


def spec_from(deployment: Json) -> Json:
    """Without its replicas: those say how many pods have been moved."""
    rolling: Json = {"podUpdatePolicy": "ReCreate"}
    if deployment.get("paused"):
        rolling["paused"] = True
    limits = value_at(deployment, ("strategy", "rollingUpdate"), {})
    rolling |= {field: limits[field] for field in _LIMITS if field in limits}
    return {
        **{field: deployment[field] for field in _COPIED if field in deployment},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
