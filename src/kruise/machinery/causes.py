"""Why an object is held back: a part of a plan that readers need without the rest of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One link in the chain of causes that holds an object back."""

    code: str
    """Stable, for programs: `partition`, `max-unavailable`, `budget`, `hook`, ..."""
    message: str
    """For people."""
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    remedy: str = ""
