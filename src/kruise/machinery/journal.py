"""The decision journal: what each pass saw, decided and achieved, and a way to decide it again elsewhere.

It is always on. A ring per controller keeps short records of the last passes. They name what was seen by a digest, not
by the objects themselves, so the ring keeps no old pod alive. For the keys that were busy last, the snapshot and the
plan of their latest pass are kept by reference: a snapshot shares its objects with the store. These can be dumped as
JSON, and `replay` decides over a dump again, bit for bit, without a cluster.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Protocol

from kruise import release
from kruise.api.meta import Key
from kruise.machinery.codec import DecodeError, Raw, Struct, canonical, decode, encode
from kruise.machinery.digest import digest, plan_to_data
from kruise.machinery.plan import Conclusion, Outcome, Plan, Result

SHOWN = 20
"""How many actions and held objects a record tells one by one; the others are counted."""
CAPACITY = 256
"""Passes that are kept for each controller."""
SNAPSHOTS = 32
"""Objects of each controller whose latest snapshot is kept."""
NOT_KEPT = "SnapshotNotKept"
"""The reason by which a reader knows that the manager answered, and has nothing to dump."""
NO_CONTROLLER = "NoSuchController"
"""The reason by which a reader knows that the manager answered, and runs no controller of that name."""
TOKEN_HEADER = "X-Kruise-Token"
"""Where a reader says who asks: on the way through an API server `Authorization` is lost."""
AUDIENCE = "kruise-journal"
"""Tokens that are made for this audience alone are of no use anywhere else: a command can hand one over safely."""
NOT_ALLOWED = "JournalForbidden"
"""The reason by which a reader knows that the manager refused, and not the API server in between."""
NOT_KNOWN = "JournalUnauthorized"
"""Likewise: the manager does not know who asks."""


class Decider(Protocol):
    """What replay needs of a `ControllerSpec`."""

    @property
    def name(self) -> str: ...

    @property
    def snapshot_type(self) -> Any: ...

    @property
    def decide(self) -> Callable[[Any], Plan]: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Record:
    """One pass. What is told of it stays encoded until somebody reads it: hardly anybody does, and thousands of small
    mappings take four times the memory."""

    time: datetime
    key: Key
    data: bytes


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    time: datetime
    reconcile_id: str
    digest: str
    snapshot: Any
    plan: Plan
    error: str
    """Why there is no plan: deciding itself failed. Such a snapshot is worth most."""
    fault: str = ""
    """What the kind's code raised in this pass, wherever that was."""


class Journal:
    def __init__(
        self,
        *,
        capacity: int = CAPACITY,
        snapshots: int = SNAPSHOTS,
        on_plan: Callable[[str, Key, Plan], None] = lambda controller, key, plan: None,
    ) -> None:
        """`on_plan` gets every plan, after it was recorded."""
        self._on_plan = on_plan
        self._capacity = capacity
        self._snapshots = snapshots
        self._rings: dict[str, deque[_Record]] = {}
        self._kept: dict[str, OrderedDict[Key, _Kept]] = {}

    def record(
        self,
        *,
        controller: str,
        key: Key,
        reconcile_id: str,
        time: datetime,
        duration: float,
        snapshot: Any = None,
        plan: Plan | None = None,
        outcomes: Sequence[Outcome] | None = None,
        conclusion: Conclusion | None = None,
        error: str = "",
    ) -> None:
        """Note a pass, as far as it came."""
        fingerprint = digest(snapshot) if snapshot is not None else ""
        data = {
            "time": time,
            "controller": controller,
            "key": {"namespace": key.namespace, "name": key.name},
            "reconcile_id": reconcile_id,
            "digest": fingerprint,
            "plan": _plan_summary(plan) if plan is not None else {},
            "outcomes": Counter(outcome.result.value for outcome in outcomes) if outcomes is not None else {},
            "troubles": _troubles(outcomes) if outcomes is not None else [],
            "conclusion": _conclusion_summary(conclusion) if conclusion is not None else {},
            "error": error,
            "duration": duration,
        }
        ring = self._rings.setdefault(controller, deque(maxlen=self._capacity))
        ring.append(_Record(time, key, encode(data)))
        kept = self._kept.setdefault(controller, OrderedDict())
        kept.pop(key, None)
        if snapshot is not None and (plan is not None or error):
            refusal = error if plan is None else ""
            kept[key] = _Kept(time, reconcile_id, fingerprint, snapshot, plan or Plan(), refusal, error)
            if len(kept) > self._snapshots:
                kept.popitem(last=False)
        if plan is not None:
            self._on_plan(controller, key, plan)

    def drop(self, controller: str, key: Key) -> None:
        """The object is gone: its snapshot must not keep what belonged to it alive."""
        kept = self._kept.get(controller)
        if kept is not None:
            kept.pop(key, None)

    def controllers(self) -> list[str]:
        return sorted(self._rings)

    def subjects(self) -> set[tuple[str, Key]]:
        """What there are records of, by controller."""
        return {(controller, record.key) for controller, ring in self._rings.items() for record in ring}

    def entries(
        self,
        controller: str | None = None,
        key: Key | None = None,
        limit: int = 100,
        *,
        only: Callable[[str, Key], bool] = lambda controller, key: True,
    ) -> list[dict[str, Any]]:
        """Records as builtins, the newest first; `only` those of a controller and key that somebody may see."""
        rings = self._rings if controller is None else {controller: self._rings.get(controller, deque())}
        found = (
            record
            for name, ring in rings.items()
            for record in ring
            if key in (None, record.key) and only(name, record.key)
        )
        newest = sorted(found, key=lambda record: record.time, reverse=True)
        return [decode(record.data, dict) for record in islice(newest, max(0, limit))]

    def dumps(self) -> list[tuple[str, Key]]:
        """What can be dumped right now."""
        return [(controller, key) for controller, kept in sorted(self._kept.items()) for key in kept]

    def dump(self, controller: str, key: Key, *, causes_once: bool = False) -> bytes:
        """The latest snapshot of `key` and the plan that was made of it, as JSON. LookupError: it is not kept.

        `replay` takes the whole form; with `causes_once` (see `plan_to_data`) it is half as long for a program to read.
        """
        kept = self._kept.get(controller, OrderedDict()).get(key)
        if kept is None:
            raise LookupError(
                f"no snapshot of {key} is kept for controller {controller!r}: "
                f"it had no pass lately, or {self._snapshots} other keys were busier"
            )
        # Not `canonical`: the order of mappings is part of what was seen.
        return encode(
            {
                "controller": controller,
                "version": release(),
                "namespace": key.namespace,
                "name": key.name,
                "time": kept.time,
                "reconcileId": kept.reconcile_id,
                "digest": kept.digest,
                "snapshot": kept.snapshot,
                "plan": plan_to_data(kept.plan, causes_once=causes_once),
                **({"error": kept.error} if kept.error else {}),
                **({"fault": kept.fault} if kept.fault else {}),
            }
        )


