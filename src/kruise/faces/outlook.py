"""What a kind that has no rollout will do next, for `kruise plan`: a few facts and a table. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.api.resource import Resource
from kruise.machinery.documents import Json


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was read for it."""

    now: datetime
    zone: str = "UTC"
    """Of this process."""
    objects: Mapping[Resource[Any], Sequence[Any]] = dataclasses.field(default_factory=dict)
    """Of the kinds that were asked for: all that are in no namespace, else those that the object controls, or all
    of its namespace."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    facts: tuple[tuple[str, str], ...]
    """Each with its title."""
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OutlookFacts:
    reads: Callable[[Json], tuple[Resource[Any], ...]]
    """The kinds whose objects it looks at."""
    is_selecting: bool = False
    """It works with objects of others: all of its namespace are read, and what the object itself is by now."""
    outlook: Callable[[Json, Seen], Outlook]
    """Raises ValueError, in words for people, where the object can do nothing."""
