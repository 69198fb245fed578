"""A decision as a value: what to do and why, who cannot move and why, and when to look again.

`decide` returns a `Plan`, `apply` carries it out and returns `Outcomes`, `conclude` turns both into a `Conclusion`.
Everything that people see comes from these values: status, events, previews, explanations, the journal.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.resource import Resource
from kruise.machinery.causes import Cause as Cause
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import Struct

M = TypeVar("M", bound=Struct)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """The object that an action is about."""

    resource: Resource[Any]
    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Resource[Any], obj: Object) -> Target:
        return cls(resource, obj.metadata.namespace, obj.metadata.name)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.resource} {self.key}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One write. The constructors below are the only way to make one.

    `uid` guards a patch or delete: an object of the same name that is not the one decided about stays untouched.
    `resource_version` guards a decision that depends on more than one writer; where it is set, a 409 means that the
    decision must be made anew. `owner_uid` marks a create: if the name exists already and is controlled by that
    owner, the create has happened before and counts as done.
    """

    verb: Verb
    target: Target
    reason: str
    body: Any = None
    patch_type: PatchType | None = None
    subresource: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_uid: str = ""
    grace_period_seconds: int | None = None
    propagation: str = ""
    field_manager: str = ""
    force: bool = False


def create(resource: Resource[Any], body: Mapping[str, Any], *, reason: str, owner_uid: str = "") -> Action:
    """Create an object under the full name that `body` carries. A generated name would make an unknown outcome
    impossible to settle, so it is refused."""
    metadata = body.get("metadata", {})
    name = metadata.get("name", "")
    if not name:
        raise ValueError(f"a planned create of {resource} needs metadata.name: choose the full name in the Plan")
    target = Target(resource, metadata.get("namespace", ""), name)
    return Action(verb=Verb.CREATE, target=target, reason=reason, body=body, owner_uid=owner_uid)


def patch(
    target: Target,
    body: Any,
    *,
    uid: str,
    reason: str,
    patch_type: PatchType = PatchType.MERGE,
    subresource: str = "",
    resource_version: str = "",
) -> Action:
    """Patch an object that was seen with `uid`. The guards are added to the patch when it is sent."""
    return Action(
        verb=Verb.PATCH,
        target=target,
        reason=reason,
        body=body,
        patch_type=patch_type,
        subresource=subresource,
        uid=uid,
        resource_version=resource_version,
    )


def status_patch(target: Target, status: Any, *, uid: str, reason: str, resource_version: str = "") -> Action:
    """Write a whole status. A JSON patch, since the API server ignores the uid in a merge patch of the status of a
    custom resource."""
    return patch(
        target,
        [{"op": "add", "path": "/status", "value": status}],
        uid=uid,
        reason=reason,
        patch_type=PatchType.JSON,
        subresource="status",
        resource_version=resource_version,
    )


def apply_object(
    target: Target, body: Mapping[str, Any], *, field_manager: str, reason: str, force: bool = False
) -> Action:
    """Server-side apply."""
    return Action(
        verb=Verb.PATCH,
        target=target,
        reason=reason,
        body=body,
        patch_type=PatchType.APPLY,
        field_manager=field_manager,
        force=force,
    )


def delete(
    target: Target,
    *,
    uid: str,
    reason: str,
    resource_version: str = "",
    grace_period_seconds: int | None = None,
    propagation: str = "",
) -> Action:
    """Delete the object that was seen with `uid`; one that is gone already counts as done."""
    return Action(
        verb=Verb.DELETE,
        target=target,
        reason=reason,
        uid=uid,
        resource_version=resource_version,
        grace_period_seconds=grace_period_seconds,
        propagation=propagation,
    )


def evict(target: Target, *, uid: str, reason: str) -> Action:
    """Evict a pod: a delete that disruption budgets may refuse (429)."""
    return Action(verb=Verb.CREATE, target=target, reason=reason, subresource="eviction", uid=uid)


def bind(target: Target, node: str, *, uid: str, reason: str) -> Action:
    """Put a pod on a node; one that is on a node already counts as moved."""
    return Action(verb=Verb.CREATE, target=target, reason=reason, subresource="binding", body={"node": node}, uid=uid)


