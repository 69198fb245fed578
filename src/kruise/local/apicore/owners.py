"""The seam for field ownership: where `metadata.managedFields` come from and where they are kept.

In stored objects they are a value of their own (`Owners`) that is written out only when the object is. The functions
that make, check and convert objects never see it: it is taken off before them and put on again after.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kruise.local.apicore.errors import Json
from kruise.machinery.codec import Deferred

if TYPE_CHECKING:
    from kruise.local.apicore.conversions import Convert
    from kruise.local.apicore.core import Call

__all__ = ["FieldTracker", "Json", "Owners", "asked", "bare", "held", "owned", "plain", "shown"]

FIELD = "managedFields"


class Owners(Deferred):
    """The owners of one version of an object. Making them may be put off until somebody looks."""

    __slots__ = ()

    @property
    @abc.abstractmethod
    def is_empty(self) -> bool: ...

    @abc.abstractmethod
    def listed(self) -> list[Json]:
        """As plain JSON."""


class FieldTracker(Protocol):
    """Who keeps count of owners. `asked` is what the request itself says of them, None where it says nothing."""

    def created(self, call: Call, sent: Json, asked: Sequence[Any] | None) -> Owners: ...

    def changed(self, call: Call, held: Any, before: Json, after: Json, asked: Sequence[Any] | None) -> Owners: ...

    def settle(self, held: Any, convert: Convert) -> None:
        """Work out what takes conversions, so that it can be read without any."""

    def agree(self, held: Any, other: Any) -> bool:
        """Whether two states of an object have the same owners, but for times."""


def held(obj: Json) -> Any:
    """The owners in a stored object: `Owners`, a plain list where it was imported, or None."""
    return obj["metadata"].get(FIELD)


def asked(obj: Json) -> Sequence[Any] | None:
    """What a sent object says of its owners."""
    metadata = obj.get("metadata")
    value = metadata.get(FIELD) if isinstance(metadata, dict) else None
    return value if isinstance(value, list) else None


def bare(obj: Json) -> Json:
    """The object without its owners."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or FIELD not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != FIELD}}


def owned(obj: Json, owners: Any) -> Json:
    """The object with these owners."""
    return obj if owners is None else {**obj, "metadata": {**obj["metadata"], FIELD: owners}}


def plain(obj: Json) -> Json:
    """The object with its owners written out, for patches that change them."""
    value = held(obj)
    return owned(obj, value.listed()) if isinstance(value, Owners) else obj


def shown(obj: Json, *, owners: bool) -> Json:
    """An object as an answer has it: with its owners where they are wanted and there are any."""
    metadata = obj.get("metadata")
    value = metadata.get(FIELD) if isinstance(metadata, dict) else None
    if value is None or (owners and not (isinstance(value, Owners) and value.is_empty)):
        return obj
    return bare(obj)
