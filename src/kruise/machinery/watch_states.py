"""The states of a watch, and what leads from one to the next. Pure: `kruise.machinery.watch` does what they say.

    LIST ──listed──> WATCH ──ended, torn, refused──> WATCH again, from the last version
      ^                │
      └── expired, missing, unreadable, out of order, asked for ──┘

Every way back has a delay that doubles as long as nothing works, so a server in trouble is not made worse. What counts
as working is a watch that stood for a while, or delivered something and goes on where it stopped. A list alone does
not count: a server that lists well and answers every watch with 410 would be listed without end and without pause.
"""

from __future__ import annotations

import dataclasses
import enum

from kruise.machinery.client.errors import (
    ApiError,
    BadAnswerError,
    BadRequestError,
    GoneError,
    NotFoundError,
    TransportError,
)
from kruise.machinery.codec import DecodeError
from kruise.machinery.store import StaleListError, VersionError


class LateEventError(Exception):
    """An event came too late to be placed: the store could not tell it from a repetition."""


class Task(enum.StrEnum):
    LIST = "list"
    WATCH = "watch"


class Cause(enum.StrEnum):
    """Why a task ended: a label of metrics and logs."""

    LISTED = "listed"
    ENDED = "ended"
    """The server closed the watch in order."""
    ASKED = "asked"
    """Someone wants a fresh list."""
    TORN = "torn"
    """No answer, or the connection tore."""
    EXPIRED = "expired"
    """410: the version or the continue token is too old."""
    MISSING = "missing"
    """404: the kind is not installed."""
    INVALID = "invalid"
    """400: the server cannot make sense of what we ask, a version among it."""
    REFUSED = "refused"
    """Another error of the server."""
    AHEAD = "ahead"
    """The server does not know our version yet, or any more."""
    UNREADABLE = "unreadable"
    """An answer that makes no sense: an object of another kind, malformed JSON, a version that is no number."""
    DISORDER = "disorder"
    """An event came too late to be placed."""
    STALE = "stale"
    """A list older than what the watch delivered."""
    FAULT = "fault"
    """An error of our own."""


@dataclasses.dataclass(frozen=True, slots=True)
class Ending:
    """How a task ended."""

    cause: Cause
    message: str = ""
    lived: float = 0.0
    """How long a watch stood, in seconds."""
    delivered: bool = False
    """The watch brought events."""
    retry_after: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    first: float = 0.2
    most: float = 30.0
    most_missing: float = 10.0
    """Someone who has just installed the CRD is watching."""
    steady: float = 5.0
    """A watch that stood so long has worked."""
    refusals: int = 8
    """So many stale lists in a row, about half a minute, are no accident."""

    def delay(self, failures: int, jitter: float, most: float) -> float:
        """`jitter` in [0, 1) spreads many watches that lost the same server over the second half of the delay."""
        doubled = self.first * 2.0 ** min(failures - 1, 16)
        return min(doubled, most) * (0.5 + jitter / 2)


DEFAULT_BACKOFF = Backoff()


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    task: Task = Task.LIST
    delay: float = 0.0
    """To wait before the task begins."""
    failures: int = 0
    """Since something worked."""
    expired_lists: int = 0
    stale_lists: int = 0
    trouble: str = ""
    """What is wrong, for people; empty while all is well."""
    missing: bool = False
    """The server does not know the kind."""
    history_lost: bool = False
    """The server's versions went back for good: it was restored from a backup, or another stands in its place. Our
    store tells of a past that never was. Taking the older list would break every promise about versions that readers
    rely on, and a server that merely lags would look the same at first; so the list is refused for as long as this
    process runs, while this flag lets the process say that it must be started anew."""

    @property
    def whole_list(self) -> bool:
        """Pages expire before the last one is read: ask for everything at once."""
        return self.expired_lists >= 2


_GO_ON = frozenset({Cause.ENDED, Cause.TORN, Cause.REFUSED})
"""After these a watch is resumed from the last version; after all others it takes a list."""


def opened(state: State) -> State:
    """The server accepted the watch. Whether it works is still to be seen, so the failures stay."""
    return dataclasses.replace(state, trouble="") if state.trouble else state


def advance(state: State, ending: Ending, *, jitter: float, backoff: Backoff) -> State:
    """The next state after a task has ended."""
    if ending.cause is Cause.LISTED:
        return State(Task.WATCH, failures=state.failures)
    goes_on = ending.cause in _GO_ON
    worked = ending.lived >= backoff.steady or (ending.delivered and goes_on)
    task = state.task if goes_on else Task.LIST
    if ending.cause is Cause.ASKED:
        return dataclasses.replace(state, task=task, delay=0.0, failures=0 if worked else state.failures)
    if ending.cause is Cause.ENDED and worked:
        return State(task)
    failures = 1 if worked else state.failures + 1
    stale_lists = state.stale_lists + 1 if ending.cause is Cause.STALE else state.stale_lists
    missing = ending.cause is Cause.MISSING
    delay = backoff.delay(failures, jitter, backoff.most_missing if missing else backoff.most)
    if ending.cause is Cause.EXPIRED and failures == 1:
        delay = 0.0  # a version that grew old while all was well: nothing is wrong with the server
    return State(
        task,
        delay=max(delay, ending.retry_after),
        failures=failures,
        expired_lists=state.expired_lists + (state.task is Task.LIST and ending.cause is Cause.EXPIRED),
        stale_lists=stale_lists,
        trouble=ending.message,
        missing=missing,
        history_lost=stale_lists >= backoff.refusals,
    )


def ending_of(error: Exception, resource: object, *, lived: float = 0.0, delivered: bool = False) -> Ending:
    """What an exception means. An unknown one is a fault of ours, and listing anew heals whatever it left undone."""
    cause, message = _read(error, resource)
    retry_after = error.retry_after or 0.0 if isinstance(error, ApiError) else 0.0
    return Ending(cause, message, lived, delivered, retry_after)


def _read(error: Exception, resource: object) -> tuple[Cause, str]:
    message = str(error) or type(error).__name__
    match error:
        case StaleListError():
            return Cause.STALE, f"{message}: the API server lags behind, was restored from a backup or was replaced"
        case LateEventError():
            return Cause.DISORDER, message
        case BadAnswerError() | DecodeError() | VersionError():
            return Cause.UNREADABLE, f"the server's answer about {resource} cannot be read: {message}"
        case TransportError():
            return Cause.TORN, message
        case GoneError():
            return Cause.EXPIRED, message
        case NotFoundError():
            return Cause.MISSING, f"{resource} is not installed in this cluster ({message})"
        case BadRequestError():
            return Cause.INVALID, message
        case ApiError() if any(cause.reason == "ResourceVersionTooLarge" for cause in error.causes):
            return Cause.AHEAD, message
        case ApiError():
            return Cause.REFUSED, message
        case _:
            return Cause.FAULT, f"{type(error).__name__}: {message}"
