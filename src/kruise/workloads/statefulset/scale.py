"""Bringing a StatefulSet to its pods (ST-59 to ST-65, ST-84, ST-105).

With OrderedReady a pod is made when all before it are available, and the highest one goes when all others are. With
Parallel everything happens at once, as far as `scaleStrategy.maxUnavailable` allows. What nobody waits for is done in
any case: a pod that finished, or whose hook lets it go, never keeps itself from being replaced (ST-64, ST-106).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from kruise.api.native.apps import ControllerRevision
from kruise.api.native.ordinals import POD_NAME_LABEL
from kruise.api.native.pod import PODS, Pod
from kruise.inplace import edits
from kruise.inplace.availability import serves
from kruise.inplace.edits import PodEdit
from kruise.machinery import plan as plans
from kruise.machinery.plan import Cause, Chain, Held, OnError, Phase, Target, Wake
from kruise.machinery.wording import listed, plural
from kruise.workloads.shared import causes
from kruise.workloads.shared.leaving import held_by_hook
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.shared.scaling_phases import creation, deletion, most_at_once
from kruise.workloads.statefulset.causes import NAME_TAKEN, ORDER, OVERDUE
from kruise.workloads.statefulset.creation import (
    Creator,
    identity_labels,
    leaving_claim,
    lost_claims,
    planned_revisions,
)
from kruise.workloads.statefulset.retention import corrections
from kruise.workloads.statefulset.situation import Situation, Slot

CREATE = "create"
DELETE = "delete"
CLAIMS = "claims"
IDENTITY = "identity"

_OVERDUE_AFTER = 60.0
"""Seconds after its grace period that a pod may still be terminating without anybody being told."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStep:
    phases: tuple[Phase, ...] = ()
    held: tuple[Held, ...] = ()
    wakes: tuple[Wake, ...] = ()
    touched: frozenset[str] = frozenset()
    """Names of the pods that the phases write to."""
    planned: Mapping[str, ControllerRevision] = dataclasses.field(default_factory=dict)
    """The revisions of the pods that are missing, by name."""
    waits: bool = False
    """Pods are not all where the spec wants them, and their order says that nothing that serves may be touched yet."""


def scale(situation: Situation) -> ScaleStep:
    return _Scaling(situation).step()


