"""CloneSet between `v1alpha1` and `v1beta1` (CS-20 to CS-23, IPU-155).

The versions differ in four places:

| v1alpha1 | v1beta1 |
|---|---|
| flat `updateStrategy`, whose `type` is the policy | `updateStrategy.rollingUpdate`, beside `type` |
| `scaleStrategy.disablePVCReuse` | `scaleStrategy.enablePVCReuse`, the opposite |
| label `cloneset-scaling-exclude-preparing-delete` | `scaleStrategy.excludePreparingDelete` |
| annotations `image-predownload-*` | fields of `inPlaceUpdateStrategy` |

An object that cannot be converted cannot be read, so conversion never fails on what it finds: a part of a wrong type
stays where it is, for validation to name it. Labels and annotations are never taken away, only written.
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

Json = dict[str, Any]

EXCLUDE_PREPARING_DELETE_LABEL = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

PRE_DOWNLOAD_ANNOTATIONS = {
    "imagePreDownloadParallelism": PREDOWNLOAD_PARALLELISM,
    "imagePreDownloadTimeoutSeconds": PREDOWNLOAD_TIMEOUT,
    "imagePreDownloadMinUpdatedReadyPods": PREDOWNLOAD_MIN_READY,
}
"""The carriers in v1alpha1 of these fields of `inPlaceUpdateStrategy`."""

_INTEGER = re.compile(r"\+?[0-9]{1,18}", re.ASCII)


def convert(obj: Json, version: str) -> Json:
    """The CloneSet in that version. The argument is left as it is; the result shares parts with it."""
    _, _, present = str(obj.get("apiVersion", "")).rpartition("/")
    if version not in ("v1alpha1", "v1beta1"):
        raise ValueError(f"CloneSet has no version {version}: it is served in v1alpha1 and v1beta1")
    if present == version:
        return obj
    result = {**obj, "apiVersion": f"{GROUP}/{version}"}
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return result
    metadata = _mapping(obj.get("metadata"))
    if version == "v1beta1":
        labels, annotations = _mapping(metadata.get("labels")), _mapping(metadata.get("annotations"))
        result["spec"] = _put(
            spec,
            scaleStrategy=_scale_to_beta(spec.get("scaleStrategy"), labels),
            updateStrategy=_update_to_beta(spec.get("updateStrategy"), annotations),
        )
        return result
    update, annotations = _update_to_alpha(spec.get("updateStrategy"))
    result["spec"] = _put(spec, scaleStrategy=_scale_to_alpha(spec.get("scaleStrategy")), updateStrategy=update)
    if annotations:
        result["metadata"] = {
            **metadata,
            "annotations": {**_mapping(metadata.get("annotations")), **annotations},
        }
    return result


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
    if labels.get(EXCLUDE_PREPARING_DELETE_LABEL) == "true":
        result["excludePreparingDelete"] = True
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
        rolling = _put(rolling, inPlaceUpdateStrategy=_in_place_to_beta(in_place, annotations))
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
    flat = {**others, **rolling} if isinstance(rolling, dict) else _put(others, rollingUpdate=rolling)
    policy = flat.pop("podUpdatePolicy", None)
    flat["type"] = ON_DELETE if kind == ON_DELETE else policy if policy in POD_UPDATE_POLICIES else RE_CREATE
    in_place = flat.get("inPlaceUpdateStrategy")
    if not isinstance(in_place, dict):
        return flat, {}
    # An empty one stays, too (not CS-22): else every write through v1alpha1 would add it and raise the generation.
    kept, annotations = _in_place_to_alpha(in_place)
    return _put(flat, inPlaceUpdateStrategy=kept), annotations


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


# Small parts


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _put(parent: Json, **parts: Any) -> Json:
    """The object with these parts; None takes a part away."""
    return {**{name: value for name, value in parent.items() if name not in parts}, **_present(parts)}


def _present(parts: Json) -> Json:
    return {name: value for name, value in parts.items() if value is not None}
