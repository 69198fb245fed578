"""How long ago the times in an object were."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.local.apicore.errors import Json
from kruise.machinery.ages import UNKNOWN, human_duration
from kruise.machinery.times import parse_time


def since(time: Any, now: datetime) -> str:
    return human_duration((now - parse_time(time)).total_seconds()) if time else UNKNOWN


def age(obj: Json, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)
