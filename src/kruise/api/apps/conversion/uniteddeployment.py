"""UnitedDeployment between `v1alpha1` and `v1beta1` (UD-3 to UD-5).

| v1alpha1 | v1beta1 |
|---|---|
| `status.updateStatus.updatedRevision` | `status.updatedRevision` |
| `status.updateStatus.currentPartitions` | `status.subsetStatuses[].partition` |
| `status.subsetReplicas` | `status.subsetStatuses[].allocatedReplicas`, or `replicas` where both are the same |

The specs are the same. A `cloneSetTemplate` that is written as CloneSets of `v1alpha1` are, with a flat update
strategy, becomes one of `v1beta1`; what both ways say counts as the flat one has it, since no stored object has that.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.shared import GROUP, POD_UPDATE_POLICIES
from kruise.api.versions import Json, TwoVersions, mapping, put

_ROLLING = frozenset(
    (
        "partition",
        "maxUnavailable",
        "maxSurge",
        "paused",
        "priorityStrategy",
        "scatterStrategy",
        "inPlaceUpdateStrategy",
        "podUpdatePolicy",
    )
)


def _to_beta(obj: Json) -> Json:
    result = obj
    if isinstance(obj.get("spec"), dict):
        result = {**result, "spec": _with_newer_clones(obj["spec"])}
    status = obj.get("status")
    if isinstance(status, dict):
        result = {**result, "status": _status_to_beta(status)}
    return result


def _with_newer_clones(spec: Json) -> Json:
    template = mapping(spec.get("template"))
    newer = newer_template(template)
    return spec if newer == template else {**spec, "template": newer}


def newer_template(template: Json) -> Json:
    """The template with CloneSets as `v1beta1` has them."""
    clones = template.get("cloneSetTemplate")
    inner = mapping(clones).get("spec")
    if not isinstance(inner, dict):
        return template
    newer = put(
        inner,
        updateStrategy=_newer_strategy(inner.get("updateStrategy")),
        scaleStrategy=_newer_scaling(inner.get("scaleStrategy")),
    )
    return {**template, "cloneSetTemplate": {**mapping(clones), "spec": newer}}


def _newer_strategy(strategy: Any) -> Any:
    if not isinstance(strategy, dict):
        return strategy
    policy = strategy.get("type")
    flat = {name: value for name, value in strategy.items() if name in _ROLLING}
    if policy not in POD_UPDATE_POLICIES and not flat:
        return strategy
    others = {name: value for name, value in strategy.items() if name not in _ROLLING}
    rolling = {**mapping(strategy.get("rollingUpdate")), **flat}
    if policy in POD_UPDATE_POLICIES:
        rolling["podUpdatePolicy"] = policy
        others["type"] = "RollingUpdate"
    return {**others, "rollingUpdate": rolling}


def _newer_scaling(scaling: Any) -> Any:
    if not isinstance(scaling, dict) or not isinstance(scaling.get("disablePVCReuse"), bool):
        return scaling
    return put(scaling, disablePVCReuse=None, enablePVCReuse=not scaling["disablePVCReuse"])


def _status_to_beta(status: Json) -> Json:
    updating = mapping(status.get("updateStatus"))
    subsets = {
        str(one.get("name", "")): dict(one) for one in status.get("subsetStatuses") or () if isinstance(one, dict)
    }
    for name, wanted in mapping(status.get("subsetReplicas")).items():
        one = subsets.setdefault(name, {"name": name})
        one["replicas" if one.get("allocatedReplicas") is None else "allocatedReplicas"] = wanted
    for name, partition in mapping(updating.get("currentPartitions")).items():
        subsets.setdefault(name, {"name": name})["partition"] = partition
    return put(
        status,
        subsetReplicas=None,
        updateStatus=None,
        updatedRevision=updating.get("updatedRevision") or None,
        subsetStatuses=list(subsets.values()) or None,
    )


def _to_alpha(obj: Json) -> Json:
    status = obj.get("status")
    if not isinstance(status, dict):
        return obj
    subsets = [one for one in status.get("subsetStatuses") or () if isinstance(one, dict)]
    named = {str(one["name"]): one for one in subsets if one.get("name")}
    revision = status.get("updatedRevision") or ""
    updating: Json | None = None
    if revision or subsets:
        updating = {
            "updatedRevision": revision,
            "currentPartitions": {name: one.get("partition") or 0 for name, one in named.items()},
        }
        updating = {name: value for name, value in updating.items() if value}
    wanted = {name: _allocated(one) for name, one in named.items()}
    return {**obj, "status": put(status, updatedRevision=None, subsetReplicas=wanted or None, updateStatus=updating)}


def _allocated(subset: Json) -> Any:
    wanted = subset.get("allocatedReplicas")
    return (subset.get("replicas") or 0) if wanted is None else wanted


convert = TwoVersions(group=GROUP, kind="UnitedDeployment", up=_to_beta, down=_to_alpha)
