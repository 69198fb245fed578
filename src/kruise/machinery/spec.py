"""What a kind tells the loop: what to watch, how to read a snapshot, how to decide, how to conclude. Pure.

A kind describes itself with a `ControllerSpec`. `kruise.machinery.controller` runs it against a server,
`kruise.machinery.offline` over objects that were read once, `kruise.model` over a model of a cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from kruise.api.meta import Key, Object, controller_of, key_of
from kruise.api.resource import Resource, refers_to
from kruise.machinery.pending import CAPACITY, Pending
from kruise.machinery.plan import ChainOutcomes, Conclusion, EventNote, JobState, Outcomes, Plan, Result, Target
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched, watched

S = TypeVar("S")
T = TypeVar("T", bound=Object)


class Stores(Protocol):
    """Where a view finds its stores: the `Cache`, or objects that were read once (`kruise.machinery.offline`)."""

    def store(self, resource: Resource[T]) -> Store[T]: ...


@dataclasses.dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """A kind whose changes matter, and for which keys. `keys` gets the old and the new object (None: there is none),
    and the stores that the controller's other sources fill: a pod is mapped to the objects whose selectors match it."""

    kind: Resource[T] | Watched[T]
    keys: Callable[[T | None, T | None, Stores], Iterable[Key]]

    @property
    def watched(self) -> Watched[T]:
        return watched(self.kind)

    @property
    def resource(self) -> Resource[T]:
        return self.watched.resource

    @property
    def optional(self) -> bool:
        """The controller works without this kind."""
        return self.watched.optional


def own_key(old: Object | None, new: Object | None, stores: Stores) -> tuple[Key, ...]:
    """The key of the changed object itself."""
    changed = new if new is not None else old
    return (key_of(changed),) if changed is not None else ()


def no_keys(old: object, new: object, stores: Stores) -> tuple[()]:
    """For kinds that are looked at, but whose changes are no reason to look at anything."""
    return ()


def owner_keys(owner: Resource[Any]) -> Callable[[Object | None, Object | None, Stores], Iterable[Key]]:
    """Changes of an object concern the `owner` that controls it, and the one that did before."""

    def owner_of(obj: Object | None) -> Key | None:
        reference = controller_of(obj) if obj is not None else None
        if obj is None or reference is None or not refers_to(reference, owner):
            return None
        return Key(obj.metadata.namespace if owner.namespaced else "", reference.name)

    def keys(old: Object | None, new: Object | None, stores: Stores) -> Iterable[Key]:
        before, after = owner_of(old), owner_of(new)
        if before is not None:
            yield before
        if after is not None and after != before:
            yield after

    return keys


def by_owner(obj: Object) -> tuple[str, ...]:
    """Index by the uid of the controlling owner."""
    reference = controller_of(obj)
    return (reference.uid,) if reference is not None else ()


OWNER = "owner"
OWNER_INDEX: Mapping[str, Callable[[Object], Iterable[str]]] = {OWNER: by_owner}


class View:
    """What a snapshot may be made of. Reading it costs no I/O."""

    __slots__ = (
        "_cache",
        "_capacity",
        "_failures",
        "_pending",
        "gates",
        "jobs",
        "now",
        "outside",
        "seed",
        "server_version",
    )

    def __init__(
        self,
        cache: Stores,
        *,
        now: datetime,
        seed: int,
        gates: Mapping[str, bool],
        server_version: Any,
        pending: Mapping[Target, str] | None = None,
        failures: Mapping[str, str] | None = None,
        capacity: int = CAPACITY,
        outside: Any = None,
        jobs: Mapping[str, JobState] | None = None,
    ) -> None:
        self._cache = cache
        self._pending: Mapping[Target, str] = pending or {}
        self._failures: Mapping[str, str] = failures or {}
        self._capacity = capacity
        self.now = now
        self.seed = seed
        """Another one at each pass. A snapshot that needs names or a draw keeps it, so that a replay is exact."""
        self.gates = gates
        self.server_version = server_version
        self.outside = outside
        """What was seen outside of the API, on a node: of the part's own type."""
        self.jobs: Mapping[str, JobState] = jobs or {}
        """The jobs of the key that were begun, by name."""

    def store(self, resource: Resource[T]) -> Store[T]:
        return self._cache.store(resource)

    def pending(self, resource: Resource[Any]) -> Pending:
        """The writes of earlier passes to objects of a kind that have not ended, and what failed since."""
        marks = {str(target.key): mark for target, mark in self._pending.items() if target.resource == resource}
        return Pending(marks=marks, failures=dict(self._failures), capacity=self._capacity)


