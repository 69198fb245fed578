"""Bringing a CloneSet's pods to their revision: refreshing those under way, then moving the next ones (CS section 9).

Every pod is refreshed in every pass, also while paused: a pod that has arrived becomes ready and Normal. Then, unless
scaling changes something, the next pods are chosen in order, as far as partition and maxUnavailable allow.

The update step does not wait for the refreshed states of pods that have arrived already. They count as unavailable
until the next pass sees them, so the limits hold, and a wave starts while the states of the former one are written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.shared import IN_PLACE_ONLY, IN_PLACE_POLICIES
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS
from kruise.inplace import edits, engine, keys, lifecycle
from kruise.inplace.completion import is_complete
from kruise.inplace.difference import InPlaceOptions, Refusal, compare
from kruise.inplace.edits import PodEdit
from kruise.inplace.lifecycle import State, Turn
from kruise.inplace.order import update_order
from kruise.inplace.state import UpdateSpec, in_grace
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.causes import Meaning
from kruise.machinery.plan import Cause, Chain, Held, OnError, Phase, Target, Urgency, Wake
from kruise.machinery.revision_names import short_hash
from kruise.machinery.wording import listed
from kruise.workloads.cloneset.causes import SURGE, TO_DELETE
from kruise.workloads.cloneset.creation import revision_labels
from kruise.workloads.cloneset.failures import NO_BUDGET, Failures, cause_of
from kruise.workloads.cloneset.numbers import counts_of, update_numbers
from kruise.workloads.cloneset.situation import PodFacts, Situation
from kruise.workloads.shared import causes

REFRESH = "refresh"
UPDATE = "update"
IN_PLACE = "in-place"
RECREATE = "recreate"

_LONGEST_PASS = 0.04
"""Seconds. Writes that take longer end while the next pass decides, so that pods that became ready meanwhile need not
wait for them."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStep:
    refresh: Phase
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


