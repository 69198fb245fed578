"""What a plan says about who is held and what is about to happen: from the plan itself, or from its dumped form."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Cause, Plan

_KINDS_OF_WRITES = frozenset({Verb.CREATE.value, Verb.PATCH.value, Verb.DELETE.value})


class About(NamedTuple):
    """An object that a plan speaks of."""

    group: str
    plural: str
    name: str

    @property
    def is_pod(self) -> bool:
        return (self.group, self.plural) == ("", "pods")


class Step(NamedTuple):
    """A write of the plan."""

    verb: str
    about: About
    reason: str
    uid: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    held: tuple[tuple[About, tuple[Cause, ...]], ...] = ()
    steps: tuple[Step, ...] = ()
    """Writes to pods."""
    revision: str = ""
    """Where pods are to go, where the plan's figures tell it; it may be newer than what the status names."""
    told_error: str = ""
    """A failure that the plan itself foresees, in the words of the condition that will tell it."""
    seen: Mapping[str, str] | None = None
    """Versions by uid of the objects it was decided over; None: over those that are here now."""


def of_plan(plan: Plan) -> Decision:
    """A plan that was just decided."""
    return Decision(
        held=tuple(
            (About(one.target.resource.group, one.target.resource.plural, one.target.name), one.causes)
            for one in plan.held
        ),
        steps=tuple(
            Step(
                action.verb.value,
                About(action.target.resource.group, action.target.resource.plural, action.target.name),
                action.reason,
                action.uid,
            )
            for action in plan.actions()
            if action.target.resource.plural == "pods" and action.verb.value in _KINDS_OF_WRITES
        ),
        revision=str(getattr(plan.notes.get("figures"), "update_revision", "")),
        told_error=str(plan.notes.get("update_error") or ""),
    )


def of_dump(document: Mapping[str, Any]) -> Decision:
    """A dump of the journal. What a newer or older manager wrote differently is left out, not stumbled over."""
    plan = _mapping(document.get("plan"))
    notes = _mapping(plan.get("notes"))
    causes = _Causes()
    return Decision(
        held=tuple(
            (_about(held), tuple(causes.read(cause) for cause in _items(held, "causes")))
            for held in _items(plan, "held")
        ),
        steps=tuple(
            Step(str(action.get("verb", "")), _about(action), str(action.get("reason", "")), str(action.get("uid", "")))
            for phase in _items(plan, "phases")
            for chain in phase.get("chains") or ()
            for action in chain
            if _about(action).is_pod and action.get("verb") in _KINDS_OF_WRITES
        ),
        revision=str(_mapping(notes.get("figures")).get("update_revision", "")),
        told_error=str(notes.get("update_error") or ""),
        seen=dict(_versions(_mapping(document.get("snapshot")))),
    )


def generation_seen(document: Mapping[str, Any], uid: str) -> int:
    """The generation of an object that a dumped decision was made about; 0 where that is not told."""
    for value in _mapping(document.get("snapshot")).values():
        metadata = _mapping(_mapping(value).get("metadata"))
        if uid and metadata.get("uid") == uid:
            return int(metadata.get("generation") or 0)
    return 0


def _versions(snapshot: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for value in snapshot.values():
        for item in value if isinstance(value, list) else (value,):
            metadata = _mapping(_mapping(item).get("metadata"))
            if metadata.get("uid"):
                yield str(metadata["uid"]), str(metadata.get("resourceVersion", ""))


def _about(item: Mapping[str, Any]) -> About:
    target = _mapping(item.get("target"))
    return About(str(target.get("group", "")), str(target.get("plural", "")), str(target.get("name", "")))


class _Causes:
    """Causes as they are read. One that holds thousands of pods is one again, as it was in the plan."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[Mapping[str, Any], Cause]] = {}

    def read(self, data: Mapping[str, Any]) -> Cause:
        key = (str(data.get("code", "")), str(data.get("message", "")))
        known = self._known.get(key)
        if known is not None and known[0] == data:
            return known[1]
        cause = Cause(
            code=key[0], message=key[1], details=_mapping(data.get("details")), remedy=str(data.get("remedy") or "")
        )
        self._known[key] = (data, cause)
        return cause


def _items(mapping: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    return (_mapping(item) for item in mapping.get(name) or ())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
