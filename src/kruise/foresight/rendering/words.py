"""Small texts that all renderings share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from kruise.machinery.wording import listed

NAMES_SHOWN = 5


def duration(seconds: float) -> str:
    """`45s`, `1m20s`, `2h5m`, `3d4h`: whole seconds, and two units at most. What is forecast is no more exact."""
    whole = max(round(seconds), 0)
    parts = (whole // 86400, "d"), (whole % 86400 // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s")
    first = next((index for index, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [f"{count}{unit}" for count, unit in parts[first : first + 2] if count]
    return "".join(shown) or "0s"


def names_text(names: Sequence[str], *, shown: int | None = NAMES_SHOWN) -> str:
    """`a, b, c and 7 more`. `shown` None: all of them."""
    return listed(names, len(names) if shown is None else shown)


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """So much of a bar is filled, and a limit stands on one of its cells; -1: none."""

    filled: int
    width: int
    limit: int = -1


def bar(count: int, total: int, limit: int | None, width: int) -> Bar:
    """The limit stands on the last cell that must be filled, so a bar that ends in front of it is too short."""
    most = max(total, count, 1)
    # Only what is whole counts as filled: a bar must not look better than it is.
    filled = count * width // most
    mark = -1 if not limit else min(max(-(-limit * width // most) - 1, 0), width - 1)
    if limit and count >= limit:
        filled = max(filled, mark + 1)
    return Bar(filled, width, mark)
