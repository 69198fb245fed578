"""How long ago something was, in the two or three figures that Kubernetes shows to people."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.local.apicore.errors import Json
from kruise.machinery.times import parse_time

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
UNKNOWN = "<unknown>"


def human_duration(seconds: float) -> str:
    """A duration with less precision the longer it is."""
    # Clocks differ a little: up to two seconds in the future count as now.
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // _MINUTE, whole // _HOUR, whole // _DAY
    if minutes < 10:
        return _two(minutes, "m", whole % _MINUTE, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def since(time: Any, now: datetime) -> str:
    """How long ago a time in an object was."""
    return human_duration((now - parse_time(time)).total_seconds()) if time else UNKNOWN


def age(obj: Json, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)
