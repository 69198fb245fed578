"""What an advanced StatefulSet gets where its author was silent (ST-23 to ST-27), in both versions. Pure.

Fields that v1alpha1 does not have get no default there: what a controller does in their absence is the same.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.shared import ON_DELETE, RE_CREATE, ROLLING_UPDATE
from kruise.api.apps.statefulset import ORDERED_READY, RETAIN
from kruise.api.versions import NEWER
from kruise.workloads.shared.defaults import Gates, Json, default_templates, fill, fill_empty, spec_of
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE

_RETENTION, _GROWTH = "persistentVolumeClaimRetentionPolicy", "volumeClaimUpdateStrategy"


def defaulted(statefulset: Json, *, version: str, gates: Gates, old: Json | None = None) -> dict[str, Any]:
    """The StatefulSet with its defaults. `old` is what it replaces; None for a new one.

    Raises TemplateTypeError where the template or a claim template cannot be read.
    """
    spec = dict(statefulset.get("spec") or {})
    fill_empty(spec, {"podManagementPolicy": ORDERED_READY})
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10})
    spec["updateStrategy"] = _strategy(dict(spec.get("updateStrategy") or {}))
    if version == NEWER:
        _newer(spec, None if old is None else spec_of(old), gates)
    default_templates(spec, old, gates)
    return {**statefulset, "spec": spec}


def _strategy(strategy: dict[str, Any]) -> dict[str, Any]:
    fill_empty(strategy, {"type": ROLLING_UPDATE})
    if strategy["type"] == ROLLING_UPDATE:
        rolling = dict(strategy.get("rollingUpdate") or {})
        fill(rolling, {"partition": 0, "maxUnavailable": 1, "minReadySeconds": 0})
        fill_empty(rolling, {"podUpdatePolicy": RE_CREATE})
        strategy["rollingUpdate"] = rolling
    return strategy


def _newer(spec: dict[str, Any], old: Json | None, gates: Gates) -> None:
    """An object that came through v1alpha1 has none of these. They are not added by a later write about something else:
    that would raise the generation, and their absence means the same (ST-27)."""

    def is_silent(name: str) -> bool:
        return old is not None and old.get(name) is None and spec.get(name) is None

    if gates.get("StatefulSetAutoDeletePVC", True) and not is_silent(_RETENTION):
        retention = dict(spec.get(_RETENTION) or {})
        fill_empty(retention, {"whenDeleted": RETAIN, "whenScaled": RETAIN})
        spec[_RETENTION] = retention
    if not is_silent(_GROWTH):
        growth = dict(spec.get(_GROWTH) or {})
        if gates.get(GROWTH_GATE, False):
            fill_empty(growth, {"type": ON_DELETE})
        spec[_GROWTH] = growth
    if spec.get("ordinals") is not None:
        spec["ordinals"] = {"start": 0, **spec["ordinals"]}