class _Updating:
    """One pass over the pods. Collects chains, causes and moments; changes nothing else."""

    def __init__(self, situation: Situation, touched: frozenset[str], failures: Failures) -> None:
        self._situation = situation
        self._touched = touched
        self._failed = failures.broken
        self._stop = failures.stop
        self._lifecycle = situation.cloneset.spec.lifecycle
        rolling = situation.rolling
        self._policy = rolling.pod_update_policy if rolling is not None else ""
        self._options = InPlaceOptions.of(
            situation.snapshot.gates, ignore_claim_templates=self._policy == IN_PLACE_ONLY
        )
        self._refreshes: dict[str, Chain] = {}
        self._updates: dict[str, Chain] = {}
        self._causes: dict[str, tuple[Cause, ...]] = {}
        self._wakes: list[Wake] = []
        self._changing: set[str] = set()
        """Pods whose lifecycle state or missing label is written by the refresh."""
        self._stepping: set[str] = set()
        """Pods that nothing else may be decided about in this pass."""
        self._room_to_move = situation.snapshot.pending.room_to_move
        self._room_to_refresh = situation.snapshot.pending.room_to_touch
        self._broken: set[str] = set()
        self._specs: dict[tuple[str, str], UpdateSpec | Refusal] = {}
        self._by_hash = {short_hash(revision.metadata.name): revision for revision in situation.history}
        self._by_hash[short_hash(situation.update.metadata.name)] = situation.update
        self._moves: dict[str, str] = {}
        self._target = situation.update
        self._error = ""
        self._stopped_at = ""

    def step(self, *, may_move: bool) -> UpdateStep:
        unsettled: list[PodFacts] = []
        for fact in self._situation.facts:
            if fact.is_pending:
                self._hold(fact, causes.UPDATING, "writes to it are under way", "it goes on by itself")
            elif not fact.is_settled and fact.name not in self._touched:
                unsettled.append(fact)
        if len(unsettled) > self._room_to_refresh:
            unsettled.sort(key=_unchanged_since)
        for fact in unsettled:
            if len(self._refreshes) < self._room_to_refresh:
                self._refresh(fact)
            else:
                self._stepping.add(fact.name)
                self._hold(fact, causes.NEXT, "its turn comes when the pods before it were written to", "")
        if may_move:
            self._move()
        else:
            self._let_scaling_come_first()
        refreshes = tuple(chain for name, chain in self._refreshes.items() if name not in self._updates)
        return UpdateStep(
            refresh=Phase(
                name=REFRESH,
                chains=refreshes,
                on_error=OnError.CONTINUE,
                pause_after=_LONGEST_PASS,
                detaches=True,
                # Before those that are to move next: these serve nobody, the others serve while they wait in line.
                urgency=Urgency.SOON,
            ),
            update=Phase(
                name=UPDATE,
                chains=tuple(self._updates.values()),
                on_error=OnError.STOP_PHASE,
                unless_done=("scale",),
                pause_after=_LONGEST_PASS,
                # Pods that are only prepared, or marked for deletion, are not on their way to the revision yet.
                detaches=all(self._moves.get(name) == IN_PLACE for name in self._updates),
                mark=self._target.metadata.name,
            ),
            held=tuple(
                Held(target=Target(PODS, self._situation.owner.namespace, name), causes=held)
                for name, held in sorted(self._causes.items())
                if name not in self._updates
            ),
            wakes=tuple(self._wakes),
            moves=self._moves,
            target=self._target,
            error=self._error,
        )

    # Refreshing

    def _refresh(self, fact: PodFacts) -> None:
        pod = fact.pod
        refreshed = engine.refresh(pod, options=self._options, now=self._situation.now)
        if refreshed.error:
            self._broken.add(fact.name)
            self._hold(fact, causes.BROKEN_ANNOTATION, refreshed.error, "correct or remove the annotation")
            return
        edit = refreshed.edit
        if refreshed.stepped:
            self._stepping.add(fact.name)
        else:
            edit = self._with_state(fact, edit)
        if keys.TEMPLATE_HASH_LABEL not in pod.metadata.labels and keys.REVISION_LABEL in pod.metadata.labels:
            hashed = short_hash(pod.metadata.labels[keys.REVISION_LABEL])
            edit = edit.merged(PodEdit(labels={keys.TEMPLATE_HASH_LABEL: hashed}))
            self._changing.add(fact.name)
        if refreshed.wake_after is not None:
            self._wakes.append(Wake(after=refreshed.wake_after, reason="the grace period of an in-place update"))
            self._hold(fact, causes.GRACE, refreshed.awaiting, "it goes on by itself when the grace period is over")
        elif refreshed.awaiting:
            self._hold(fact, causes.UPDATING, refreshed.awaiting, "see the pod's events if this takes long")
        if not edit.is_empty:
            self._refreshes[fact.name] = edits.writes(pod, edit, reason="refresh", resize_subresource=self._resize)

    def _with_state(self, fact: PodFacts, edit: PodEdit) -> PodEdit:
        pod = fact.pod
        state = lifecycle.refreshed(
            pod,
            self._lifecycle,
            complete=lambda: is_complete(pod, vertical_scaling=self._options.vertical_scaling),
            at_update_revision=fact.is_new,
        )
        if state is None:
            self._say_what_hook_it_waits_for(fact)
            return edit
        entering = lifecycle.enter(pod, state, self._lifecycle, now=self._situation.now)
        if entering is None:
            return edit
        self._changing.add(fact.name)
        return edit.merged(entering)

    def _say_what_hook_it_waits_for(self, fact: PodFacts) -> None:
        hooks = self._lifecycle
        if fact.state == State.PREPARING_NORMAL:
            if not fact.pod.spec.node_name:
                self._hold(fact, causes.UNSCHEDULED, "the pod has no node yet", "see the pod's events for the reason")
            elif hooks is not None and (wanted := lifecycle.lacking(fact.pod, hooks.pre_normal)):
                self._hold(fact, causes.HOOK, wanted, "add what the hook names")
        elif fact.state == State.UPDATED and hooks is not None and hooks.in_place_update is not None:
            wanted = lifecycle.lacking(fact.pod, hooks.in_place_update)
            self._hold(fact, causes.HOOK, wanted, "add back what the hook names")

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
            same_revision=situation.current.metadata.name == situation.update.metadata.name,
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
        repairs = any(fact.name in self._failed for fact in waiting)
        # A pod that scaling is about to delete stays out of it, also where the deletion does not succeed.
        candidates = [
            fact
            for fact in waiting
            if fact.name not in self._touched
            and not fact.is_pending
            and (fact.state == State.UPDATED or not self._is_busy(fact))
        ]
        if any(fact.name in self._changing for fact in candidates):
            return  # decided again when their states are written
        everybody = len(candidates) <= abs(numbers.count) and not repairs
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
        if repairs:
            queue.sort(key=lambda fact: fact.name not in self._failed)
        for fact in queue[abs(numbers.count) :]:
            self._leave(fact)
        for fact in self._within_limits(queue[: abs(numbers.count)], target_is_new=not back, budget=numbers.budget):
            if self._error:
                at = {"pods": [self._stopped_at]}
                self._hold(fact, causes.STOPPED, f"the update stopped: {self._error}", "see what holds that pod", at)
            elif len(self._updates) >= self._room_to_move:
                self._hold(fact, causes.NEXT, "its turn comes when the pods before it have begun to move", "")
            else:
                self._move_one(fact, target)

    def _let_scaling_come_first(self) -> None:
        for fact in self._situation.facts:
            if not fact.is_new and not fact.is_preparing_delete:
                self._hold(fact, causes.NEXT, "scaling comes first, when the writes under way have ended", "")

    def _leave(self, fact: PodFacts) -> None:
        """The pod is not to move. If it was prepared for that, it takes its way back: otherwise it would stay out of
        service for as long as nobody wants to move it."""
        if fact.is_pending:
            return
        if fact.state == State.PREPARING_UPDATE and fact.name not in self._touched:
            pod, now = fact.pod, self._situation.now
            state = lifecycle.called_off(pod, self._lifecycle)
            entering = lifecycle.enter(pod, state, self._lifecycle, now=now)
            if entering is not None:
                self._updates[fact.name] = edits.writes(pod, entering, reason="its update is not wanted any more")
        elif self._stop is not None:
            self._causes[fact.name] = (*self._causes.get(fact.name, ()), cause_of(self._stop))
        else:
            self._hold_by_partition(fact)

    def _stay_old(self) -> None:
        """The rollout has stopped by itself: whoever is not at the update revision does not go there."""
        for fact in self._situation.facts:
            if not fact.is_new and not fact.is_preparing_delete:
                self._leave(fact)

    def _is_busy(self, fact: PodFacts) -> bool:
        return fact.name in self._broken or fact.name in self._stepping or in_grace(fact.pod)

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
        spec = self._spec_for(fact, target)
        if isinstance(spec, Refusal):
            if self._policy == IN_PLACE_ONLY:
                self._stopped_at = fact.name
                self._error = f"find Pod {fact.name} update strategy is InPlaceOnly but can not update in-place"
                remedy = "undo that change of the template, or use InPlaceIfPossible"
                self._hold(fact, causes.IN_PLACE_ONLY, f"cannot be updated in place: {spec.message}", remedy)
                return
            self._recreate(fact)
            return
        self._update_in_place(fact, spec, target)

    def _update_in_place(self, fact: PodFacts, spec: UpdateSpec, target: ControllerRevision) -> None:
        pod, now = fact.pod, self._situation.now
        hook = lifecycle.in_place_hook(self._lifecycle)
        match lifecycle.before_update(pod, self._lifecycle):
            case Turn.HOLD:
                self._hold(fact, causes.HOOK, lifecycle.waiting_for(pod, hook), "remove what the hook names")
            case Turn.PREPARE:
                entering = lifecycle.enter(pod, State.PREPARING_UPDATE, self._lifecycle, now=now)
                if entering is not None:
                    self._updates[fact.name] = edits.writes(pod, entering, reason="prepare for update")
            case Turn.REHOOK:
                edit = lifecycle.rehook(pod, self._lifecycle, now=now)
                self._updates[fact.name] = edits.writes(pod, edit, reason="prepare for another update")
            case Turn.REFUSE:
                self._stopped_at = fact.name
                self._error = f"not allowed to in-place update pod {fact.name} in state {fact.state}"
            case Turn.UPDATE:
                self._moves[fact.name] = IN_PLACE
                self._updates[fact.name] = engine.begin(
                    pod,
                    spec,
                    labels=self._revision_labels(target),
                    state=lifecycle.state_during_update(pod, self._lifecycle),
                    options=self._options,
                    now=now,
                    new=target,
                    resize_subresource=self._resize,
                )
                if spec.grace_seconds > 0:
                    wake = Wake(after=float(spec.grace_seconds), reason="the grace period of an in-place update")
                    self._wakes.append(wake)

    def _recreate(self, fact: PodFacts) -> None:
        """Mark the pod; scaling deletes it within its budget and makes the successor (CS-104)."""
        if keys.SPECIFIED_DELETE_LABEL in fact.pod.metadata.labels:
            return
        edit = PodEdit(labels={keys.SPECIFIED_DELETE_LABEL: "true"})
        self._moves[fact.name] = RECREATE
        self._updates[fact.name] = edits.writes(fact.pod, edit, reason="recreate for update")

    def _spec_for(self, fact: PodFacts, target: ControllerRevision) -> UpdateSpec | Refusal:
        hashed = short_hash(fact.pod.metadata.labels.get(keys.REVISION_LABEL, ""))
        pair = (hashed, target.metadata.name)
        found = self._specs.get(pair)
        if found is None:
            found = compare(self._by_hash.get(hashed), target, self._options)
            rolling = self._situation.rolling
            strategy = rolling.in_place_update_strategy if rolling is not None else None
            if isinstance(found, UpdateSpec) and strategy is not None and strategy.grace_period_seconds > 0:
                found = codec.evolve(found, grace_seconds=strategy.grace_period_seconds)
            self._specs[pair] = found
        return found

    def _revision_labels(self, target: ControllerRevision) -> Mapping[str, str]:
        return revision_labels(target.metadata.name, short=self._situation.gate("CloneSetShortHash"))

    @property
    def _resize(self) -> bool:
        return self._situation.snapshot.resize_subresource

    # Saying why

    def _nobody_moves(self) -> None:
        for fact in self._situation.facts:
            goes_back = fact.is_new and self._situation.limits.rolls_back
            if (fact.is_new and not goes_back) or fact.is_preparing_delete:
                continue
            if self._situation.is_on_delete:
                remedy = "delete the pod when it suits you; its successor has the new revision"
                self._hold(fact, causes.ON_DELETE, "updateStrategy.type is OnDelete: pods are only replaced", remedy)
            else:
                self._hold(
                    fact, causes.PAUSED, "the update is paused", "set updateStrategy.rollingUpdate.paused to false"
                )

    def _hold_by_partition(self, fact: PodFacts) -> None:
        limits = self._situation.limits
        if limits.partition > 0:
            message = f"partition keeps {limits.partition} pods at their old revision"
            self._hold(fact, causes.PARTITION, message, "lower updateStrategy.rollingUpdate.partition")
        else:
            message = "enough other pods are new or on their way; this one is one too many"
            self._hold(fact, SURGE, message, "it is removed when the others are available")

    def _hold_by_limit(self, waiting: list[PodFacts], budget: int) -> None:
        blockers = [fact.name for fact in self._situation.facts if not fact.is_available]
        message = f"maxUnavailable {self._situation.limits.max_unavailable} allows {budget} unavailable pods"
        message += f"; used up by {listed(blockers)}" if blockers else ""
        details = {"budget": budget, "unavailable": blockers}
        cause = causes.MAX_UNAVAILABLE.cause(message, details=details, remedy="wait for these pods, or repair them")
        for fact in waiting:
            self._causes[fact.name] = (*self._causes.get(fact.name, ()), cause)

    def _hold(
        self, fact: PodFacts, why: Meaning, message: str, remedy: str, details: Mapping[str, Any] | None = None
    ) -> None:
        cause = why.cause(message, details=details, remedy=remedy)
        self._causes[fact.name] = (*self._causes.get(fact.name, ()), cause)


def _unchanged_since(fact: PodFacts) -> int:
    """Small for those that have waited longest: what is to be written follows from their latest change."""
    version = fact.pod.metadata.resource_version
    return int(version) if version.isdecimal() else 0


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
