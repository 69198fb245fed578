"""Strategy and limits of a CloneSet, each with a title, as `kruise describe rollout` shows them."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.cloneset import CloneSetSpec
from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json, value_at
from kruise.machinery.wording import plural
from kruise.workloads.cloneset.numbers import DEFAULT_MAX_UNAVAILABLE, limits_of


def settings(document: Json) -> list[Setting]:
    spec = codec.convert(document["spec"], CloneSetSpec)
    limits, strategy = limits_of(spec), spec.update_strategy
    rolling = strategy.rolling_update
    policy = (rolling.pod_update_policy if rolling is not None else "") or "ReCreate"
    found = [
        ("Strategy", f"{strategy.type or 'RollingUpdate'}, {policy}"),
        ("Partition", _meant(rolling.partition if rolling is not None else None, limits.partition, "0")),
        (
            "Max Unavailable",
            _meant(
                rolling.max_unavailable if rolling is not None else None,
                limits.max_unavailable,
                DEFAULT_MAX_UNAVAILABLE,
            ),
        ),
        ("Max Surge", _meant(rolling.max_surge if rolling is not None else None, limits.max_surge, "0")),
    ]
    grace = rolling.in_place_update_strategy if rolling is not None else None
    if grace is not None and grace.grace_period_seconds:
        found.append(("In-Place Grace", f"{grace.grace_period_seconds}s"))
    if spec.lifecycle is not None:
        hooks = value_at(document, ("spec", "lifecycle"), {})
        found.append(("Hooks", ", ".join(sorted(hooks)) or "none"))
    return found


def _meant(value: Any, count: int, default: str) -> str:
    text = default if value is None else str(value)
    return text if text == str(count) else f"{text} ({plural(count, 'pod')})"
