"""The time zone of this process."""

from __future__ import annotations

import os
from pathlib import Path

_LINK = Path("/etc/localtime")
_FOLDER = "/zoneinfo/"


def local_zone() -> str:
    """By its IANA name: what `TZ` names, what the system is set to, or UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if not name:
        target = os.path.realpath(_LINK)
        name = target.partition(_FOLDER)[2] if _FOLDER in target else ""
    return name or "UTC"
