"""Strategy and limits of a DaemonSet, each with a title, as `kruise describe rollout` shows them."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.daemonset import STANDARD, DaemonSetSpec
from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json, value_at


def settings(document: Json) -> list[Setting]:
    spec = codec.convert(document["spec"], DaemonSetSpec)
    strategy = spec.update_strategy
    rolling = strategy.rolling_update
    how = (rolling.rolling_update_type if rolling is not None else "") or STANDARD
    found = [("Strategy", f"{strategy.type or 'RollingUpdate'}, {how}")]
    if rolling is not None:
        found += [
            ("Partition", _text(rolling.partition, "0")),
            ("Max Unavailable", _text(rolling.max_unavailable, "1" if rolling.max_surge is None else "0")),
            ("Max Surge", _text(rolling.max_surge, "0")),
        ]
        if rolling.selector is not None:
            found.append(("Node Selector", codec.encode(value_at(document, _SELECTOR, {})).decode()))
    if spec.lifecycle is not None:
        hooks = value_at(document, ("spec", "lifecycle"), {})
        found.append(("Hooks", ", ".join(sorted(hooks)) or "none"))
    return found


_SELECTOR = ("spec", "updateStrategy", "rollingUpdate", "selector")


def _text(value: Any, default: str) -> str:
    return default if value is None else str(value)
