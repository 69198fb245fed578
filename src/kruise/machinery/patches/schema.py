"""How strategic merge patches learn what a field means: the published API's merge strategies and merge keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Protocol

MERGE = "merge"
REPLACE = "replace"
RETAIN_KEYS = "retainKeys"


@dataclasses.dataclass(frozen=True, slots=True)
class FieldRule:
    """How one field is patched."""

    strategies: frozenset[str] = frozenset()
    """Of `merge`, `replace`, `retainKeys`. Without a strategy objects are merged and lists are replaced."""
    merge_key: str = ""
    """For lists of objects that are merged: the member that tells the elements apart."""
    child: MergeSchema | None = None
    """The fields below: of the object, or of the elements of the list. None where nothing below has rules."""
    is_list: bool = False


class MergeSchema(Protocol):
    """The fields of one object type."""

    def field(self, name: str) -> FieldRule | None:
        """The rule for a member, None for a member that is not known."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fields:
    """A merge schema spelled out in full."""

    rules: Mapping[str, FieldRule]

    def field(self, name: str) -> FieldRule | None:
        return self.rules.get(name)
