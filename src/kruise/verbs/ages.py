"""How long ago something was, in the two or three figures that kubectl shows."""

from __future__ import annotations

from datetime import datetime

_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def age(since: datetime | None, now: datetime) -> str:
    """Two units where the larger one is small, one otherwise: 45s, 3m20s, 5h, 2d3h, 40d."""
    if since is None:
        return "<unknown>"
    seconds = max(int((now - since).total_seconds()), 0)
    if seconds < 120:
        return f"{seconds}s"
    for (unit, size), (small_unit, small_size), few in zip(_UNITS, _UNITS[1:], (8, 8, 10), strict=False):
        # Hours are told from three on: before that, minutes say more.
        least = 3 * size if unit == "h" else 2 * size
        if seconds >= least:
            count, rest = divmod(seconds, size)
            behind = rest // small_size
            return f"{count}{unit}{behind}{small_unit}" if count < few and behind else f"{count}{unit}"
    return f"{seconds}s"