class _Scaling:
    """One pass over the ordinals. Collects chains and causes; changes nothing else."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        self._limits = situation.limits
        self._hooks = situation.statefulset.spec.lifecycle
        self._budget = situation.limits.scale_max_unavailable
        self._planned = planned_revisions(situation, [slot for slot in situation.slots if slot.is_missing])
        self._creator = Creator(situation)
        self._creates: list[Chain] = []
        self._deletes: list[Chain] = []
        self._claims: list[Chain] = []
        self._identities: list[Chain] = []
        self._held: list[Held] = []
        self._wakes: list[Wake] = []
        self._touched: set[str] = set()
        self._blocked_by = ""
        """With OrderedReady, the first pod that is not available: whatever comes after it waits."""

    def step(self) -> ScaleStep:
        waiting: list[str] = []
        limited: list[str] = []
        for slot in self._situation.slots:
            self._correct_owners(slot, is_condemned=False)
            if slot.is_missing:
                self._make(slot, waiting, limited)
            else:
                self._look_at(slot)
            if not slot.is_available:
                self._charge(slot)
        self._hold_missing(waiting, limited)
        self._scale_down()
        is_ordered = self._limits.is_ordered
        return ScaleStep(
            phases=tuple(phase for phase in self._phases() if phase.chains),
            held=tuple(self._held),
            wakes=tuple(self._wakes),
            touched=frozenset(self._touched),
            planned=self._planned,
            waits=is_ordered and bool(self._blocked_by or self._situation.condemned),
        )

    def _phases(self) -> tuple[Phase, ...]:
        return (
            Phase(name=CLAIMS, chains=tuple(self._claims), on_error=OnError.CONTINUE),
            creation(CREATE, self._creates, detaches=not self._limits.is_ordered),
            deletion(DELETE, self._deletes, alongside=bool(self._creates)),
            Phase(name=IDENTITY, chains=tuple(self._identities), on_error=OnError.CONTINUE),
        )

    # One ordinal after the other

    def _make(self, slot: Slot, waiting: list[str], limited: list[str]) -> None:
        """ST-60.2."""
        cause = leaving_claim(self._situation, slot)
        if self._blocked_by:
            waiting.append(slot.name)
        elif cause is not None:
            self._hold(slot, cause)
        elif self._budget == 0 or len(self._creates) >= most_at_once(self._situation.pending):
            limited.append(slot.name)
        else:
            revision = self._planned[slot.name]
            self._creates.append(self._creator.chain(slot, revision, f"the pod of ordinal {slot.ordinal} is missing"))

    def _look_at(self, slot: Slot) -> None:
        if slot.fact is not None:
            self._look_at_active(slot, slot.fact)
        elif slot.is_terminating and slot.ending is not None:
            self._hold_terminating(slot.ending)
        elif slot.ending is not None:
            phase = slot.ending.status.phase
            self._delete(slot.ending, f"it has ended ({phase}); a new one takes its place")  # ST-60.1
        elif slot.stranger is not None:
            self._hold_taken(slot, slot.stranger)

    def _look_at_active(self, slot: Slot, fact: PodFacts) -> None:
        if fact.is_pending:
            return
        pod = fact.pod
        if fact.is_preparing_delete:
            self._delete(pod, "nothing holds its deletion any more")
            return
        if pod.status.phase == "Pending" and (lost := lost_claims(self._situation, slot, pod)):
            self._claims.append(lost)
        if pod.metadata.labels.get(POD_NAME_LABEL) != slot.name:
            edit = PodEdit(labels=identity_labels(self._situation, slot))
            self._identities.append(edits.writes(pod, edit, reason="its labels do not tell which pod it is"))
            self._touched.add(slot.name)

    def _charge(self, slot: Slot) -> None:
        """A pod that is not available takes from the limit (ST-64), or ends the order here (ST-60.6)."""
        if self._limits.is_ordered:
            self._blocked_by = self._blocked_by or slot.name
        elif self._budget is not None:
            self._budget = max(self._budget - 1, 0)

    def _correct_owners(self, slot: Slot, *, is_condemned: bool) -> None:
        if chain := corrections(self._situation, slot, is_condemned=is_condemned):
            self._claims.append(chain)

    # Pods beyond the range

    def _scale_down(self) -> None:
        """ST-63, from the highest ordinal down."""
        condemned = self._situation.condemned
        if not self._limits.is_ordered:
            for slot in condemned:
                self._let_go(slot)
            return
        if not condemned:
            return
        unhealthy = _first_unhealthy((*self._situation.slots, *reversed(condemned)))
        first, *others = condemned
        waits_for = self._blocked_by
        if not waits_for and unhealthy != first.name and not (first.is_available or _is_leaving(first)):
            waits_for = unhealthy or first.name  # its own minReadySeconds
        if waits_for:
            self._hold_order(condemned, waits_for)
        else:
            self._let_go(first)
            self._hold_order(others, first.name)
        for slot in condemned if waits_for else others:
            self._correct_owners(slot, is_condemned=True)

    def _let_go(self, slot: Slot) -> None:
        pod = slot.pod
        if pod is None:
            return
        if slot.is_terminating:
            self._correct_owners(slot, is_condemned=True)
            self._hold_terminating(pod)
            return
        if slot.fact is not None and slot.fact.is_pending:
            return
        # A claim that is to go with the pod must know it before the pod goes (ST-82).
        self._delete(pod, "its ordinal is not wanted", before=corrections(self._situation, slot, is_condemned=True))

    def _delete(self, pod: Pod, reason: str, *, before: Chain = ()) -> None:
        """Through the preDelete hook (ST-105)."""
        stay = held_by_hook(pod, self._hooks, now=self._situation.now)
        if stay is not None:
            self._held.append(stay.held)
            chain = (*before, *stay.chain)
        elif (cause := self._situation.permits.may_delete(pod)) is not None:
            self._held.append(Held(target=Target.of(PODS, pod), causes=(cause,)))
            chain = before
        else:
            chain = (*before, plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason))
        if chain:
            self._deletes.append(chain)
            self._touched.add(pod.metadata.name)

    # Saying why

    def _hold(self, slot: Slot, *why: Cause) -> None:
        """A pod that is not there is the StatefulSet's own matter."""
        target = self._target if slot.pod is None else Target.of(PODS, slot.pod)
        self._held.append(Held(target=target, causes=why))

    def _hold_terminating(self, pod: Pod) -> None:
        """Whoever waits for its name, or for its turn, learns here what keeps it."""
        since, name = pod.metadata.deletion_timestamp, pod.metadata.name
        late = _seconds_late(since, self._situation.now)
        if late < 0:
            self._wakes.append(Wake(after=-late, reason=f"pod {name} should be gone by then"))
            cause = causes.TERMINATING.cause(
                "it is terminating; its successor is made when it is gone", remedy="it goes on by itself"
            )
        else:
            keeps = [f"finalizer {item}" for item in pod.metadata.finalizers]
            if pod.spec.node_name:
                keeps.append(f"node {pod.spec.node_name}")
            cause = OVERDUE.cause(
                f"it should have been gone {_OVERDUE_AFTER:.0f} s ago at the latest"
                + (f", and {' and '.join(keeps)} may keep it" if keeps else "")
                + "; until it is gone nobody knows that it does not run, so no other pod gets its name",
                details={"node": pod.spec.node_name, "finalizers": list(pod.metadata.finalizers)},
                remedy="see whether its node is alive",
            )
        self._held.append(Held(target=Target.of(PODS, pod), causes=(cause,)))

    def _hold_taken(self, slot: Slot, stranger: Pod) -> None:
        cause = NAME_TAKEN.cause(
            f"pod {slot.name} is there already and does not belong to {self._situation.owner.name}",
            details={"uid": stranger.metadata.uid},
            remedy="delete it, or give it the labels of the selector and no other owner, so that it is adopted",
        )
        self._hold(slot, cause)

    def _hold_missing(self, waiting: Sequence[str], limited: Sequence[str]) -> None:
        if waiting:
            cause = ORDER.cause(
                f"{listed(waiting)} {'is' if len(waiting) == 1 else 'are'} made when {self._blocked_by} is available",
                details={"missing": list(waiting), "unavailable": [self._blocked_by]},
                remedy=f"see what keeps {self._blocked_by} from being available",
            )
            self._held.append(Held(target=self._target, causes=(cause,)))
        if limited and self._limits.scale_max_unavailable is None:
            cause = causes.NEXT.cause(
                f"{plural(len(limited), 'more pod', 'is', 'are')} made when the ones before are written"
            )
            self._held.append(Held(target=self._target, causes=(cause,)))
        elif limited:
            unavailable = [slot.name for slot in self._situation.slots if slot.pod and not slot.is_available]
            limit = self._limits.scale_max_unavailable
            cause = causes.SCALE_LIMIT.cause(
                f"{listed(limited)} {'waits' if len(limited) == 1 else 'wait'}: scaleStrategy.maxUnavailable {limit} is"
                f" used up; not available: {listed(unavailable) or 'none'}",
                details={"missing": list(limited), "limit": limit, "unavailable": unavailable},
                remedy="the others follow as pods become available; raise scaleStrategy.maxUnavailable for more"
                if unavailable
                else "",
            )
            self._held.append(Held(target=self._target, causes=(cause,)))

    def _hold_order(self, waiting: Sequence[Slot], first: str) -> None:
        if not waiting:
            return
        cause = ORDER.cause(
            f"pods are removed one after the other, from the highest on, and {first} comes first or is not available",
            details={"unavailable": [first]},
            remedy=f"see what keeps {first}",
        )
        for slot in waiting:
            if slot.is_terminating and slot.pod is not None:
                self._hold_terminating(slot.pod)
            else:
                self._hold(slot, cause)

    @property
    def _target(self) -> Target:
        return Target.of(self._situation.owner.resource, self._situation.statefulset)


def _first_unhealthy(slots: Sequence[Slot]) -> str:
    """The pod with the lowest ordinal that is not healthy (ST-43, ST-59)."""
    low = sorted(slots, key=lambda slot: slot.ordinal)
    return next((slot.name for slot in low if not _is_healthy(slot)), "")


def _is_healthy(slot: Slot) -> bool:
    return slot.fact is not None and slot.fact.is_ready and serves(slot.fact.state)


def _is_leaving(slot: Slot) -> bool:
    """It was sent away already."""
    return slot.is_terminating or (slot.fact is not None and slot.fact.is_preparing_delete)


def _seconds_late(since: datetime | None, now: datetime) -> float:
    """How long a terminating pod has been overdue; negative: it is not yet."""
    if since is None:
        return -_OVERDUE_AFTER
    return (now - since - timedelta(seconds=_OVERDUE_AFTER)).total_seconds()
