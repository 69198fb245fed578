"""How many pods of a BroadcastJob may run at a time (BJ-60 to BJ-64). Pure."""

from __future__ import annotations

import dataclasses
import re

from kruise.api.apps.shared import IntOrPercent

UNLIMITED = 2147483647
"""What admission writes where no limit is given."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Limit:
    pods: int
    problem: str = ""
    """Why it cannot be read; then no pod is made."""


def limit_of(parallelism: IntOrPercent | None, desired: int) -> Limit:
    if parallelism is None:
        return Limit(UNLIMITED)
    if isinstance(parallelism, int):
        return Limit(parallelism)
    # A text is a percentage, with or without its sign (BJ-63).
    number = parallelism.replace("%", "")
    if _INTEGER.fullmatch(number) is None:
        return Limit(0, f'"{parallelism}" is neither a number nor a percentage')
    return Limit(-(-int(number) * desired // 100))
