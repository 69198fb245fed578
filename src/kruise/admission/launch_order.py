"""In which order somebody asks for containers to start: one annotation, one environment variable (CLP-1, CLP-5). Pure.

Pods are ordered by it, and templates that no pod can be made of are told of it.
"""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]

ANNOTATION = "apps.kruise.io/container-launch-priority"
ORDERED = "Ordered"
"""The one value that the annotation has a meaning with."""
PRIORITY_ENV = "KRUISE_CONTAINER_PRIORITY"
MOST = 2**31 - 1
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


class PriorityError(ValueError):
    """What a container asks for is no priority; the text says why, behind the path of its value."""


def variables_of(container: Any) -> list[Json]:
    found = container.get("env") if isinstance(container, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def asked_priority(container: Json) -> int:
    """Higher ones start first. Raises PriorityError, for which a pod is refused."""
    told = [item for item in variables_of(container) if item.get("name") == PRIORITY_ENV]
    if not told:
        return 0
    value = told[-1].get("value")
    text = value if isinstance(value, str) else ""
    if _INTEGER.fullmatch(text) is None or abs(int(text)) > MOST:
        given = f'"{text}"' if text else "no value of its own"
        raise PriorityError(
            f"env[{PRIORITY_ENV}].value: must be an integer from -{MOST} to {MOST} written as text, and has {given}"
        )
    return int(text)