class _Dump(Struct):
    """A dump as it is read back: the snapshot stays JSON until its type is known."""

    controller: str
    digest: str
    snapshot: Raw
    plan: dict[str, Any]
    namespace: str = ""
    name: str = ""
    time: str = ""
    reconcile_id: str = ""
    version: str = ""
    error: str = ""


class ReplayError(ValueError):
    """A dump that cannot be replayed."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A decision made again. `plan` and `recorded` are data as `plan_to_data` gives it; empty plans where deciding
    failed, with the errors beside them."""

    controller: str
    key: Key
    time: str
    reconcile_id: str
    version: str
    """That of the manager that wrote the dump."""
    snapshot: Any
    plan_equal: bool
    """The same plan, or the same failure."""
    plan: dict[str, Any]
    recorded: dict[str, Any]
    error: str
    recorded_error: str
    digest: str
    digest_equal: bool
    """False: the dump was changed, or this version sees other parts of an object."""


def replay(dump: bytes, specs: Iterable[Decider]) -> Replay:
    """Decide again over a dumped snapshot, with the code of today. Raises `ReplayError`."""
    known = {spec.name: spec for spec in specs}
    try:
        document = decode(dump, _Dump)
        if document.controller not in known:
            names = ", ".join(sorted(known)) or "none"
            raise ReplayError(f"the dump is of controller {document.controller!r}; known here: {names}")
        spec = known[document.controller]
        snapshot = decode(document.snapshot, spec.snapshot_type)
    except DecodeError as error:
        raise ReplayError(f"the dump does not fit: {error}") from error
    plan, refusal = _decide(spec, snapshot)
    return Replay(
        controller=spec.name,
        key=Key(document.namespace, document.name),
        time=document.time,
        reconcile_id=document.reconcile_id,
        version=document.version,
        snapshot=snapshot,
        plan_equal=canonical(plan) == canonical(document.plan) and refusal == document.error,
        plan=plan,
        recorded=document.plan,
        error=refusal,
        recorded_error=document.error,
        digest=document.digest,
        digest_equal=digest(snapshot) == document.digest,
    )


def _decide(spec: Decider, snapshot: Any) -> tuple[dict[str, Any], str]:
    """The plan, or an empty one and why there is none: that a decision failed is what one may want to see again."""
    try:
        return plan_to_data(spec.decide(snapshot)), ""
    except Exception as error:  # noqa: BLE001 - whatever a kind's code raises is the outcome here
        return plan_to_data(Plan()), f"{type(error).__name__}: {error}"


def _plan_summary(plan: Plan) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    actions: list[dict[str, str]] = []
    for phase in plan.phases:
        for chain in phase.chains:
            for action in chain:
                resource = action.target.resource.group_resource
                what = f"{resource}/{action.subresource}" if action.subresource else resource
                counts[f"{action.verb.value} {what}"] += 1
                if len(actions) < SHOWN:
                    shown = {"phase": phase.name, "action": f"{action.verb.value} {what} {action.target.key}"}
                    actions.append({**shown, "reason": action.reason})
    causes = Counter(cause.code for held in plan.held for cause in held.causes[:1])
    held_shown = [
        {"target": str(held.target), "causes": [cause.message for cause in held.causes]} for held in plan.held[:SHOWN]
    ]
    return {
        "actions": actions,
        "counts": dict(counts),
        "held": held_shown,
        "heldBy": dict(causes),
        "wakes": [{"after": wake.after, "reason": wake.reason} for wake in plan.wakes[:SHOWN]],
        **({"jobs": [job.name for job in plan.jobs[:SHOWN]]} if plan.jobs else {}),
        **({"drops": list(plan.drops[:SHOWN])} if plan.drops else {}),
    }


def _troubles(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    troubled = (outcome for outcome in outcomes if outcome.result not in (Result.DONE, Result.SKIPPED, Result.DEFERRED))
    return [
        {
            "action": f"{outcome.action.verb.value} {outcome.action.target}",
            "result": outcome.result.value,
            "error": outcome.error,
        }
        for outcome in islice(troubled, SHOWN)
    ]


def _conclusion_summary(conclusion: Conclusion) -> dict[str, Any]:
    return {
        "status": conclusion.status.reason if conclusion.status is not None else "",
        "events": [f"{note.type.value} {note.reason}: {note.message}" for note in conclusion.events[:SHOWN]],
        "wakes": [{"after": wake.after, "reason": wake.reason} for wake in conclusion.wakes[:SHOWN]],
        "retry": conclusion.retry,
    }
