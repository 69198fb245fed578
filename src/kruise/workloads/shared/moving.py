"""Pods on their way: refreshing those under way, and beginning updates in place. One pass over a workload's pods.

A pod that has arrived becomes ready and Normal, also while the rollout is paused. A kind decides which pods move next.
How one of them is brought to a revision in place, and through its hooks, is decided here for all kinds.

The update step does not wait for the refreshed states of pods that have arrived already. They count as unavailable
until the next pass sees them, so the limits hold, and a wave starts while the states of the former one are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kruise.api.apps.shared import Lifecycle, LifecycleHook
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS
from kruise.inplace import edits, engine, keys, lifecycle
from kruise.inplace.completion import is_complete
from kruise.inplace.difference import InPlaceOptions, Refusal, compare
from kruise.inplace.edits import PodEdit
from kruise.inplace.lifecycle import State, Turn
from kruise.inplace.resizing import DEFERRED, ERROR, INFEASIBLE
from kruise.inplace.state import UpdateSpec, in_grace
from kruise.machinery import codec
from kruise.machinery.causes import Meaning
from kruise.machinery.plan import Cause, Chain, Held, OnError, Phase, Target, Urgency, Wake
from kruise.machinery.revision_names import short_hash
from kruise.workloads.shared import causes
from kruise.workloads.shared.pod_facts import NOBODY, PodFacts
from kruise.workloads.shared.situation import WorkloadSituation

REFRESH = "refresh"
UPDATE = "update"
IN_PLACE = "in-place"

_LONGEST_PASS = 0.04
"""Seconds. Writes that take longer end while the next pass decides, so that pods that became ready meanwhile need not
wait for them."""


_UNGRANTED = {
    INFEASIBLE: (causes.RESIZE_REFUSED, "ask for less in the template, or make room on the node"),
    DEFERRED: (causes.RESIZE_DEFERRED, "ask for less in the template, or make room on the node"),
    ERROR: (causes.RESIZE_FAILED, "ask for something else in the template, or delete the pod to have it made anew"),
}
"""By what the node says of new resources: what it means, and what to do about it."""


class PodMover:
    """Collects chains, causes and wakes; changes nothing else."""

    def __init__(
        self,
        situation: WorkloadSituation,
        *,
        hooks: Lifecycle | None,
        options: InPlaceOptions,
        revision_labels: Callable[[ControllerRevision], Mapping[str, str]],
        grace_seconds: int = 0,
        hash_label: bool = False,
        writes_states: bool = True,
    ) -> None:
        """`revision_labels` are those that tell a pod's revision. `hash_label`: pods of this kind carry the short hash
        in a label of its own, and one that lacks it gets it. `writes_states`: an update shows in their lifecycle
        state."""
        self._situation = situation
        self._hooks = hooks
        self._options = options
        self._revision_labels = revision_labels
        self._grace_seconds = grace_seconds
        self._hash_label = hash_label
        self._writes_states = writes_states
        self._refreshes: dict[str, Chain] = {}
        self._causes: dict[str, tuple[Cause, ...]] = {}
        self._specs: dict[tuple[str, str], UpdateSpec | Refusal] = {}
        self._by_hash = {short_hash(revision.metadata.name): revision for revision in situation.history}
        self._by_hash[short_hash(situation.update.metadata.name)] = situation.update
        self._room_to_refresh = situation.pending.room_to_touch
        self._stepping: set[str] = set()
        self._broken: set[str] = set()
        self.updates: dict[str, Chain] = {}
        """Writes that move pods, or prepare them for that, by name."""
        self.moves: dict[str, str] = {}
        """How the pods of `updates` move, by name; one that is only prepared is not among them."""
        self.changing: set[str] = set()
        """Pods whose lifecycle state or missing label is written by the refresh."""
        self.wakes: list[Wake] = []
        self.error = ""
        """Why the pass cannot go on moving pods."""
        self.stopped_at = ""
        """The pod that the error is about."""

    # Refreshing

    def refresh(self, *, without: Collection[str] = NOBODY) -> None:
        """Look at every pod that may need it, but those that somebody else deals with in this pass."""
        unsettled: list[PodFacts] = []
        for fact in self._situation.facts:
            if fact.is_pending:
                self.hold(fact, causes.UPDATING, "writes to it are under way", "it goes on by itself")
            elif not fact.is_settled and fact.name not in without:
                unsettled.append(fact)
        if len(unsettled) > self._room_to_refresh:
            unsettled.sort(key=_unchanged_since)
        for fact in unsettled:
            if len(self._refreshes) < self._room_to_refresh:
                self._refresh(fact)
            else:
                self._stepping.add(fact.name)
                self.hold(fact, causes.NEXT, "its turn comes when the pods before it were written to", "")

    def _refresh(self, fact: PodFacts) -> None:
        pod = fact.pod
        refreshed = engine.refresh(pod, options=self._options, now=self._situation.now)
        if refreshed.error:
            self._broken.add(fact.name)
            self.hold(fact, causes.BROKEN_ANNOTATION, refreshed.error, "correct or remove the annotation")
            return
        edit = refreshed.edit
        if refreshed.stepped:
            self._stepping.add(fact.name)
        else:
            edit = self._with_state(fact, edit)
        labels = pod.metadata.labels
        if self._hash_label and keys.TEMPLATE_HASH_LABEL not in labels and keys.REVISION_LABEL in labels:
            edit = edit.merged(PodEdit(labels={keys.TEMPLATE_HASH_LABEL: short_hash(labels[keys.REVISION_LABEL])}))
            self.changing.add(fact.name)
        if refreshed.wake_after is not None:
            self.wakes.append(Wake(after=refreshed.wake_after, reason="the grace period of an in-place update"))
            self.hold(fact, causes.GRACE, refreshed.awaiting, "it goes on by itself when the grace period is over")
        elif refreshed.refused is not None:
            why, remedy = _UNGRANTED.get(refreshed.refused.reason, _UNGRANTED[DEFERRED])
            self.hold(fact, why, refreshed.awaiting, remedy)
        elif refreshed.awaiting:
            self.hold(fact, causes.UPDATING, refreshed.awaiting, "see the pod's events if this takes long")
        if not edit.is_empty:
            resize = self._situation.resize_subresource
            self._refreshes[fact.name] = edits.writes(pod, edit, reason="refresh", resize_subresource=resize)

    def _with_state(self, fact: PodFacts, edit: PodEdit) -> PodEdit:
        pod = fact.pod
        state = lifecycle.refreshed(
            pod,
            self._hooks,
            complete=lambda: is_complete(pod, vertical_scaling=self._options.vertical_scaling),
            at_update_revision=fact.is_new,
        )
        if state is None:
            self._hold_for_hook(fact)
            return edit
        entering = lifecycle.enter(pod, state, self._hooks, now=self._situation.now)
        if entering is None:
            return edit
        self.changing.add(fact.name)
        return edit.merged(entering)

    def _hold_for_hook(self, fact: PodFacts) -> None:
        hooks = self._hooks
        if fact.state == State.PREPARING_NORMAL:
            if not fact.pod.spec.node_name:
                self.hold(fact, causes.UNSCHEDULED, "the pod has no node yet", "see the pod's events for the reason")
            elif hooks is not None and (wanted := lifecycle.lacking(fact.pod, hooks.pre_normal)):
                changes = lifecycle.label_changes(fact.pod, hooks.pre_normal, on=False)
                self.hold(fact, causes.HOOK, wanted, "add what the hook names", changes)
        elif fact.state == State.UPDATED and hooks is not None and hooks.in_place_update is not None:
            wanted = lifecycle.lacking(fact.pod, hooks.in_place_update)
            changes = lifecycle.label_changes(fact.pod, hooks.in_place_update, on=False)
            self.hold(fact, causes.HOOK, wanted, "add back what the hook names", changes)

    # Moving

    def is_busy(self, fact: PodFacts) -> bool:
        """Nothing else may be decided about the pod in this pass."""
        return fact.name in self._broken or fact.name in self._stepping or in_grace(fact.pod)

    @property
    def is_full(self) -> bool:
        """The server takes no more for now. The others begin with the next pass."""
        return len(self.updates) >= self._situation.pending.room_to_move

    def spec_for(self, fact: PodFacts, target: ControllerRevision) -> UpdateSpec | Refusal:
        """How the pod gets to the revision in place, or why it cannot. Pods of one revision share the answer."""
        hashed = short_hash(fact.pod.metadata.labels.get(keys.REVISION_LABEL, ""))
        pair = (hashed, target.metadata.name)
        found = self._specs.get(pair)
        if found is None:
            found = compare(self._by_hash.get(hashed), target, self._options)
            if isinstance(found, UpdateSpec) and self._grace_seconds > 0:
                found = codec.evolve(found, grace_seconds=self._grace_seconds)
            self._specs[pair] = found
        return found

    def update_in_place(self, fact: PodFacts, spec: UpdateSpec, target: ControllerRevision) -> None:
        """Begin, or take the pod through its hook first."""
        pod, now = fact.pod, self._situation.now
        hook = lifecycle.in_place_hook(self._hooks)
        match lifecycle.before_update(pod, self._hooks):
            case Turn.HOLD:
                changes = lifecycle.label_changes(pod, hook, on=True)
                self.hold(fact, causes.HOOK, lifecycle.waiting_for(pod, hook), "remove what the hook names", changes)
            case Turn.PREPARE if marks_unready(hook) and (cause := self._situation.permits.may_update(pod)) is not None:
                self.refused(fact, cause)
            case Turn.PREPARE:
                entering = lifecycle.enter(pod, State.PREPARING_UPDATE, self._hooks, now=now)
                if entering is not None:
                    writes = edits.writes(pod, entering, reason="prepare for update")
                    self.updates[fact.name] = self._situation.permits.guarded(pod, writes)
            case Turn.REHOOK:
                edit = lifecycle.rehook(pod, self._hooks, now=now)
                self.updates[fact.name] = edits.writes(pod, edit, reason="prepare for another update")
            case Turn.REFUSE:
                self.stopped_at = fact.name
                self.error = f"not allowed to in-place update pod {fact.name} in state {fact.state}"
            case Turn.UPDATE if (cause := self._situation.permits.may_update(pod)) is not None:
                self.refused(fact, cause)
            case Turn.UPDATE:
                self.moves[fact.name] = IN_PLACE
                writes = engine.begin(
                    pod,
                    spec,
                    labels=self._revision_labels(target),
                    state=lifecycle.state_during_update(pod, self._hooks) if self._writes_states else None,
                    options=self._options,
                    now=now,
                    new=target,
                    resize_subresource=self._situation.resize_subresource,
                )
                self.updates[fact.name] = self._situation.permits.guarded(pod, writes)
                if spec.grace_seconds > 0:
                    wake = Wake(after=float(spec.grace_seconds), reason="the grace period of an in-place update")
                    self.wakes.append(wake)

    def refused(self, fact: PodFacts, cause: Cause) -> None:
        """A budget holds it. Looked at again soon, in case nobody tells of a change (IPU-160)."""
        self.hold_all((fact,), cause)
        self.wakes.append(Wake(after=1.0, reason="a budget may have more to give by then"))

    def call_off(self, fact: PodFacts) -> None:
        """Take a pod that was prepared to move back: otherwise it would stay out of service for as long as nobody wants
        to move it."""
        pod, now = fact.pod, self._situation.now
        entering = lifecycle.enter(pod, lifecycle.called_off(pod, self._hooks), self._hooks, now=now)
        if entering is not None:
            self.updates[fact.name] = edits.writes(pod, entering, reason="its update is not wanted any more")

    # Saying why, and the result

    def hold(
        self, fact: PodFacts, why: Meaning, message: str, remedy: str, details: Mapping[str, Any] | None = None
    ) -> None:
        self.hold_all((fact,), why.cause(message, details=details, remedy=remedy))

    def hold_all(self, facts: Iterable[PodFacts], cause: Cause) -> None:
        for fact in facts:
            self._causes[fact.name] = (*self._causes.get(fact.name, ()), cause)

    @property
    def held(self) -> tuple[Held, ...]:
        """What every pod waits for that is not moved in this pass."""
        return tuple(
            Held(target=Target(PODS, self._situation.owner.namespace, name), causes=held)
            for name, held in sorted(self._causes.items())
            if name not in self.updates
        )

    @property
    def refresh_phase(self) -> Phase:
        return Phase(
            name=REFRESH,
            chains=tuple(chain for name, chain in self._refreshes.items() if name not in self.updates),
            on_error=OnError.CONTINUE,
            pause_after=_LONGEST_PASS,
            detaches=True,
            # Before those that are to move next: these serve nobody, the others serve while they wait in line.
            urgency=Urgency.SOON,
        )

    @property
    def budget_phase(self) -> Phase:
        """Before `update_phase`."""
        return self._situation.permits.phase

    def update_phase(self, target: ControllerRevision, *, unless_done: tuple[str, ...] = ()) -> Phase:
        return Phase(
            name=UPDATE,
            chains=tuple(self.updates.values()),
            on_error=OnError.STOP_PHASE,
            unless_done=unless_done,
            pause_after=_LONGEST_PASS,
            # Pods that are only prepared, or marked for deletion, are not on their way to the revision yet.
            detaches=all(self.moves.get(name) == IN_PLACE for name in self.updates),
            mark=target.metadata.name,
            not_after=self._situation.permits.good_until,
        )


def marks_unready(hook: LifecycleHook | None) -> bool:
    return hook is not None and hook.mark_pod_not_ready


def _unchanged_since(fact: PodFacts) -> int:
    """Small for those that have waited longest: what is to be written follows from their latest change."""
    version = fact.pod.metadata.resource_version
    return int(version) if version.isdecimal() else 0
