"""What the plan of a workload remembers for its status and events, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, Self

from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.meta import Condition
from kruise.api.native.apps import ControllerRevision
from kruise.machinery.codec import field
from kruise.machinery.memo import RolloutMemo
from kruise.machinery.plan import EventNote
from kruise.workloads.shared import failure_budget, waiting
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import Judgement
from kruise.workloads.shared.failures import NO_BUDGET, Failures
from kruise.workloads.shared.waiting import Waiting


class Updating(Protocol):
    """What a pass decided about updates."""

    @property
    def moves(self) -> Mapping[str, str]: ...

    @property
    def target(self) -> ControllerRevision: ...

    @property
    def error(self) -> str: ...


class WorkloadMemo(RolloutMemo, kw_only=True):
    events: tuple[EventNote, ...] = ()
    """Those that do not depend on the writes."""
    moves: Mapping[str, str] = field(default_factory=dict)
    """How the pods of phase `update` move, by name."""
    target_revision: str = ""
    """Where they move: the update revision, or the current one when they go back."""
    failure_budget: Judgement | None = None
    """None: no budget was looked at, its condition stays as it is."""
    waiting: Waiting | None = None
    """None: nobody looked at what waits, its condition stays as it is."""

    @classmethod
    def of_rollout(cls, updating: Updating, failures: Failures, waits: Waiting, **own: Any) -> Self:
        """`own` are the further fields; `update_revision` is among them."""
        return cls(
            moves=updating.moves,
            target_revision=updating.target.metadata.name,
            update_error=updating.error,
            failure_budget=failures.judgement if failures is not NO_BUDGET else None,
            waiting=waits,
            **own,
        )

    def remembered_failures(self, known: FailureBudgetStatus | None) -> FailureBudgetStatus | None:
        """What is remembered of a stop or a trial. A plan that says nothing about it leaves it as it is."""
        if self.failure_budget is None:
            return known
        stop = self.failure_budget.stop
        return stop.memory if stop is not None else self.failure_budget.trial

    def conditions(self, known: Iterable[Condition], now: datetime) -> dict[str, Condition | None]:
        """Conditions that the plan itself decides. A plan that says nothing about them leaves them as they are."""
        by_type = {item.type: item for item in known}
        found: dict[str, Condition | None] = {}
        if self.failure_budget is not None:
            before = by_type.get(FAILURE_BUDGET)
            found[FAILURE_BUDGET] = failure_budget.condition_of(self.failure_budget.stop, before, now)
        if self.waiting is not None:
            before = by_type.get(waiting.CONDITION)
            found[waiting.CONDITION] = waiting.condition_of(self.waiting.summary, before, now)
        return found
