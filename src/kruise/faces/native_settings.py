"""Strategy and limits of Kubernetes' own kinds, each with a title."""

from __future__ import annotations

from typing import Any

from kruise.faces.face import Setting
from kruise.machinery.documents import Json, value_at
from kruise.machinery.intorpercent import IntOrPercentError, scaled
from kruise.machinery.wording import plural


def deployment(document: Json) -> list[Setting]:
    replicas = value_at(document, ("spec", "replicas"), 1)
    strategy = value_at(document, ("spec", "strategy"), {})
    if strategy.get("type") == "Recreate":
        return [("Strategy", "Recreate")]
    rolling = strategy.get("rollingUpdate") or {}
    return [
        ("Strategy", "RollingUpdate"),
        ("Max Unavailable", _share(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)),
        ("Max Surge", _share(rolling.get("maxSurge", "25%"), replicas, round_up=True)),
    ]


def job(document: Json) -> list[Setting]:
    spec = value_at(document, ("spec",), {})
    return [
        ("Completions", str(spec.get("completions", 1))),
        ("Parallelism", str(spec.get("parallelism", 1))),
        ("Backoff Limit", str(spec.get("backoffLimit", 6))),
    ]


def stateful_set(document: Json) -> list[Setting]:
    strategy = value_at(document, ("spec", "updateStrategy"), {})
    rolling = strategy.get("rollingUpdate") or {}
    return [
        ("Strategy", str(strategy.get("type", "RollingUpdate"))),
        ("Partition", str(rolling.get("partition", 0))),
        ("Max Unavailable", str(rolling.get("maxUnavailable", 1))),
    ]


def daemon_set(document: Json) -> list[Setting]:
    strategy = value_at(document, ("spec", "updateStrategy"), {})
    rolling = strategy.get("rollingUpdate") or {}
    wanted = value_at(document, ("status", "desiredNumberScheduled"), 0)
    return [
        ("Strategy", str(strategy.get("type", "RollingUpdate"))),
        ("Max Unavailable", _share(rolling.get("maxUnavailable", 1), wanted, round_up=True)),
        ("Max Surge", _share(rolling.get("maxSurge", 0), wanted, round_up=True)),
    ]


def _share(value: Any, total: int, *, round_up: bool) -> str:
    try:
        count = scaled(value, total, round_up=round_up)
    except IntOrPercentError:
        return str(value)
    return str(value) if str(value) == str(count) else f"{value} ({plural(count, 'pod')})"
