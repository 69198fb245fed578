"""What an advanced DaemonSet gets where its author was silent (DS-13 to DS-15), in both versions. Pure.

The template is left as its author wrote it: the API server fills it in when pods are made.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.daemonset import STANDARD
from kruise.api.apps.daemonset_v1alpha1 import SURGING
from kruise.api.apps.shared import ROLLING_UPDATE
from kruise.api.versions import OLDER
from kruise.workloads.daemonset.numbers import DEFAULT_BURST
from kruise.workloads.shared.defaults import Gates, Json, fill, fill_empty, keep_same_template


def defaulted(daemonset: Json, *, version: str, gates: Gates, old: Json | None = None) -> dict[str, Any]:
    """The DaemonSet with its defaults. `old` is what it replaces; None for a new one.

    Raises TemplateTypeError where the template cannot be read.
    """
    spec = dict(daemonset.get("spec") or {})
    # An empty template, for validation to say what it lacks.
    fill(spec, {"burstReplicas": DEFAULT_BURST, "revisionHistoryLimit": 10, "template": {}})
    spec["updateStrategy"] = _strategy(dict(spec.get("updateStrategy") or {}), version)
    keep_same_template(spec, old)
    return {**daemonset, "spec": spec}


def _strategy(strategy: dict[str, Any], version: str) -> dict[str, Any]:
    fill_empty(strategy, {"type": ROLLING_UPDATE})
    if strategy["type"] != ROLLING_UPDATE:
        return strategy
    rolling = dict(strategy.get("rollingUpdate") or {})
    if version == OLDER and rolling.get("rollingUpdateType") == SURGING:
        fill(rolling, {"maxSurge": 1, "maxUnavailable": 0})
        rolling["rollingUpdateType"] = STANDARD
    fill_empty(rolling, {"rollingUpdateType": STANDARD})
    if rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        fill(rolling, {"maxUnavailable": 1, "maxSurge": 0})
    strategy["rollingUpdate"] = rolling
    return strategy