def same_spec(before: Any, now: Any) -> bool:
    """Whether an object has the spec, and the life, that it had."""
    return _identity(before) == _identity(now)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ControllerSpec(Generic[S]):
    """A kind's controller. `decide` and `conclude` are pure; `snapshot` only reads its view, None: nothing to do."""

    name: str
    subject: Resource[Any]
    sources: Collection[Source[Any]]
    snapshot: Callable[[View, Key], S | None]
    decide: Callable[[S], Plan]
    conclude: Callable[[S, Plan, Outcomes], Conclusion]
    snapshot_type: type[S]
    events: Callable[[Plan, str, ChainOutcomes], Iterable[EventNote]] | None = None
    """The events of a chain, by the name of its phase, once it has ended: in its pass or later."""
    still_holds: Callable[[Any, Any], bool] = same_spec
    """Whether what was decided about the subject as it was may begin now that it is so: much may change while writes
    stand in line."""
    conceal: Callable[[S], S] | None = None
    """The snapshot as it may be kept and shown, for kinds that see what people keep secret. The journal keeps it, with
    what is decided over it."""
    looks_at_siblings: bool = False
    """Whether the snapshot depends on others of its kind in the namespace: who decides from outside reads them, too."""
    workers: int = 3
    at_start: Callable[[Any], bool] | None = None
    """Which subjects are looked at when the controller starts; None: all of them."""
    outside: Callable[[Any, Stores, Any], Any] | None = None
    """Made of a client, the stores and a clock: what a pass sees beside the stores, in `View.outside`
    (`kruise.machinery.controller.Outside`). A forecast and a look from outside have no such thing."""
    pace: Callable[[S], float] | None = None
    """Seconds to gather changes in before the next pass over an object that was last seen so. Deciding about thousands
    of pods costs more than about ten, and one pass over a hundred changes does what a hundred passes would."""

    def shown(self, snapshot: S, plan: Plan | None) -> tuple[S, Plan | None]:
        """A snapshot and its plan without secrets."""
        if self.conceal is None:
            return snapshot, plan
        concealed = self.conceal(snapshot)
        return concealed, self.decide(concealed) if plan is not None else None

    def events_of(self, plan: Plan, phase: str, chain: ChainOutcomes) -> tuple[EventNote, ...]:
        """None as long as the chain has not ended."""
        if self.events is None or any(outcome.result is Result.PENDING for outcome in chain):
            return ()
        return tuple(self.events(plan, phase, chain))

    def concluded(self, snapshot: S, plan: Plan, outcomes: Outcomes) -> Conclusion:
        """The conclusion, with the events of the chains that have ended."""
        conclusion = self.conclude(snapshot, plan, outcomes)
        chains = ((phase.name, chain) for phase in outcomes.phases for chain in phase.chains)
        ended = [note for name, chain in chains for note in self.events_of(plan, name, chain)]
        return dataclasses.replace(conclusion, events=(*conclusion.events, *ended)) if ended else conclusion

    @property
    def all_sources(self) -> tuple[Source[Any], ...]:
        """The sources, the subject among them."""
        if any(source.resource == self.subject for source in self.sources):
            return tuple(self.sources)
        return (Source(self.subject, own_key), *self.sources)


def _identity(obj: Any) -> tuple[str, int, bool]:
    metadata = obj.metadata
    return metadata.uid, metadata.generation, metadata.deletion_timestamp is not None
