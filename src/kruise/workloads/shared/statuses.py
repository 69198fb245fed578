"""Statuses of workloads: how one is written, whether it has to be, and what its change means for the next pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from kruise.api.meta import Condition, Object
from kruise.api.resource import Resource
from kruise.faces import kstatus
from kruise.faces.progress import Progress
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct, evolve, to_builtins
from kruise.machinery.documents import Json
from kruise.machinery.plan import Action, StatusEffect, Target
from kruise.machinery.wording import shortened
from kruise.workloads.shared import conditions

S = TypeVar("S", bound=Struct)


def status_write(resource: Resource[Any], obj: Object, status: S, form: Callable[[S], Any]) -> Action | None:
    """The write of a new status; None where the difference to the old one is not worth it."""
    if not must_write(obj.status, status):  # type: ignore[attr-defined]
        return None
    target = Target.of(resource, obj)
    return plans.status_patch(target, form(status), uid=obj.metadata.uid, reason="the status changed")


def telling(
    progress: Callable[[Json], Progress], obj: Object, status: S, form: Callable[[S], Json], now: datetime
) -> S:
    """A new status with the conditions by which others see that a rollout is not over. They follow from the spec and
    from what the status counts, so they come and go with a change that is written in any case."""
    spec, metadata = obj.spec, obj.metadata  # type: ignore[attr-defined]
    amounts = {"replicas": getattr(spec, "replicas", None), "minReadySeconds": getattr(spec, "min_ready_seconds", 0)}
    told = kstatus.told(
        progress,
        {
            "metadata": {"name": metadata.name, "generation": metadata.generation},
            "spec": {**amounts, "updateStrategy": to_builtins(spec.update_strategy)},
            "status": form(status),
        },
    )
    known = {item.type: item for item in status.conditions}  # type: ignore[attr-defined]
    changes: dict[str, Condition | None] = dict.fromkeys((kstatus.RECONCILING, kstatus.STALLED))
    if told is not None:
        message = shortened(told.message, conditions.LONGEST_MESSAGE)
        changes[told.kind] = conditions.lasting(told.kind, message, known.get(told.kind), now, reason=told.reason)
    return evolve(status, conditions=conditions.changed(known.values(), changes))


def wire_form(status: Struct, *, always: Iterable[str]) -> dict[str, Any]:
    """`always` are the counters that are there even when 0; others are left out then, and so is what is empty."""
    known = status.conditions  # type: ignore[attr-defined]
    document = {**dict.fromkeys(always, 0), **to_builtins(evolve(status, conditions=()))}
    if known:
        document["conditions"] = [conditions.condition_form(condition) for condition in known]
    return document


def must_write(old: Any, new: Any) -> bool:
    """Whether the difference is worth a write (CS-28, ST-16, and failures that appear or go).

    The text of a failure alone is not: a write wakes this controller, which would try again at once and so undo the
    back-off. The numbers of a failure budget are memory, and change only when more pods have failed than ever before.
    """
    if evolve(old, conditions=()) != evolve(new, conditions=()):
        return True
    return conditions.standing(old.conditions) != conditions.standing(new.conditions)


def effect_of(old: Any, new: Any, counts: Iterable[str]) -> StatusEffect:
    """Pods are counted anew at every pass, so `counts` decide nothing. Where pods go back to, and that too many of them
    had failed, cannot be worked out again from them."""
    if _remembered(old) != _remembered(new):
        return StatusEffect.BLOCKS
    uncounted = dict.fromkeys(counts, 0)
    return StatusEffect.INFORMS if evolve(old, **uncounted) == evolve(new, **uncounted) else StatusEffect.REQUEUES


def _remembered(status: Any) -> tuple[Any, ...]:
    return status.current_revision, status.collision_count, status.failure_budget
