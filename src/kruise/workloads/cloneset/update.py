"""Bringing a CloneSet's pods to their revision: choosing the next ones in order, as far as partition and maxUnavailable
allow, unless scaling changes something (CS section 9). How a pod moves is `shared.moving`'s."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

from kruise.api.apps.shared import IN_PLACE_ONLY, IN_PLACE_POLICIES
from kruise.api.native.apps import ControllerRevision
from kruise.inplace import edits, keys
from kruise.inplace.difference import InPlaceOptions, Refusal
from kruise.inplace.edits import PodEdit
from kruise.inplace.lifecycle import State
from kruise.inplace.order import update_order
from kruise.machinery import plan as plans
from kruise.machinery.plan import Held, OnError, Phase, Target, Wake
from kruise.machinery.wording import listed, plural
from kruise.workloads.cloneset.causes import SURGE, TO_DELETE
from kruise.workloads.cloneset.creation import revision_labels
from kruise.workloads.cloneset.numbers import counts_of, update_numbers
from kruise.workloads.cloneset.scale import SCALE
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared import causes
from kruise.workloads.shared.failures import NO_BUDGET, Failures, cause_of
from kruise.workloads.shared.moving import PodMover
from kruise.workloads.shared.pod_facts import PodFacts

RECREATE = "recreate"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStep:
    refresh: Phase
    budget: Phase
    """What is taken from budgets first."""
    update: Phase
    held: tuple[Held, ...]
    wakes: tuple[Wake, ...]
    moves: Mapping[str, str]
    """How the pods of the update phase move, by name; one that is only prepared is not among them."""
    target: ControllerRevision
    """Where they move."""
    error: str = ""
    """Why the step came to an end early (CS-103); it is tried again."""


def update(
    situation: Situation, *, touched: frozenset[str], failures: Failures = NO_BUDGET, may_move: bool = True
) -> UpdateStep:
    """`touched` are the pods that scaling deals with in this pass. `may_move` is False where scaling has to come first,
    and cannot yet."""
    return _Updating(situation, touched, failures).step(may_move=may_move)


def _revision_labels(target: ControllerRevision, *, short: bool) -> Mapping[str, str]:
    return revision_labels(target.metadata.name, short=short)


class _Updating:
    """One pass over the pods: who moves, and who waits for what."""

    def __init__(self, situation: Situation, touched: frozenset[str], failures: Failures) -> None:
        self._situation = situation
        self._touched = touched
        self._failed = failures.broken
        self._stop = failures.stop
        rolling = situation.rolling
        self._policy = rolling.pod_update_policy if rolling is not None else ""
        strategy = rolling.in_place_update_strategy if rolling is not None else None
        self._mover = PodMover(
            situation,
            hooks=situation.cloneset.spec.lifecycle,
            options=InPlaceOptions.of(situation.gates, ignore_claim_templates=self._policy == IN_PLACE_ONLY),
            # Of its own parts alone: what a pass makes must go with the pass, and a cycle would keep it.
            revision_labels=functools.partial(_revision_labels, short=situation.gate("CloneSetShortHash")),
            grace_seconds=strategy.grace_period_seconds if strategy is not None else 0,
            hash_label=True,
        )
        self._hold = self._mover.hold
        self._target = situation.update

    def step(self, *, may_move: bool) -> UpdateStep:
        mover = self._mover
        mover.refresh(without=self._touched)
        if may_move:
            self._move()
        else:
            self._let_scaling_come_first()
        return UpdateStep(
            refresh=mover.refresh_phase,
            budget=dataclasses.replace(mover.budget_phase, unless_done=(SCALE,)),
            update=mover.update_phase(self._target, unless_done=(SCALE,)),
            held=mover.held,
            wakes=tuple(mover.wakes),
            moves=mover.moves,
            target=self._target,
            error=mover.error,
        )

    # Moving on

    def _move(self) -> None:
        situation = self._situation
        limits = situation.limits
        if situation.is_on_delete or limits.is_paused:
            self._nobody_moves()
            return
        if limits.is_stopped:
            self._stay_old()
            if not limits.rolls_back:
                return
        numbers = update_numbers(
            counts_of(situation.facts, scaling=False, preparing_as_new=False),
            limits,
            situation.replicas,
            same_revision=situation.is_at_one_revision,
            can_roll_back=situation.gate("CloneSetPartitionRollback") or limits.rolls_back,
        )
        back = numbers.count < 0
        self._target = target = situation.current if back else situation.update
        waiting = [fact for fact in situation.facts if fact.is_new == back and not fact.is_preparing_delete]
        if numbers.count == 0:
            if self._stop is None:
                for fact in waiting:
                    self._leave(fact)
            return
        repaired = {fact.name for fact in waiting if fact.name in self._failed or _lacks_its_update(fact)}
        # A pod that scaling is about to delete stays out of it, also where the deletion does not succeed.
        candidates = [
            fact
            for fact in waiting
            if fact.name not in self._touched
            and not fact.is_pending
            and (fact.state == State.UPDATED or not self._mover.is_busy(fact))
        ]
        if any(fact.name in self._mover.changing for fact in candidates):
            return  # decided again when their states are written
        everybody = len(candidates) <= abs(numbers.count) and not repaired
        if everybody and self._is_full(target_is_new=not back, budget=numbers.budget):
            self._hold_by_limit(candidates, numbers.budget)  # everybody waits for the same: no order is needed
            return
        by_name = {fact.name: fact for fact in candidates}
        rolling = situation.rolling
        ordered = update_order(
            [fact.pod for fact in candidates],
            [fact.pod for fact in situation.facts],
            priority=rolling.priority_strategy if rolling is not None else None,
            scatter=rolling.scatter_strategy if rolling is not None else (),
        )
        queue = [by_name[pod.metadata.name] for pod in ordered]
        if repaired:
            queue.sort(key=lambda fact: fact.name not in repaired)
        for fact in queue[abs(numbers.count) :]:
            self._leave(fact)
        for fact in self._within_limits(queue[: abs(numbers.count)], target_is_new=not back, budget=numbers.budget):
            if error := self._mover.error:
                at = {"pods": [self._mover.stopped_at]}
                self._hold(fact, causes.STOPPED, f"the update stopped: {error}", "see what holds that pod", at)
            elif self._mover.is_full:
                self._hold(fact, causes.NEXT, "its turn comes when the pods before it have begun to move", "")
            else:
                self._move_one(fact, target)

    def _let_scaling_come_first(self) -> None:
        for fact in self._situation.facts:
            if not fact.is_new and not fact.is_preparing_delete:
                self._hold(fact, causes.NEXT, "scaling comes first, when the writes under way have ended", "")

    def _leave(self, fact: PodFacts) -> None:
        """The pod is not to move. If it was prepared for that, it takes its way back."""
        if fact.is_pending:
            return
        if fact.state == State.PREPARING_UPDATE and fact.name not in self._touched:
            self._mover.call_off(fact)
        elif self._stop is not None:
            self._mover.hold_all((fact,), cause_of(self._stop))
        else:
            self._hold_by_partition(fact)

    def _stay_old(self) -> None:
        """The rollout has stopped by itself: whoever is not at the update revision does not go there."""
        for fact in self._situation.facts:
            if not fact.is_new and not fact.is_preparing_delete:
                self._leave(fact)

    def _is_full(self, *, target_is_new: bool, budget: int) -> bool:
        """Whether nobody could move, whoever comes first."""
        facts = self._situation.facts
        down = sum(not fact.is_available and fact.is_new == target_is_new for fact in facts)
        return down >= self._room_at_target(budget)

    def _room_at_target(self, budget: int) -> int:
        """How many pods may be down at the revision they go to.

        Where pods are missing that scaling may not make yet, those that are down may have used up both limits, and
        nobody would ever move. One of them at a time goes on: it serves nobody, so it costs nothing.
        """
        return max(budget, 1) if len(self._situation.facts) < self._situation.replicas else budget

    def _within_limits(self, queue: list[PodFacts], *, target_is_new: bool, budget: int) -> list[PodFacts]:
        """The first pods of the queue that may move now (CS-102).

        With a failure budget, pods that failed do not keep each other from being repaired: those that failed at the
        target take no room from those that failed elsewhere. They serve nobody, so it costs nothing, and the budget
        ends it where the target is no better.
        """
        facts = self._situation.facts
        unavailable = sum(not fact.is_available for fact in facts)
        unavailable_there = sum(not fact.is_available and fact.is_new == target_is_new for fact in facts)
        failed_there = sum(fact.name in self._failed and fact.is_new == target_is_new for fact in facts)
        room = self._room_at_target(budget)
        chosen: list[PodFacts] = []
        for position, fact in enumerate(queue):
            in_the_way = unavailable_there - (failed_there if fact.name in self._failed else 0)
            full = in_the_way + len(chosen) >= room or (fact.is_available and unavailable >= budget)
            if full:
                self._hold_by_limit(queue[position:], budget)
                break
            unavailable += fact.is_available
            chosen.append(fact)
        return chosen

    def _move_one(self, fact: PodFacts, target: ControllerRevision) -> None:
        if self._policy not in IN_PLACE_POLICIES:
            self._recreate(fact)
            return
        if fact.is_specified:
            # It is about to go, and its successor has the right revision; it only keeps its place in the wave.
            self._hold(fact, TO_DELETE, "the pod is about to be deleted and is not updated any more", "")
            return
        spec = self._mover.spec_for(fact, target)
        if isinstance(spec, Refusal):
            if self._policy == IN_PLACE_ONLY:
                self._mover.stopped_at = fact.name
                self._mover.error = f"find Pod {fact.name} update strategy is InPlaceOnly but can not update in-place"
                remedy = "undo that change of the template, or use InPlaceIfPossible"
                self._hold(fact, causes.IN_PLACE_ONLY, f"cannot be updated in place: {spec.message}", remedy)
                return
            self._recreate(fact)
            return
        self._mover.update_in_place(fact, spec, target)

    def _recreate(self, fact: PodFacts) -> None:
        """Mark the pod; scaling deletes it within its budget and makes the successor (CS-104)."""
        if keys.SPECIFIED_DELETE_LABEL in fact.pod.metadata.labels:
            return
        if (cause := self._situation.permits.may_update(fact.pod)) is not None:
            self._mover.refused(fact, cause)
            return
        edit = PodEdit(labels={keys.SPECIFIED_DELETE_LABEL: "true"})
        self._mover.moves[fact.name] = RECREATE
        self._mover.updates[fact.name] = edits.writes(fact.pod, edit, reason="recreate for update")

    # Saying why

    def _nobody_moves(self) -> None:
        for fact in self._situation.facts:
            goes_back = fact.is_new and self._situation.limits.rolls_back
            if (fact.is_new and not goes_back) or fact.is_preparing_delete:
                continue
            self._mover.hold_all((fact,), causes.stands_still(is_on_delete=self._situation.is_on_delete))

    def _hold_by_partition(self, fact: PodFacts) -> None:
        limits = self._situation.limits
        if limits.partition > 0:
            self._mover.hold_all((fact,), causes.kept_old(limits.partition))
        else:
            message = "enough other pods are new or on their way; this one is one too many"
            self._hold(fact, SURGE, message, "it is removed when the others are available")

    def _hold_by_limit(self, waiting: list[PodFacts], budget: int) -> None:
        blockers = [fact.name for fact in self._situation.facts if not fact.is_available]
        message = f"maxUnavailable {self._situation.limits.max_unavailable} allows {plural(budget, 'unavailable pod')}"
        message += f"; used up by {listed(blockers)}" if blockers else ""
        details = {"budget": budget, "unavailable": blockers}
        remedy = "wait for these pods, or repair them" if blockers else ""
        cause = causes.MAX_UNAVAILABLE.cause(message, details=details, remedy=remedy)
        self._mover.hold_all(waiting, cause)


def _lacks_its_update(fact: PodFacts) -> bool:
    """It serves with the resources that it had, and its node has not given it those of its revision. To be counted as
    down is all that it does for the others: it must not stand in line behind one that waits for it."""
    return fact.is_ready and fact.state == State.UPDATING


def spec_write(situation: Situation) -> Phase:
    """Take out of podsToDelete the names that are no active pods any more (CS-69)."""
    strategy = situation.cloneset.spec.scale_strategy
    there = {fact.name for fact in situation.facts}
    left = [name for name in strategy.pods_to_delete if name in there]
    if len(left) == len(strategy.pods_to_delete) or situation.owner.is_deleted:
        return Phase(name="spec", chains=())
    body = {"spec": {"scaleStrategy": {"podsToDelete": left or None}}}
    cloneset = situation.cloneset
    write = plans.patch(
        Target.of(situation.owner.resource, cloneset),
        body,
        uid=cloneset.metadata.uid,
        reason="pods of podsToDelete are gone",
        resource_version=cloneset.metadata.resource_version,
    )
    return plans.single("spec", write, on_error=OnError.CONTINUE)
