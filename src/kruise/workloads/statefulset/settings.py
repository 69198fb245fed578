"""Strategy and limits of a StatefulSet, each with a title, as `kruise describe rollout` shows them."""

from __future__ import annotations

from kruise.api.apps.shared import RE_CREATE
from kruise.api.apps.statefulset import ORDERED_READY, StatefulSetSpec
from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json
from kruise.machinery.intorpercent import IntOrPercent
from kruise.workloads.statefulset.limits import limits_of, strategy_of


def settings(document: Json) -> list[Setting]:
    spec = codec.convert(document["spec"], StatefulSetSpec)
    limits, rolling = limits_of(spec), strategy_of(spec)
    update = f"{spec.update_strategy.type or 'RollingUpdate'}, {rolling.pod_update_policy or RE_CREATE}"
    found: list[Setting] = [
        ("Order", spec.pod_management_policy or ORDERED_READY),
        ("Strategy", update + (", unordered" if limits.is_unordered else "")),
        ("Partition", _meant(rolling.partition, limits.partition)),
        ("Max Unavailable", _meant(rolling.max_unavailable, limits.max_unavailable)),
    ]
    if limits.scale_max_unavailable is not None and spec.scale_strategy is not None:
        scale = _meant(spec.scale_strategy.max_unavailable, limits.scale_max_unavailable)
        found.append(("Max Unavailable When Scaled", scale))
    if spec.reserve_ordinals:
        found.append(("Reserved Ordinals", ", ".join(map(str, spec.reserve_ordinals))))
    return found


def _meant(value: IntOrPercent | None, count: int) -> str:
    return str(count) if value is None or str(value) == str(count) else f"{value} ({count} pods)"
