"""The enhanced liveness probe: the pod chain keeps liveness probes from the kubelet (ELP-1 to ELP-3, PW-27). Pure.

A probe by gRPC stays with the kubelet: the daemon has no way to run it, and a container without any would never be
restarted.
"""

from __future__ import annotations

from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change
from kruise.api.apps.probes import ENHANCED_LIVENESS, LIVENESS_PROBES
from kruise.api.apps.shared import GROUP
from kruise.machinery.codec import encode


def move_liveness_probes(pod: dict[str, Any], context: StepContext) -> Change | None:
    """The pod without liveness probes, and with what they were in an annotation."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or not _asks(metadata):
        return None
    containers = spec.get("containers")
    if not isinstance(containers, list):
        return None
    moved = [
        {"name": one.get("name", ""), "livenessProbe": one["livenessProbe"]} for one in containers if _is_moved(one)
    ]
    if not moved:
        return None
    left = [
        {name: value for name, value in one.items() if name != "livenessProbe"} if _is_moved(one) else one
        for one in containers
    ]
    annotations = {**(metadata.get("annotations") or {}), LIVENESS_PROBES: encode(moved).decode()}
    return Change(
        object={**pod, "metadata": {**metadata, "annotations": annotations}, "spec": {**spec, "containers": left}}
    )


def _is_moved(container: Any) -> bool:
    probe = container.get("livenessProbe") if isinstance(container, dict) else None
    return bool(probe) and not (isinstance(probe, dict) and probe.get("grpc"))


def _asks(metadata: dict[str, Any]) -> bool:
    annotations, owners = metadata.get("annotations"), metadata.get("ownerReferences")
    if not isinstance(annotations, dict) or not isinstance(owners, list):
        return False
    return annotations.get(ENHANCED_LIVENESS) == "true" and any(
        isinstance(owner, dict)
        and owner.get("controller") is True
        and str(owner.get("apiVersion", "")).rpartition("/")[0] == GROUP
        for owner in owners
    )
