"""What a UnitedDeployment gets where its author was silent (UD-20 to UD-22), in both versions. Pure.

`replicas` stays absent: then the subsets say how many there are. Only the templates of Kubernetes' own StatefulSets are
filled in; those of other kinds are when the children are made.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.uniteddeployment import MANUAL
from kruise.api.core.defaults import default_claim, default_workload_template
from kruise.spread.uniteddeployment.paths import STATEFUL_SPEC
from kruise.workloads.shared.defaults import Gates, Json, fill, fill_empty, spec_of

_SIZES = ("minReplicas", "maxReplicas")


def defaulted(body: Json, *, version: str, gates: Gates, old: Json | None = None) -> dict[str, Any]:
    """The UnitedDeployment with its defaults. `old` is what it replaces; None for a new one.

    Raises TemplateTypeError where the template cannot be read.
    """
    spec = dict(body.get("spec") or {})
    fill(spec, {"revisionHistoryLimit": 10})
    strategy = dict(spec.get("updateStrategy") or {})
    fill_empty(strategy, {"type": MANUAL})
    if strategy["type"] == MANUAL:
        fill(strategy, {"manualUpdate": {}})
    spec["updateStrategy"] = strategy
    if not gates.get("TemplateNoDefaults", False) and spec.get("template") != spec_of(old).get("template"):
        _fill_stateful(spec)
    _fill_minimums(spec)
    return {**body, "spec": spec}


def _fill_stateful(spec: dict[str, Any]) -> None:
    """UD-21."""
    template = spec.get("template")
    holder = template.get("statefulSetTemplate") if isinstance(template, dict) else None
    inner = holder.get("spec") if isinstance(holder, dict) else None
    if not isinstance(template, dict) or not isinstance(holder, dict) or not isinstance(inner, dict):
        return
    filled = dict(inner)
    filled["template"] = default_workload_template(inner.get("template"), path=STATEFUL_SPEC.child("template"))
    if claims := inner.get("volumeClaimTemplates"):
        filled["volumeClaimTemplates"] = [default_claim(claim) for claim in claims]
    spec["template"] = {**template, "statefulSetTemplate": {**holder, "spec": filled}}


def _fill_minimums(spec: dict[str, Any]) -> None:
    """UD-22."""
    topology = spec.get("topology")
    subsets = topology.get("subsets") if isinstance(topology, dict) else None
    if not isinstance(topology, dict) or not isinstance(subsets, list):
        return
    known = [subset for subset in subsets if isinstance(subset, dict)]
    has_limits = any(subset.get(name) is not None for subset in known for name in _SIZES)
    if not has_limits or any(subset.get("replicas") is not None for subset in known):
        return
    filled = [
        {**subset, "minReplicas": 0} if isinstance(subset, dict) and subset.get("minReplicas") is None else subset
        for subset in subsets
    ]
    spec["topology"] = {**topology, "subsets": filled}
