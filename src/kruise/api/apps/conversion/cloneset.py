"""CloneSet between `v1alpha1` and `v1beta1` (CS-20 to CS-23, IPU-155).

The versions differ in four places:

| v1alpha1 | v1beta1 |
|---|---|
| flat `updateStrategy`, whose `type` is the policy | `updateStrategy.rollingUpdate`, beside `type` |
| `scaleStrategy.disablePVCReuse` | `scaleStrategy.enablePVCReuse`, the opposite |
| label `cloneset-scaling-exclude-preparing-delete` | `scaleStrategy.excludePreparingDelete` |
| annotations `image-predownload-*` | fields of `inPlaceUpdateStrategy` |

A part of a wrong type stays where it is, for validation to name it. Labels and annotations are never taken away, only
written. `kruise.api.versions` keeps what is lost here on the way to v1alpha1.
"""

from __future__ import annotations

import re
from typing import Any

from kruise.api.apps.shared import (
    GROUP,
    ON_DELETE,
    POD_UPDATE_POLICIES,
    PREDOWNLOAD_MIN_READY,
    PREDOWNLOAD_PARALLELISM,
    PREDOWNLOAD_TIMEOUT,
    RE_CREATE,
)
from kruise.api.core.formats import MAX_INT32
from kruise.api.versions import Json, TwoVersions, mapping, put, with_annotations

EXCLUDE_PREPARING_DELETE_LABEL = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

PRE_DOWNLOAD_ANNOTATIONS = {
    "imagePreDownloadParallelism": PREDOWNLOAD_PARALLELISM,
    "imagePreDownloadTimeoutSeconds": PREDOWNLOAD_TIMEOUT,
    "imagePreDownloadMinUpdatedReadyPods": PREDOWNLOAD_MIN_READY,
}
"""The carriers in v1alpha1 of these fields of `inPlaceUpdateStrategy`."""

_INTEGER = re.compile(r"\+?[0-9]{1,18}", re.ASCII)


def _to_beta(obj: Json) -> Json:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    metadata = mapping(obj.get("metadata"))
    labels, annotations = mapping(metadata.get("labels")), mapping(metadata.get("annotations"))
    converted = put(
        spec,
        scaleStrategy=_scale_to_beta(spec.get("scaleStrategy"), labels),
        updateStrategy=_update_to_beta(spec.get("updateStrategy"), annotations),
    )
    return {**obj, "spec": converted}


def _to_alpha(obj: Json) -> Json:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    update, annotations = _update_to_alpha(spec.get("updateStrategy"))
    converted = put(spec, scaleStrategy=_scale_to_alpha(spec.get("scaleStrategy")), updateStrategy=update)
    return {**with_annotations(obj, annotations), "spec": converted}


# Scale strategy


def _scale_to_beta(scale: Any, labels: Json) -> Any:
    if scale is not None and not isinstance(scale, dict):
        return scale
    result = dict(scale or {})
    disabled = result.pop("disablePVCReuse", None)
    if disabled is None or isinstance(disabled, bool):
        result["enablePVCReuse"] = not disabled
    else:
        result["enablePVCReuse"] = disabled
    result.pop("excludePreparingDelete", None)
    if EXCLUDE_PREPARING_DELETE_LABEL in labels:
        result["excludePreparingDelete"] = labels[EXCLUDE_PREPARING_DELETE_LABEL] == "true"
    return result


def _scale_to_alpha(scale: Any) -> Any:
    """Reuse is off in v1beta1 unless it is switched on, and on in v1alpha1 unless it is switched off."""
    if scale is not None and not isinstance(scale, dict):
        return scale
    result = dict(scale or {})
    enabled = result.pop("enablePVCReuse", None)
    result.pop("excludePreparingDelete", None)
    result.pop("disablePVCReuse", None)
    if enabled is not None and not isinstance(enabled, bool):
        result["disablePVCReuse"] = enabled
    elif not enabled:
        result["disablePVCReuse"] = True
    return result


# Update strategy


def _update_to_beta(update: Any, annotations: Json) -> Any:
    if update is not None and not isinstance(update, dict):
        return update
    rolling = dict(update or {})
    policy = rolling.pop("type", None)
    if policy == ON_DELETE:
        return {"type": ON_DELETE}
    rolling["podUpdatePolicy"] = policy if policy in POD_UPDATE_POLICIES else RE_CREATE
    in_place = rolling.get("inPlaceUpdateStrategy")
    if in_place is None or isinstance(in_place, dict):
        rolling = put(rolling, inPlaceUpdateStrategy=_in_place_to_beta(in_place, annotations))
    return {"type": "RollingUpdate", "rollingUpdate": rolling}


def _in_place_to_beta(strategy: Json | None, annotations: Json) -> Json | None:
    """Of v1alpha1 the annotations count, not the fields. What v1beta1 would refuse in the fields, such as a percentage,
    remains in the annotations alone: as a field it would stand in the way of every later write."""
    told = {
        name: value
        for name, key in PRE_DOWNLOAD_ANNOTATIONS.items()
        if (value := _number(annotations.get(key))) is not None
    }
    if strategy is None:
        return told or None
    return {**{name: value for name, value in strategy.items() if name not in PRE_DOWNLOAD_ANNOTATIONS}, **told}


def _number(text: Any) -> int | None:
    if not isinstance(text, str) or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number <= MAX_INT32 else None


def _update_to_alpha(update: Any) -> tuple[Any, dict[str, str]]:
    """The flat strategy, and the annotations that carry what it has no fields for."""
    if update is not None and not isinstance(update, dict):
        return update, {}
    others = dict(update or {})
    kind = others.pop("type", None)
    rolling = others.pop("rollingUpdate", None)
    flat = {**others, **rolling} if isinstance(rolling, dict) else put(others, rollingUpdate=rolling)
    policy = flat.pop("podUpdatePolicy", None)
    flat["type"] = ON_DELETE if kind == ON_DELETE else policy if policy in POD_UPDATE_POLICIES else RE_CREATE
    in_place = flat.get("inPlaceUpdateStrategy")
    if not isinstance(in_place, dict):
        return flat, {}
    # An empty one stays, too (not CS-22): else every write through v1alpha1 would add it and raise the generation.
    kept, annotations = _in_place_to_alpha(in_place)
    return put(flat, inPlaceUpdateStrategy=kept), annotations


def _in_place_to_alpha(strategy: Json) -> tuple[Json, dict[str, str]]:
    annotations = {
        key: str(value)
        for name, key in PRE_DOWNLOAD_ANNOTATIONS.items()
        if isinstance(value := strategy.get(name), int | str) and not isinstance(value, bool)
    }
    kept = {
        name: value
        for name, value in strategy.items()
        if name not in PRE_DOWNLOAD_ANNOTATIONS
        or (value is not None and PRE_DOWNLOAD_ANNOTATIONS[name] not in annotations)
    }
    return kept, annotations


convert = TwoVersions(group=GROUP, kind="CloneSet", up=_to_beta, down=_to_alpha)
