"""What the API server does to a new pod between admission and validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.core import pod_resources, schema, values
from kruise.api.core.values import Value

APP_ARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def prepare_new_pod(pod: Mapping[str, Any], *, now: str) -> Value:
    """A pod with its defaults, made ready to be stored: first generation, status of its own, selectors completed.

    `now` is the time of the request as text. The pod is not changed.
    """
    result = values.normalise(pod, schema.POD, form=values.SERVER_FORM)
    meta, spec = result["metadata"], result["spec"]
    meta["generation"] = 1
    status: Value = {"phase": "Pending", "qosClass": pod_resources.qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [{**_GATED, "lastTransitionTime": now}]
    _merge_label_keys(spec, meta.get("labels") or {})
    _app_armor_fields(spec, meta.get("annotations") or {})
    return values.normalise({**result, "status": status}, schema.POD, form=values.SERVER_FORM)


def _merge_label_keys(spec: Value, labels: Mapping[str, str]) -> None:
    """Label keys to match become part of the selectors, with the values that the pod has now."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        _select(constraint, "matchLabelKeys", "In", labels)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        weighted = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        required = terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for term in (*(preference["podAffinityTerm"] for preference in weighted), *required):
            _select(term, "matchLabelKeys", "In", labels)
            _select(term, "mismatchLabelKeys", "NotIn", labels)


def _select(holder: Value, field: str, operator: str, labels: Mapping[str, str]) -> None:
    selector = holder.get("labelSelector")
    if selector is None:
        return
    for key in holder.get(field) or ():
        if key in labels:
            wanted = {"key": key, "operator": operator, "values": [labels[key]]}
            selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), wanted]


def _app_armor_fields(spec: Value, annotations: Mapping[str, str]) -> None:
    """Profiles that are given by annotation, the old way, are copied to where they belong now."""
    if (spec.get("os") or {}).get("name") == "windows":
        return
    of_pod = spec["securityContext"].get("appArmorProfile") if spec.get("securityContext") else None
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            annotation = annotations.get(APP_ARMOR_PREFIX + container["name"])
            context = container.get("securityContext") or {}
            if annotation is None or context.get("appArmorProfile") is not None:
                continue
            profile = _app_armor_profile(annotation)
            if profile is not None and profile != of_pod:
                container["securityContext"] = {**context, "appArmorProfile": profile}


def _app_armor_profile(annotation: str) -> Value | None:
    if annotation in ("unconfined", "runtime/default"):
        return {"type": "Unconfined" if annotation == "unconfined" else "RuntimeDefault"}
    name = annotation.removeprefix("localhost/")
    if name == annotation or not name.strip() or name.strip() != name:
        return None
    return {"type": "Localhost", "localhostProfile": name}
