"""Bringing a StatefulSet's pods to their revision: who goes next, as far as order, partition and maxUnavailable allow
(ST-66 to ST-79, ST-90). How a pod moves is `shared.moving`'s.

Whoever serves nobody costs nothing: a pod that is down goes to its revision whatever else is down, and a broken one
also before its turn. So a bad revision never keeps its own repair from reaching the pods that it broke (ST-75).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from kruise.api.apps.shared import IN_PLACE_ONLY, IN_PLACE_POLICIES
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS
from kruise.inplace.difference import InPlaceOptions, Refusal
from kruise.inplace.lifecycle import State
from kruise.inplace.order import by_priority
from kruise.inplace.resizing import refused_resize
from kruise.machinery import plan as plans
from kruise.machinery.plan import Chain, EventNote, Held, OnError, Phase, Target, Wake
from kruise.machinery.wording import listed
from kruise.workloads.shared import causes, waiting
from kruise.workloads.shared.events import warning
from kruise.workloads.shared.failure_budget import look_at
from kruise.workloads.shared.failures import NO_BUDGET, Failures, cause_of
from kruise.workloads.shared.leaving import held_by_hook
from kruise.workloads.shared.moving import PodMover
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.statefulset.causes import ORDER
from kruise.workloads.statefulset.creation import is_updated, revision_labels
from kruise.workloads.statefulset.limits import strategy_of
from kruise.workloads.statefulset.scale import ScaleStep
from kruise.workloads.statefulset.situation import Situation, Slot
from kruise.workloads.statefulset.volumes import READY, VOLUMES, Growth, claims_grow, growth_of, is_growing

RECREATE = "recreate"
SPECIFIED = "specified"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStep:
    phases: tuple[Phase, ...]
    held: tuple[Held, ...]
    wakes: tuple[Wake, ...]
    events: tuple[EventNote, ...]
    moves: Mapping[str, str]
    """How the pods of the update phase move, by name; one that is only prepared is not among them."""
    target: ControllerRevision
    """Where they move."""
    error: str = ""
    """Why the step came to an end early; it is tried again."""


def update(situation: Situation, scaling: ScaleStep, failures: Failures = NO_BUDGET) -> UpdateStep:
    return _Updating(situation, scaling, failures).step()


class _Updating:
    """One pass over the pods: who moves, and who waits for what."""

    def __init__(self, situation: Situation, scaling: ScaleStep, failures: Failures) -> None:
        self._situation = situation
        self._scaling = scaling
        self._stop = failures.stop
        self._limits = situation.limits
        strategy = strategy_of(situation.statefulset.spec)
        self._policy = strategy.pod_update_policy
        unordered = strategy.unordered_update
        self._priority = unordered.priority_strategy if unordered is not None else None
        grace = strategy.in_place_update_strategy
        self._mover = PodMover(
            situation,
            hooks=situation.statefulset.spec.lifecycle,
            options=InPlaceOptions.of(situation.gates),
            revision_labels=revision_labels,
            grace_seconds=grace.grace_period_seconds if grace is not None else 0,
        )
        self._goes_back = self._limits.rolls_back
        self._target = situation.current if self._goes_back else situation.update
        self._grows = claims_grow(situation)
        self._growths: dict[str, Chain] = {}
        self._held: list[Held] = []
        self._events: list[EventNote] = []
        self._down = {slot.name for slot in situation.slots if not self._serves(slot)}
        """Pods that use up maxUnavailable (ST-70)."""

    def _serves(self, slot: Slot) -> bool:
        return slot.is_available and not (self._grows and is_growing(self._situation, slot))

    def step(self) -> UpdateStep:
        mover = self._mover
        mover.refresh(without=self._scaling.touched)
        self._move()
        refresh = mover.refresh_phase
        moving = mover.update_phase(self._target)
        growing = Phase(name=VOLUMES, chains=tuple(self._growths.values()), on_error=OnError.CONTINUE)
        if moving.chains:
            refresh = dataclasses.replace(refresh, alongside=True)
        return UpdateStep(
            phases=tuple(phase for phase in (growing, mover.budget_phase, moving, refresh) if phase.chains),
            held=(*self._held, *mover.held),
            wakes=tuple(mover.wakes),
            events=tuple(self._events),
            moves=mover.moves,
            target=self._target,
            error=mover.error,
        )

    # Who moves

    def _move(self) -> None:
        limits = self._limits
        if limits.is_on_delete or limits.is_paused:
            for slot in self._situation.slots:
                self._stand_still(slot)
            return
        for slot in reversed(self._situation.slots):
            if slot.fact is not None and slot.fact.is_specified and self._may_be_touched(slot.fact):
                self._delete_specified(slot, slot.fact)
        targets = self._targets()
        chosen = {slot.name for slot in targets}
        for slot in self._situation.slots:
            if slot.name not in chosen:
                self._stay(slot)
        self._walk(targets)

    def _targets(self) -> list[Slot]:
        """The pods that should be at the revision, in the order in which they go there (ST-72, ST-73)."""
        slots = list(reversed(self._situation.slots))
        if self._limits.is_stopped:
            return slots if self._goes_back else []
        count = max(len(slots) - self._limits.partition, 0)
        if not self._limits.is_unordered:
            return slots[:count]
        first = [slot for slot in slots if self._counts_as_updated(slot)]
        rest = {slot.name: slot for slot in slots if not self._counts_as_updated(slot)}
        pods = [slot.pod for slot in rest.values() if slot.pod is not None]
        ordered = [rest.pop(pod.metadata.name) for pod in by_priority(pods, self._priority)]
        return [*first, *ordered, *rest.values()][:count]

    def _counts_as_updated(self, slot: Slot) -> bool:
        if slot.pod is None:
            planned = self._scaling.planned.get(slot.name, self._situation.update)
            return planned.metadata.name == self._situation.update.metadata.name
        return slot.is_terminating or is_updated(self._situation, slot)

    def _may_be_touched(self, fact: PodFacts) -> bool:
        """Whether nobody else decides about the pod in this pass."""
        return not fact.is_pending and not fact.is_preparing_delete and fact.name not in self._scaling.touched

    def _walk(self, targets: Sequence[Slot]) -> None:
        """ST-74. A pod that is missing, or on its way out, is scaling's."""
        limited: list[PodFacts] = []
        ahead = ""
        for slot in targets:
            fact, before = slot.fact, ahead
            if self._limits.is_ordered and not ahead and slot.name in self._down:
                ahead = slot.name
            if fact is None or not self._may_be_touched(fact) or slot.name in self._mover.updates:
                continue
            growth = growth_of(self._situation, slot) if self._grows and not self._goes_back else READY
            if self._is_there(fact) and growth.cause is None:
                continue
            if fact.name in self._mover.changing or (fact.state != State.UPDATED and self._mover.is_busy(fact)):
                continue  # decided again when what is written now has arrived
            if error := self._mover.error:
                at = {"pods": [self._mover.stopped_at]}
                self._mover.hold(fact, causes.STOPPED, f"the update stopped: {error}", "see what holds that pod", at)
            elif slot.name not in self._down and self._is_full:
                limited.append(fact)
            elif slot.name in self._down and (before or limited) and not self._goes_before_its_turn(fact):
                self._hold_in_order(fact, before or limited[0].name)
            elif self._mover.is_full:
                self._mover.hold(fact, causes.NEXT, "its turn comes when the pods before it have begun to move", "")
            elif growth.cause is not None:
                self._grow(fact, growth)
            else:
                self._move_one(slot, fact)
        if limited:
            self._hold_by_limit(limited)

    def _is_there(self, fact: PodFacts) -> bool:
        return fact.is_new is not self._goes_back

    @property
    def _is_full(self) -> bool:
        """Nobody who serves may be touched now."""
        return self._scaling.waits or len(self._down) >= self._limits.max_unavailable

    def _goes_before_its_turn(self, fact: PodFacts) -> bool:
        """A pod that was prepared had its turn, and does not come back before it has moved: those that come first may
        wait for it."""
        return fact.state == State.PREPARING_UPDATE or self._is_broken(fact)

    def _is_broken(self, fact: PodFacts) -> bool:
        situation = self._situation
        if fact.state == State.UPDATING:
            if refused_resize(fact.pod) is not None:
                return True  # it may serve, with the resources that it had, and gets no further
        elif fact.is_ready:
            return False
        look = look_at(fact.pod, deadline_seconds=int(waiting.PATIENCE), now=situation.now)
        if look.due_after is not None:
            reason = f"pod {fact.name} counts as broken if it is not ready by then"
            self._mover.wakes.append(Wake(after=look.due_after, reason=reason))
        return bool(look.failure)

    # How they move

    def _delete_specified(self, slot: Slot, fact: PodFacts) -> None:
        """ST-90. One that serves is left until the limit has room, and the next one is looked at."""
        if slot.name not in self._down and self._is_full:
            blockers = sorted(self._down)
            cause = causes.DELETION_BUDGET.cause(
                f"its deletion was asked for; maxUnavailable {self._limits.max_unavailable} is used up by"
                f" {listed(blockers) or 'pods that are scaled'}",
                details={"unavailable": blockers},
                remedy="it is deleted when these pods are available",
            )
            self._mover.hold_all((fact,), cause)
            return
        self._delete(fact, SPECIFIED, "its deletion was asked for")

    def _move_one(self, slot: Slot, fact: PodFacts) -> None:
        if fact.is_specified:
            return  # it waits to be deleted, and its successor has the right revision
        self._down.add(slot.name)
        if self._policy not in IN_PLACE_POLICIES:
            self._delete(fact, RECREATE, f"it is made anew at {self._target.metadata.name}")
            return
        spec = self._mover.spec_for(fact, self._target)
        if not isinstance(spec, Refusal):
            self._mover.update_in_place(fact, spec, self._target)
        elif self._policy == IN_PLACE_ONLY:
            self._mover.stopped_at = fact.name
            self._mover.error = f"pod {fact.name} cannot be updated in place, and podUpdatePolicy is InPlaceOnly"
            remedy = "undo that change of the template, or use InPlaceIfPossible"
            self._mover.hold(fact, causes.IN_PLACE_ONLY, f"cannot be updated in place: {spec.message}", remedy)
        else:
            self._delete(fact, RECREATE, f"it is made anew at {self._target.metadata.name}")

    def _delete(self, fact: PodFacts, move: str, reason: str) -> None:
        """Through the preDelete hook (ST-105). From then on the pod counts as down."""
        stay = held_by_hook(fact.pod, self._situation.statefulset.spec.lifecycle, now=self._situation.now)
        self._down.add(fact.name)
        cause = self._situation.permits.may_delete(fact.pod) if stay is None else None
        if cause is not None:
            self._mover.refused(fact, cause)
            return
        if stay is not None:
            self._held.append(stay.held)
            if stay.chain:
                self._mover.updates[fact.name] = stay.chain
            return
        self._mover.moves[fact.name] = move
        target = Target.of(PODS, fact.pod)
        self._mover.updates[fact.name] = (plans.delete(target, uid=fact.pod.metadata.uid, reason=reason),)

    def _grow(self, fact: PodFacts, growth: Growth) -> None:
        """ST-94: the pod follows when its claims have grown."""
        if growth.cause is None:
            return
        self._mover.hold_all((fact,), growth.cause)
        if growth.is_refused:
            self._mover.stopped_at, self._mover.error = fact.name, growth.cause.message
            self._events.append(warning("FailedUpdatePVC", f"{growth.cause.message}; {growth.cause.remedy}"))
            return
        self._down.add(fact.name)
        if growth.chain:
            self._growths[fact.name] = growth.chain

    # Who stays, and why

    def _stay(self, slot: Slot) -> None:
        """The pod is not to move. If it was prepared for that, it takes its way back."""
        fact = slot.fact
        if fact is None or fact.is_new or not self._may_be_touched(fact) or slot.name in self._mover.updates:
            return
        if fact.state == State.PREPARING_UPDATE:
            self._mover.call_off(fact)
        elif self._stop is not None:
            self._mover.hold_all((fact,), cause_of(self._stop))
        else:
            self._mover.hold_all((fact,), causes.kept_old(self._limits.partition))

    def _stand_still(self, slot: Slot) -> None:
        """ST-68, ST-79: neither updates nor deletions that were asked for."""
        fact = slot.fact
        if fact is None or fact.is_preparing_delete or (self._is_there(fact) and not fact.is_specified):
            return
        self._mover.hold_all((fact,), causes.stands_still(is_on_delete=self._limits.is_on_delete))

    def _hold_by_limit(self, limited: Sequence[PodFacts]) -> None:
        blockers = sorted(self._down)
        if not blockers:
            first = self._situation.condemned[0].name
            message = f"scaling comes first, and {first} is still there"
            cause = ORDER.cause(message, details={"unavailable": [first]}, remedy=f"see what keeps {first}")
        else:
            most = self._limits.max_unavailable
            cause = causes.MAX_UNAVAILABLE.cause(
                f"maxUnavailable {most} is used up by {listed(blockers)}",
                details={"budget": most, "unavailable": blockers},
                remedy="wait for these pods, or repair them",
            )
        self._mover.hold_all(limited, cause)

    def _hold_in_order(self, fact: PodFacts, first: str) -> None:
        """It is down itself, so it may well come back while it waits. Once it counts as broken it waits for nobody."""
        message = f"its turn comes after {first}, or when it has been down for {waiting.PATIENCE:.0f} s"
        self._mover.hold(fact, causes.NEXT, message, f"see what keeps {first}", {"unavailable": [first]})
