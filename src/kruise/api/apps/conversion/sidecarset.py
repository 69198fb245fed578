"""SidecarSet between `v1alpha1` and `v1beta1` (SCS-1 to SCS-4).

| v1alpha1 | v1beta1 |
|---|---|
| `spec.namespace: ns` | `spec.namespaceSelector` that asks for the name of the namespace |
| label `apps.kruise.io/sidecarset-custom-version` | `spec.customVersion` |

A namespace is never written back: it reads as the selector that it became.
"""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping, put

CUSTOM_VERSION = "apps.kruise.io/sidecarset-custom-version"
NAMESPACE_NAME = "kubernetes.io/metadata.name"


def _to_beta(obj: Json) -> Json:
    metadata = mapping(obj.get("metadata"))
    labels = mapping(metadata.get("labels"))
    result, spec = obj, obj.get("spec")
    if isinstance(spec, dict):
        namespace = spec.get("namespace")
        spec = put(spec, namespace=None)
        if isinstance(namespace, str) and namespace:
            spec = put(spec, namespaceSelector={"matchLabels": {NAMESPACE_NAME: namespace}})
    if CUSTOM_VERSION in labels:
        others = {key: value for key, value in labels.items() if key != CUSTOM_VERSION}
        result = {**obj, "metadata": put(metadata, labels=others or None)}
        if isinstance(labels[CUSTOM_VERSION], str) and labels[CUSTOM_VERSION]:
            spec = put(mapping(spec), customVersion=labels[CUSTOM_VERSION])
    return {**result, "spec": spec} if "spec" in result or spec else result


def _to_alpha(obj: Json) -> Json:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    tag = spec.get("customVersion")
    result = {**obj, "spec": put(spec, customVersion=None)}
    if not isinstance(tag, str) or not tag:
        return result
    metadata = mapping(obj.get("metadata"))
    return {**result, "metadata": {**metadata, "labels": {**mapping(metadata.get("labels")), CUSTOM_VERSION: tag}}}


convert = TwoVersions(group=GROUP, kind="SidecarSet", up=_to_beta, down=_to_alpha)
