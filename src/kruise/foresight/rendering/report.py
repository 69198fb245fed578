"""What is shown: a forecast, and what is to be said about how it came about."""

from __future__ import annotations

import dataclasses
import enum

from kruise.faces.outlook import Outlook
from kruise.foresight.forecast import Forecast, Move
from kruise.foresight.whose import Share


class Drift(enum.StrEnum):
    """How an object differs from what the forecast was made of."""

    CHANGED = "changed"
    APPEARED = "appeared"
    GONE = "gone"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """An object that changed in the cluster while the forecast was made."""

    object: str
    """As kubectl names it: `pod/web-x7k2p`, `cloneset.apps.kruise.io/web`."""
    how: Drift


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    subject: str
    """As kubectl names it: `cloneset.apps.kruise.io/web`."""
    forecast: Forecast
    pods: frozenset[str]
    """The names of the pods that exist. Another pod in the forecast is one that is yet to come."""
    shares: tuple[Share, ...] = ()
    """Whose pods these are, where the object only puts something into the pods of others."""
    is_new: bool = False
    """The object does not exist yet: the forecast is about its creation."""
    notes: tuple[str, ...] = ()
    """What could not be read, and what that means."""
    drifted: tuple[Drifted, ...] = ()

    def exists(self, move: Move) -> bool:
        return move.pod in self.pods


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """An object that does not roll out, and what it will do next."""

    subject: str
    kind: str
    namespace: str
    name: str
    outlook: Outlook
    warnings: tuple[str, ...] = ()
    """What an API server would show with its answer."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """An object for which there is no forecast, since the change would be refused or something cannot be read."""

    subject: str
    kind: str
    namespace: str
    name: str
    error: str
