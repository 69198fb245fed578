"""How long something took or how long ago it was, in the two or three figures that Kubernetes shows to people."""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
UNKNOWN = "<unknown>"


def human_duration(seconds: float) -> str:
    """A duration with less precision the longer it is: 45s, 3m20s, 5h, 2d3h, 40d."""
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


def age(since: datetime | None, now: datetime) -> str:
    """How long ago a moment was. One that has not come yet, by the clock of another machine, is now."""
    return UNKNOWN if since is None else human_duration(max((now - since).total_seconds(), 0.0))
