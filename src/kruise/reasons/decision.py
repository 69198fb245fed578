"""What a plan says about who is held and what is about to happen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kruise.machinery.causes import Cause
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Struct
from kruise.machinery.memo import RolloutMemo

if TYPE_CHECKING:
    from kruise.machinery.plan import Plan, Target

WRITES = frozenset({Verb.CREATE.value, Verb.PATCH.value, Verb.DELETE.value})


class About(NamedTuple):
    """An object that a plan speaks of."""

    group: str
    plural: str
    name: str
    namespace: str = ""

    @classmethod
    def target(cls, target: Target) -> About:
        return cls(target.resource.group, target.resource.plural, target.name, target.namespace)

    @property
    def is_pod(self) -> bool:
        return (self.group, self.plural) == ("", "pods")


class Step(NamedTuple):
    """A write of the plan."""

    verb: str
    about: About
    reason: str
    uid: str


class Decision(Struct):
    held: tuple[tuple[About, tuple[Cause, ...]], ...] = ()
    steps: tuple[Step, ...] = ()
    """Writes to pods."""
    revision: str = ""
    """Where pods are to go, where the plan's memo tells it; it may be newer than what the status names."""
    told_error: str = ""
    """A failure that the plan itself foresees, in the words of the condition that will tell it."""
    fault: str = ""
    """What the code of the kind raised: nothing was decided, or nothing was concluded from it."""
    seen: Mapping[str, str] | None = None
    """Versions by uid of the objects it was decided over; None: over those that are here now."""


def of_plan(plan: Plan) -> Decision:
    """A plan that was just decided."""
    memo = plan.memo if isinstance(plan.memo, RolloutMemo) else RolloutMemo()
    return Decision(
        held=tuple((About.target(one.target), one.causes) for one in plan.held),
        steps=tuple(
            Step(
                action.verb.value,
                About.target(action.target),
                action.reason,
                action.uid,
            )
            for action in plan.actions()
            if action.target.resource.plural == "pods" and action.verb.value in WRITES
        ),
        revision=memo.update_revision,
        told_error=memo.update_error,
    )