Chain = tuple[Action, ...]
"""Actions in order; the first that does not succeed ends the chain, the rest is skipped."""


class OnError(enum.Enum):
    """What a failure in one chain means for the others."""

    CONTINUE = "continue"
    """The other chains and the later phases go on."""
    STOP_PHASE = "stop phase"
    """No further chain of this phase is begun; later phases go on."""
    STOP_PLAN = "stop plan"
    """No further chain of this phase and no later phase is begun."""


class Urgency(enum.IntEnum):
    """Whose writes begin first when there are more than the server takes at once. Nobody starves: while others go
    first, every fourth slot is for those who are behind, every eighth for `LATER`."""

    NOW = 0
    """The later writes of a chain: what was begun should end before more is begun."""
    SOON = 1
    USUAL = 2
    LATER = 3
    """For what may come in thousands."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Chains that may run in parallel. The next phase begins when this one is over."""

    name: str
    chains: tuple[Chain, ...]
    on_error: OnError = OnError.STOP_PLAN
    slow_start: bool = False
    """Run 1, 2, 4, ... chains at a time as long as all succeed: a create that a quota or webhook refuses is tried once
    or twice, not a thousand times."""
    unless_done: tuple[str, ...] = ()
    """Names of earlier phases. If one of them changed anything, this phase was decided about a state of affairs that
    is over: it is skipped, and the next pass decides about the new one."""
    alongside: bool = False
    """Begin together with the phase before, which deals with other objects; the next phase waits for both."""
    pause_after: float | None = None
    """Seconds after which no further chain of this phase is begun, so that a long pass does not keep what happened
    meanwhile waiting. What is left is decided anew at once."""
    detaches: bool = False
    """When the pause comes, the chains go on by themselves, and the pass does not wait for them. Until they end, the
    next snapshots have their objects in `Pending`, and decisions must leave those alone."""
    mark: str = ""
    """What `Pending` tells about the objects of detached chains: the revision that they move to, or `CREATION`."""
    urgency: Urgency = Urgency.USUAL
    not_after: datetime | None = None
    """When what permits these writes is over: nothing is sent from then on, not even again. What is left is decided
    anew."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An object that is not where it should be and does not move in this plan."""

    target: Target
    causes: tuple[Cause, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Look again after some seconds, and what for."""

    after: float
    reason: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Something to be done outside of the API, such as a call of a container runtime. It runs in the background; the
    key is looked at again when it has ended, and snapshots find its state until the plan drops it."""

    name: str
    """Of the key's own. A job is begun once under its name: one that is there already is left alone."""
    call: Struct
    """What to do, as whoever carries it out knows it."""
    seconds: float | None = None
    """It is given up after so long."""
    to_the_end: bool = False
    """Once begun it is not given up, even if nobody wants to know how it ended."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A job that was begun."""

    call: Struct
    began: datetime
    ended: datetime | None = None
    result: Any = None
    """What the call answered."""
    error: str = ""
    """Why it failed; empty while it runs, and where it did not."""
    timed_out: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    phases: tuple[Phase, ...] = ()
    held: tuple[Held, ...] = ()
    wakes: tuple[Wake, ...] = ()
    jobs: tuple[Job, ...] = ()
    """To be begun when the phases are over. Where a write was not done, none is."""
    drops: tuple[str, ...] = ()
    """Names of jobs to give up, if they still run, and to forget: after the writes, if all were done, and before others
    are begun. So what a job achieved is known until it is written down."""
    memo: Struct | None = None
    """What `decide` worked out and `conclude` needs: a struct of the kind."""

    def actions(self) -> Iterator[Action]:
        for phase in self.phases:
            for chain in phase.chains:
                yield from chain

    def memo_as(self, kind: type[M]) -> M:
        """The memo of a kind's own plan."""
        if not isinstance(self.memo, kind):
            raise TypeError(f"the plan's memo is of {type(self.memo)}, not of {kind}: it is another kind's plan")
        return self.memo


class Result(enum.StrEnum):
    DONE = "done"
    MOVED = "moved"
    """A guard failed: the object changed since the snapshot. Nobody's fault, never shown: decide again."""
    GONE = "gone"
    """The object to patch is not there any more. Decide again."""
    FAILED = "failed"
    UNKNOWN = "unknown"
    """No answer, and trying again did not settle it."""
    SKIPPED = "skipped"
    DEFERRED = "deferred"
    """Not begun, since the phase had taken its time: the next pass decides anew, at once."""
    PENDING = "pending"
    """Detached: it ends after the pass, and the key is requeued then."""


UNDECIDED = frozenset(Result) - {Result.DONE, Result.FAILED}
"""What happens while others write, or while this process ends, is nobody's failure: the next pass decides anew."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    action: Action
    result: Result
    object: Any = None
    """The object as the server answered it, for results that have one."""
    error: str = ""
    error_code: int = 0
    error_reason: str = ""
    """The server's own reason (`Forbidden`, `Invalid`, ...), where it gave one."""

    @property
    def message(self) -> str:
        """Why it failed, in the server's words where there are any."""
        return self.error or f"{self.action.verb.value} of {self.action.target} failed, no reason was given"


ChainOutcomes = tuple[Outcome, ...]
"""One for each action of a chain, in order."""


@dataclasses.dataclass(frozen=True, slots=True)
class PhaseOutcomes:
    name: str
    chains: tuple[ChainOutcomes, ...]

    def __iter__(self) -> Iterator[Outcome]:
        return itertools.chain.from_iterable(self.chains)


@dataclasses.dataclass(frozen=True, slots=True)
class Outcomes:
    """How the actions of a plan went: a phase for each of the plan's, a chain for each of the phase's."""

    phases: tuple[PhaseOutcomes, ...] = ()

    def __iter__(self) -> Iterator[Outcome]:
        """In plan order."""
        return itertools.chain.from_iterable(self.phases)

    def phase(self, name: str) -> tuple[ChainOutcomes, ...]:
        """The chains of a phase; none where the plan has no such phase."""
        return tuple(chain for phase in self.phases if phase.name == name for chain in phase.chains)

    def within(self, *names: str) -> Iterator[Outcome]:
        """The outcomes of these phases, in the order of the names."""
        return (outcome for name in names for chain in self.phase(name) for outcome in chain)

    def of(self, result: Result) -> tuple[Outcome, ...]:
        return tuple(item for item in self if item.result is result)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return self.of(Result.FAILED)

    @property
    def must_decide_again(self) -> bool:
        return any(item.result in (Result.MOVED, Result.GONE, Result.UNKNOWN) for item in self)


def failure_of(outcomes: Iterable[Outcome]) -> str | None:
    """Why writes failed; empty: all were done; None: nothing failed, but not all were done, so nobody can tell."""
    undecided = False
    for outcome in outcomes:
        if outcome.result is Result.FAILED:
            return outcome.message
        undecided |= outcome.result in UNDECIDED
    return None if undecided else ""


class EventType(enum.StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EventNote:
    """An event to record about an object."""

    reason: str
    message: str
    type: EventType = EventType.NORMAL
    target: Target | None = None
    """None: the object that was reconciled."""
    uid: str = ""
    field_path: str = ""
    """The part of the object that it is about, such as `spec.containers{app}`."""


class StatusEffect(enum.Enum):
    """What a change of a status means for the passes to come."""

    INFORMS = "informs"
    """Only its readers: nothing is decided by it, so its write does not requeue the object."""
    REQUEUES = "requeues"
    """Something is decided by it: the object is looked at again when it is written."""
    BLOCKS = "blocks"
    """The next pass must know of it: it is written before, however many writes are pending."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """What is left to do after the plan was carried out."""

    status: Action | None = None
    events: tuple[EventNote, ...] = ()
    """Of the pass as a whole. `ControllerSpec.events` tells those of each chain, whenever it ends."""
    wakes: tuple[Wake, ...] = ()
    retry: str = ""
    """Why to try again with back-off; empty where the plan worked out."""
    effect: StatusEffect = StatusEffect.REQUEUES
    """Of the status."""
    drops: tuple[str, ...] = ()
    """Jobs that nobody asks about any more, however the writes went. The plan's own go only when all are done."""


def single(phase: str, *actions: Action, on_error: OnError = OnError.STOP_PLAN, slow_start: bool = False) -> Phase:
    """A phase in which every action stands for itself."""
    return Phase(name=phase, chains=tuple((action,) for action in actions), on_error=on_error, slow_start=slow_start)
