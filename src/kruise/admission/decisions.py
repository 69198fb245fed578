"""What an admission handler may see and say, as values. Handlers are pure: no await, no clock, no log.

A handler is asked with the request and a view. Instead of an answer it may say that it needs objects read live
(`NeedsReads`) or guarded writes carried out (`NeedsWrites`). The server does that and asks again with what came out,
until there is an answer or the time is over:

    decide(request, view)  ->  NeedsWrites(book a slot)     view.outcomes is empty
    decide(request, view)  ->  Change(pod with the slot)    view.outcomes: done
                           or  NeedsWrites(other slot)      view.outcomes: moved; view.latest() gives fresh data

An object that hundreds of requests change at once, such as a ledger of places, is not written by each of them: they ask
with `NeedsBooking`, and all that wait at a time share one write.

On a dry run nothing is written: every action comes back as skipped, and the handler answers as if it had succeeded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from kruise.admission.review import AdmissionRequest
from kruise.api.meta import Object
from kruise.api.resource import Resource
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.plan import Action, EventNote, Outcome, Target

if TYPE_CHECKING:
    from kruise.admission.coming import Expected
    from kruise.machinery.store import Store

T = TypeVar("T", bound=Object)

NO_ANNOTATIONS: Mapping[str, str] = {}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    warnings: tuple[str, ...] = ()
    """Shown to the client by kubectl."""
    audit_annotations: Mapping[str, str] = dataclasses.field(default_factory=lambda: NO_ANNOTATIONS)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Allow(_Answer):
    """Go ahead, unchanged."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Change(_Answer):
    """Go ahead with this object. The server sends the difference to what it received, or nothing if there is none."""

    object: Mapping[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """A refusal that is counted and kept in the protection log (DP-30, PUB-92, PUB-93)."""

    event: str
    kind: str
    namespace: str
    name: str
    counter: str
    labels: Mapping[str, str]
    """Of the counter, beside `username`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PublicNote:
    """An event about a refusal, and who it is from."""

    component: str
    event: EventNote


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deny(_Answer):
    """A refusal by policy (PW-4)."""

    message: str
    code: int = 403
    reason: str = "Forbidden"
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0
    """With code 429: when to try again, as `kubectl drain` does."""
    record: Protected | None = None
    note: PublicNote | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Invalid(_Answer):
    """Fields are wrong: 422 with one cause for each."""

    causes: tuple[StatusCause, ...]

    def __post_init__(self) -> None:
        if not self.causes:
            raise ValueError("an Invalid answer needs at least one cause: say Allow where nothing is wrong")


@dataclasses.dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind, in one namespace or in all."""

    resource: Resource[Any]
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.resource} in {self.namespace}" if self.namespace else f"{self.resource} in all namespaces"


@dataclasses.dataclass(frozen=True, slots=True)
class Trial:
    """A creation that is only tried (`dryRun=All`): what is read is None, or a `Failure`."""

    resource: Resource[Any]
    namespace: str
    body: bytes

    def __str__(self) -> str:
        return f"a trial {self.resource.kind} in {self.namespace}"


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """Stands for what could not be read, or booked."""

    code: int
    reason: str
    message: str


Read = Target | Listing | Trial


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NeedsReads:
    """Read these from the API server, then ask again: `view.live(target)` has them. What cannot be read ends the
    request with an error, unless it `may_fail`: then a `Failure` stands in its place."""

    targets: tuple[Read, ...]
    may_fail: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NeedsWrites:
    """Carry these out in order, stop at the first that does not succeed, then ask again with `view.outcomes`."""

    actions: tuple[Action, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Booking:
    """What became of an object, and what to tell whoever asked."""

    object: Any
    """The same one: nothing has to be written."""
    result: Any
    is_sure: bool = True
    """False: true only of the newest object. Unless this one is it, that is read, and asked about again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NeedsBooking:
    """Change an object together with all who want to do so at this moment, then ask again: `view.booked(target)` has
    the result, which is true of the object as it was written.

    `book` may be called several times, since others may be faster, and finds its own entry then: a write whose answer
    was lost may have been done.
    """

    target: Target
    book: Callable[[Any, datetime], Booking]
    """From the object (None: there is none) to the next one. Pure."""
    write: Callable[[Any, Any], Action]
    """The guarded write from the object as it was to the one that all have changed."""
    may_fail: bool = False
    """What could not be written, or not in time, does not end the request: a `Failure` stands for the result."""


Needs = NeedsReads | NeedsWrites | NeedsBooking
Mutation = Allow | Change | Deny | Invalid | Needs
Verdict = Allow | Deny | Invalid | Needs
Answer = Allow | Change | Deny | Invalid


_A = TypeVar("_A", bound=_Answer)


def with_notes(answer: _A, warnings: tuple[str, ...], audit: Mapping[str, str]) -> _A:
    """The answer of a chain, with what its steps had to say beside theirs."""
    return dataclasses.replace(answer, warnings=warnings, audit_annotations=audit)


def verdict_of(causes: Iterable[StatusCause], *, warnings: Iterable[str] = ()) -> Allow | Invalid:
    """Allow if nothing was found wrong, Invalid with everything that was."""
    found = tuple(causes)
    return Invalid(causes=found, warnings=tuple(warnings)) if found else Allow(warnings=tuple(warnings))


def gate_is_off(gate: str, *, needed: str = "") -> Deny:
    """The refusal of a kind whose gate is off. `needed`: the gate to turn on, where that is another one."""
    remedy = f"start the manager with --feature-gates={needed or gate}=true"
    return Deny(message=f"feature-gate {gate} is not enabled: {remedy}")


def _no_store(resource: Resource[T]) -> Store[T]:
    raise LookupError(f"there is no store of {resource} here: this server has no stores")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandlerView:
    """Everything beside the request that a decision may depend on."""

    now: datetime
    seed: int
    """The same for every round of a request, another for each request: for names."""
    gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    server_version: Any = None
    stores: Callable[[Resource[Any]], Store[Any]] = _no_store
    coming: Callable[[Resource[Any]], tuple[Expected, ...]] = lambda resource: ()
    """Objects of a kind that were let pass a moment ago, and that the store may not show yet: whoever they may concern
    has them read."""
    outcomes: tuple[Outcome, ...] = ()
    """Of all writes for this request so far, in order: steps of a chain find theirs by target."""
    reads: Mapping[Read, Any] = dataclasses.field(default_factory=dict)
    bookings: Mapping[Target, Any] = dataclasses.field(default_factory=dict)
    """Results of what was asked for with `NeedsBooking`."""
    last_try: bool = False
    """After this round there is no time, or no try, for further reads or writes."""

    def store(self, resource: Resource[T]) -> Store[T]:
        return self.stores(resource)

    def was_read(self, target: Read) -> bool:
        return target in self.reads

    def live(self, target: Read) -> Any:
        """The object as it was read for this request; None if it does not exist. Of a listing, all its objects."""
        return self.reads[target]

    def booked(self, target: Target) -> Any:
        """The result of a booking; None where there was none."""
        return self.bookings.get(target)

    def latest(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """The object as read for this request, else as the store has it."""
        target = Target(resource, namespace, name)
        if target in self.reads:
            found: T | None = self.reads[target]
            return found
        return self.store(resource).get(namespace, name)


Decide = Callable[[AdmissionRequest, HandlerView], Mutation]
Judge = Callable[[AdmissionRequest, HandlerView], Verdict]
