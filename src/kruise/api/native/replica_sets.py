"""The Deployment behind the pods of a ReplicaSet, as far as names tell. Pure."""

from __future__ import annotations

from kruise.api.meta import controller_of
from kruise.api.native.pod import Pod

TEMPLATE_HASH = "pod-template-hash"


def deployment_of(pod: Pod) -> str:
    """Its name; empty: the pod belongs to none. A Deployment calls its ReplicaSets after itself and the hash that their
    pods bear."""
    owner, hashed = controller_of(pod), pod.metadata.labels.get(TEMPLATE_HASH)
    if owner is None or not hashed or (owner.api_version.rpartition("/")[0], owner.kind) != ("apps", "ReplicaSet"):
        return ""
    suffix = f"-{hashed}"
    return owner.name.removesuffix(suffix) if owner.name.endswith(suffix) else ""
