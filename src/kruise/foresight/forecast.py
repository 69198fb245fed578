"""A rollout as it is expected to go: the value that the command line shows as a table, as JSON and as Markdown."""

from __future__ import annotations

import dataclasses
import enum

from kruise.machinery.causes import Meaning


class How(enum.StrEnum):
    """What happens to a pod."""

    IN_PLACE = "in-place"
    RECREATE = "recreate"
    """The pod goes, and another one with the wanted revision comes."""
    CREATE = "create"
    DELETE = "delete"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One pod beginning to change. A pod that is rebuilt has one move, its successor has none of its own."""

    pod: str
    """A pod that is yet to come has a name that will be another in reality: only its number counts."""
    how: How
    at: float
    """Seconds from the moment of the change."""
    why: str = ""
    """Why in place or not, in words: `image of app changes`, `/spec/containers/0/args cannot change in place`."""
    revision: str = ""
    """Where it goes."""
    until_available: float | None = None
    """Seconds from `at` until the pod or its successor serves; None: it does not within the time looked at."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Moves that begin together: nobody among them waits for another to become available."""

    number: int
    begins: float
    moves: tuple[Move, ...]
    fewest_available: int
    """The fewest pods that served from its begin to the begin of the next."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A point where the rollout does not go on by itself."""

    meaning: Meaning
    """As in the causes of a plan: partition, paused, hook, in-place-only, max-unavailable, ..."""
    at: float
    message: str
    remedy: str = ""
    pods: tuple[str, ...] = ()
    is_last: bool = True
    """False: the forecast goes on as if somebody had answered (a hook), and says so."""

    @property
    def code(self) -> str:
        return self.meaning.code


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Staying:
    """A pod that is not where it should be in the end, and why."""

    pod: str
    revision: str
    meaning: Meaning
    message: str
    remedy: str = ""

    @property
    def code(self) -> str:
        return self.meaning.code


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Warning:
    """Something a person should know before making the change."""

    code: str
    """`in-place-only`, `deadlock`, `rounding`, `budget`, `history`, `recreate`, ..."""
    message: str
    remedy: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A field that the change sets, with its values as JSON text; empty: not there."""

    path: str
    before: str
    after: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    kind: str
    namespace: str
    name: str
    changes: tuple[FieldChange, ...]
    """Of the object itself, after defaulting."""
    from_revision: str
    to_revision: str
    waves: tuple[Wave, ...]
    stops: tuple[Stop, ...]
    staying: tuple[Staying, ...]
    warnings: tuple[Warning, ...]
    assumptions: tuple[str, ...]
    """What was taken for granted: the times, pods that are down now stay down, hooks are answered."""
    replicas: int
    available_before: int
    fewest_available: int
    fewest_allowed: int | None
    """What the limits promise; None: the kind promises nothing."""
    most_pods: int
    most_allowed: int | None
    """The surge's peak, and its limit."""
    available_after: int
    by_revision: dict[str, int]
    """Pods at each revision in the end."""
    seconds: float | None
    """How long it takes until the last stop or the end; None: it never gets there within the time looked at."""
    is_complete: bool
    """Every pod is where the change wants it."""
    parts: tuple[str, ...] = ()
    """Of a workload that makes others: what each of its parts gets, and why."""
    part: str = "Subset"
    """What a part is called."""
    is_cut: bool = False
    """There was more to come than the forecast looked at."""

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for wave in self.waves for move in wave.moves)
