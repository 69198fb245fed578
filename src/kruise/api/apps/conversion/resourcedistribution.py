"""ResourceDistribution between `v1alpha1` and `v1beta1` (RD-4).

| v1alpha1 | v1beta1 |
|---|---|
| `spec.targets.namespaceLabelSelector` | `spec.targets.namespaceSelector` |
| `status.conditions[].failedNamespace` | `status.conditions[].failedNamespaces` |

`spec.resource` goes through as it is: the hash on copies is made of it.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions

_SELECTOR = ("namespaceLabelSelector", "namespaceSelector")
_FAILED = ("failedNamespace", "failedNamespaces")


def _renamed(value: Any, old: str, new: str) -> Any:
    """The object with one member called otherwise, in its place."""
    if not isinstance(value, dict) or old not in value:
        return value
    return {new if name == old else name: item for name, item in value.items()}


def _converted(obj: Json, selector: tuple[str, str], failed: tuple[str, str]) -> Json:
    result = dict(obj)
    spec, status = obj.get("spec"), obj.get("status")
    if isinstance(spec, dict) and "targets" in spec:
        result["spec"] = {**spec, "targets": _renamed(spec["targets"], *selector)}
    if isinstance(status, dict) and isinstance(status.get("conditions"), list):
        result["status"] = {**status, "conditions": [_renamed(item, *failed) for item in status["conditions"]]}
    return result


def _to_beta(obj: Json) -> Json:
    return _converted(obj, _SELECTOR, _FAILED)


def _to_alpha(obj: Json) -> Json:
    return _converted(obj, (_SELECTOR[1], _SELECTOR[0]), (_FAILED[1], _FAILED[0]))


convert = TwoVersions(group=GROUP, kind="ResourceDistribution", up=_to_beta, down=_to_alpha)
