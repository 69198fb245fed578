"""Bringing a CloneSet to its number of pods (CS section 8), and letting go of pods that are not its own any more.

The steps come in a fixed order, and the first one that changes something ends the phase: the next pass looks at what
came of it. A wish for more pods ends it in any case: no pod is chosen for deletion in a pass that wants to scale up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from kruise.api.native.pod import PODS
from kruise.inplace import edits, lifecycle
from kruise.inplace.availability import serves
from kruise.inplace.lifecycle import State
from kruise.machinery import ownership
from kruise.machinery import plan as plans
from kruise.machinery.plan import Chain, EventNote, EventType, Held, OnError, Phase, Target
from kruise.machinery.wording import listed, plural
from kruise.workloads.cloneset.causes import PREPARING_DELETE
from kruise.workloads.cloneset.claims import claims_by_id, delete_claim, hand_over, id_of, mark_for_deletion
from kruise.workloads.cloneset.creation import create_pods
from kruise.workloads.cloneset.deletion_order import choose_for_deletion, topology_keys
from kruise.workloads.cloneset.numbers import ScaleNumbers, counts_of, scale_numbers
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared import causes
from kruise.workloads.shared.leaving import held_by_hook
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.shared.scaling_phases import creation, deletion, most_at_once

SCALE = "scale"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStep:
    phase: Phase | None = None
    """None: nothing to do."""
    events: tuple[EventNote, ...] = ()
    """Events that are known before anything is written."""
    held: tuple[Held, ...] = ()
    touched: frozenset[str] = frozenset()
    """Names of the pods that the phase writes to."""


def scale(situation: Situation) -> ScaleStep:
    if situation.owner.is_deleted:
        return ScaleStep()
    return _Scaling(situation).step()


def release(situation: Situation) -> Phase:
    """Let go of pods that the selector no longer matches (CS-67), unless the CloneSet itself goes.

    Claims go over to the released pod first. Left with the CloneSet they would be deleted under a running pod, or be
    taken for free, and the next pod could not be made, because the released one still has its name.
    """
    chains: list[Chain] = []
    if situation.released and not situation.owner.is_deleted:
        claims, owner = claims_by_id(situation), situation.owner
        for pod in situation.released:
            reason = f"it stays with pod {pod.metadata.name}, which is released"
            kept = (hand_over(claim, pod, owner, reason=reason) for claim in claims.get(id_of(pod), ()))
            chains.append((*kept, ownership.release(PODS, pod, owner)))
    return Phase(name="release", chains=tuple(chains), on_error=OnError.CONTINUE)


class _Scaling:
    """One pass over the steps. Collects chains, events and causes; changes nothing else."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._facts = situation.facts
        self._lifecycle = situation.cloneset.spec.lifecycle
        self._preparing_as_new = situation.gate("PreparingUpdateAsUpdate")
        self._excludes_preparing_delete = (
            situation.cloneset.spec.scale_strategy.exclude_preparing_delete
            or situation.snapshot.exclude_preparing_delete
        )
        self._reuses_claims = situation.cloneset.spec.scale_strategy.enable_pvc_reuse
        self._numbers = self._count()
        self._chains: list[Chain] = []
        self._events: list[EventNote] = []
        self._held: list[Held] = []
        self._touched: set[str] = set()
        self._creates = False

    def _count(self) -> ScaleNumbers:
        situation = self._situation
        return scale_numbers(
            counts_of(self._facts, scaling=True, preparing_as_new=self._preparing_as_new),
            situation.limits,
            situation.replicas,
            same_revision=situation.is_at_one_revision,
            can_roll_back=situation.gate("CloneSetPartitionRollback") or situation.limits.rolls_back,
            exclude_preparing_delete=self._excludes_preparing_delete,
        )

    def step(self) -> ScaleStep:
        steps: tuple[Callable[[], bool], ...] = (
            self._cancel_scale_in,
            self._scale_up,
            self._finish_deletions,
            self._delete_specified,
            self._scale_down,
        )
        for take in steps:
            if take():
                break
        phase = None
        if self._chains:
            phase = (creation if self._creates else deletion)(SCALE, self._chains)
        return ScaleStep(
            phase=phase, events=tuple(self._events), held=tuple(self._held), touched=frozenset(self._touched)
        )

    # The steps. Each says whether the phase ends with it.

    def _cancel_scale_in(self) -> bool:
        """Pods that were to be scaled in come back when they are wanted again (CS-80)."""
        hooks = self._lifecycle
        if hooks is not None and any(
            hook is not None and hook.mark_pod_not_ready for hook in (hooks.pre_delete, hooks.in_place_update)
        ):
            return False
        on_their_way = [facts for facts in self._facts if facts.is_preparing_delete]
        leaving = sum(facts.is_specified or facts.is_preparing_delete for facts in self._facts)
        wanted = self._situation.replicas - len(self._facts) + leaving
        if wanted <= 0:
            return False
        back = [facts for facts in on_their_way if not facts.is_specified]
        for facts in back[:wanted]:
            self._enter(facts, State.PREPARING_NORMAL, "it is wanted again: its scale-in is cancelled")
        return bool(self._chains)

    def _scale_up(self) -> bool:
        """CS-81. Ends the phase whatever the limit allows.

        Where it allows nothing, deletions in progress go on: the pods that they are about count as unavailable, and
        could be the very ones that leave no room for others.
        """
        numbers = self._numbers
        if numbers.up <= 0:
            return False
        if numbers.up > numbers.limit:
            self._limited()
        most = most_at_once(self._situation.pending)
        created = create_pods(
            self._situation,
            at_current=min(numbers.create_current, most),
            at_update=min(numbers.limit, most) - min(numbers.create_current, most),
            reason=self._why_create(),
        )
        self._chains += created.chains
        self._held += created.held
        self._creates = bool(created.chains)
        if not self._creates:
            self._finish_deletions()
            self._hold_until_scaled_up()
        return True

    def _finish_deletions(self) -> bool:
        """Pods that prepare for their deletion go as soon as no hook holds them (CS-82)."""
        self._delete(
            (facts for facts in self._facts if facts.is_preparing_delete), "nothing holds its deletion any more"
        )
        return bool(self._chains)

    def _delete_specified(self) -> bool:
        """CS-83."""
        specified = [facts for facts in self._facts if facts.is_specified and not facts.is_preparing_delete]
        self._delete(self._within_budget(specified), "its deletion was asked for")
        return bool(self._chains)

    def _scale_down(self) -> bool:
        """CS-84. Waits until pods that were chosen before are gone, since they may be enough."""
        numbers = self._numbers
        if numbers.down <= 0:
            return False
        leaving = [facts.name for facts in self._facts if facts.is_specified or facts.is_preparing_delete]
        if leaving:
            self._hold_scale_down(leaving)
            return False
        situation = self._situation
        chosen = choose_for_deletion(
            self._facts,
            numbers,
            preparing_as_new=self._preparing_as_new,
            topologies=topology_keys(situation.templates[situation.update.metadata.name]),
            node_labels=situation.snapshot.node_labels,
        )
        wanted = situation.replicas + numbers.surge
        there = plural(len(self._facts), "pod", "is there", "are there")
        reason = f"{there}, {wanted} {'is' if wanted == 1 else 'are'} wanted"
        self._delete(self._within_budget(chosen), reason)
        return bool(self._chains)

    # Deleting

    def _within_budget(self, candidates: Iterable[PodFacts]) -> list[PodFacts]:
        """Pods that are not ready cost nothing; ready ones go as far as the budget lasts (CS-78).

        The budget does not count pods as unavailable whose deletion was asked for. Where such a pod is down already,
        the budget alone would let one pod too many go, so no available pod goes that maxUnavailable cannot do without.
        """
        situation = self._situation
        left = self._numbers.delete_budget
        spare = sum(facts.is_available for facts in self._facts)
        spare -= max(situation.replicas - situation.limits.max_unavailable, 0)
        chosen: list[PodFacts] = []
        waiting: list[PodFacts] = []
        for facts in candidates:
            if not is_ready_for_budget(facts):
                chosen.append(facts)
            elif left > 0 and (spare > 0 or not facts.is_available):
                left -= 1
                spare -= facts.is_available
                chosen.append(facts)
            else:
                waiting.append(facts)
        if waiting:
            self._hold_for_budget(waiting)
        return chosen

    def _delete(self, chosen: Iterable[PodFacts], reason: str) -> None:
        """CS-86: a hooked pod prepares for its deletion, any other is deleted and its claims after it."""
        claims = None
        for facts in chosen:
            stay = held_by_hook(facts.pod, self._lifecycle, now=self._situation.now)
            if stay is not None:
                self._held.append(stay.held)
                if stay.chain:
                    self._chains.append(stay.chain)
                    self._touched.add(facts.name)
                continue
            if (cause := self._situation.permits.may_delete(facts.pod)) is not None:
                self._held.append(Held(target=Target.of(PODS, facts.pod), causes=(cause,)))
                continue
            if claims is None:
                claims = claims_by_id(self._situation)
            delete = plans.delete(Target.of(PODS, facts.pod), uid=facts.pod.metadata.uid, reason=reason)
            its_claims = claims.get(id_of(facts.pod), ())
            along = (delete_claim(claim, reason=f"it goes with pod {facts.name}") for claim in its_claims)
            # A claim that nobody reaches after its pod has gone must not pass for one that waits to be reused.
            marks = (mark_for_deletion(claim, facts.pod) for claim in its_claims) if self._reuses_claims else ()
            self._chains.append((*marks, delete, *along))
            self._touched.add(facts.name)

    def _enter(self, facts: PodFacts, state: State, reason: str) -> None:
        edit = lifecycle.enter(facts.pod, state, self._lifecycle, now=self._situation.now)
        if edit is not None:
            self._chains.append(edits.writes(facts.pod, edit, reason=reason))
            self._touched.add(facts.name)

    # Saying why

    def _why_create(self) -> str:
        have = sum(not (self._excludes_preparing_delete and facts.is_preparing_delete) for facts in self._facts)
        replicas, surge = self._situation.replicas, self._numbers.surge
        extra = f" and {surge} more while pods are replaced" if surge else ""
        if have < replicas:
            return f"{have} of {replicas} pods are there"
        return f"{plural(replicas, 'pod', 'is', 'are')} wanted{extra}"

    def _limited(self) -> None:
        numbers, limits = self._numbers, self._situation.limits
        message = f"scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {numbers.limit}"
        self._events.append(EventNote(reason="ScaleUpLimited", message=message, type=EventType.WARNING))
        blockers = [facts.name for facts in self._facts if not facts.is_available]
        cause = causes.SCALE_LIMIT.cause(
            f"{plural(numbers.up, 'pod', 'is', 'are')} missing,"
            f" scaleStrategy.maxUnavailable {limits.scale_max_unavailable} lets {numbers.limit} be created now;"
            f" not available: {_listed(blockers)}",
            details={"missing": numbers.up, "limit": numbers.limit, "unavailable": blockers},
            remedy="the others follow as pods become available; raise scaleStrategy.maxUnavailable for more at a time"
            if blockers
            else "",
        )
        self._held.append(Held(target=self._target, causes=(cause,)))

    def _hold_scale_down(self, leaving: list[str]) -> None:
        cause = PREPARING_DELETE.cause(
            f"{plural(self._numbers.down, 'pod')} too many;"
            f" first these go, which were chosen before: {_listed(leaving)}",
            details={"surplus": self._numbers.down, "leaving": leaving},
            remedy="scale-in goes on when they are gone",
        )
        self._held.append(Held(target=self._target, causes=(cause,)))

    def _hold_for_budget(self, waiting: list[PodFacts]) -> None:
        unavailable = [facts.name for facts in self._facts if not facts.is_available]
        limit = self._situation.limits.max_unavailable
        cause = causes.DELETION_BUDGET.cause(
            f"maxUnavailable {limit} lets {plural(self._numbers.delete_budget, 'ready pod')} be deleted now;"
            f" not available: {_listed(unavailable)}",
            details={"budget": self._numbers.delete_budget, "unavailable": unavailable},
            remedy="it is deleted when enough other pods are available",
        )
        self._held += (Held(target=Target.of(PODS, facts.pod), causes=(cause,)) for facts in waiting)

    def _hold_until_scaled_up(self) -> None:
        cause = causes.SCALE_LIMIT.cause(
            f"{plural(self._numbers.up, 'pod', 'is', 'are')} missing, to be created before this one is deleted",
            remedy="see what holds the creation of pods",
        )
        waiting = [facts for facts in self._facts if facts.is_specified and not facts.is_preparing_delete]
        self._held += (Held(target=Target.of(PODS, facts.pod), causes=(cause,)) for facts in waiting)

    @property
    def _target(self) -> Target:
        return Target.of(self._situation.owner.resource, self._situation.cloneset)


def is_ready_for_budget(facts: PodFacts) -> bool:
    """Whether the deletion of a pod takes away something that serves: available, but for minReadySeconds (IPU-112)."""
    return facts.is_ready and serves(facts.state)


def _listed(pods: list[str]) -> str:
    return listed(pods) or "none"
