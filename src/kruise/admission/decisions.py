"""What an admission handler may see and say, as values. Handlers are pure: no await, no clock, no log.

A handler is asked with the request and a view. Instead of an answer it may say that it needs objects read live
(`NeedsReads`) or guarded writes carried out (`NeedsWrites`). The server does that and asks again with what came out,
until there is an answer or the time is over:

    decide(request, view)  ->  NeedsWrites(book a slot)     view.outcomes is empty
    decide(request, view)  ->  Change(pod with the slot)    view.outcomes: done
                           or  NeedsWrites(other slot)      view.outcomes: moved; view.latest() gives fresh data

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
from kruise.machinery.plan import Action, Outcome, Target

if TYPE_CHECKING:
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
class Deny(_Answer):
    """A refusal by policy (PW-4)."""

    message: str
    code: int = 403
    reason: str = "Forbidden"
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0
    """With code 429: when to try again, as `kubectl drain` does."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Invalid(_Answer):
    """Fields are wrong: 422 with one cause for each."""

    causes: tuple[StatusCause, ...]

    def __post_init__(self) -> None:
        if not self.causes:
            raise ValueError("an Invalid answer needs at least one cause: say Allow where nothing is wrong")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NeedsReads:
    """Read these objects from the API server, then ask again: `view.live(target)` has them."""

    targets: tuple[Target, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NeedsWrites:
    """Carry these out in order, stop at the first that does not succeed, then ask again with `view.outcomes`."""

    actions: tuple[Action, ...]


Needs = NeedsReads | NeedsWrites
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
    outcomes: tuple[Outcome, ...] = ()
    """Of all writes for this request so far, in order: steps of a chain find theirs by target."""
    reads: Mapping[Target, Any] = dataclasses.field(default_factory=dict)
    last_try: bool = False
    """After this round there is no time, or no try, for further reads or writes."""

    def store(self, resource: Resource[T]) -> Store[T]:
        return self.stores(resource)

    def was_read(self, target: Target) -> bool:
        return target in self.reads

    def live(self, target: Target) -> Any:
        """The object as it was read for this request; None if it does not exist."""
        return self.reads[target]

    def latest(self, resource: Resource[T], namespace: str, name: str) -> T | None:
        """The object as read for this request, else as the store has it."""
        target = Target(resource, namespace, name)
        if target in self.reads:
            found: T | None = self.reads[target]
            return found
        return self.store(resource).get(namespace, name)


Decide = Callable[[AdmissionRequest, HandlerView], Mutation]
Judge = Callable[[AdmissionRequest, HandlerView], Verdict]
