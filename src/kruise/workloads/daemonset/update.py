"""Carrying out what keeping and rolling chose: deletions through the hook, updates in place, and the causes of all that
waits (DS sections 11 and 12)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from kruise.api.apps.daemonset import RollingUpdateDaemonSet
from kruise.api.apps.shared import IN_PLACE_IF_POSSIBLE
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.readiness import has_gate
from kruise.inplace.state import UpdateSpec
from kruise.machinery import plan as plans
from kruise.machinery.causes import Cause
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Chain, Held, OnError, Phase, Target
from kruise.machinery.revision_names import short_hash
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import listed, plural
from kruise.workloads.daemonset.causes import (
    BURST,
    FAILED_POD,
    MAX_SURGE,
    MISPLACED,
    NO_BURST,
    NODE_NOT_SELECTED,
    SUCCESSOR,
    TWO_PODS,
)
from kruise.workloads.daemonset.creation import create_pods, revision_labels
from kruise.workloads.daemonset.keeping import Deletion, Keeping
from kruise.workloads.daemonset.rolling import Rolling, roll
from kruise.workloads.daemonset.situation import Situation
from kruise.workloads.shared import causes
from kruise.workloads.shared.failures import Failures, cause_of
from kruise.workloads.shared.leaving import held_by_hook
from kruise.workloads.shared.moving import PodMover
from kruise.workloads.shared.pod_facts import PodFacts
from kruise.workloads.shared.scaling_phases import creation

CREATE = "create"
DELETE = "delete"
REPLACE = "to be replaced by a pod of the present template"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodWork:
    phases: tuple[Phase, ...]
    held: tuple[Held, ...]
    mover: PodMover
    is_keeping: bool
    """Nodes first get, or lose, the pods that they should have: nothing rolls before that."""


def work_on_pods(situation: Situation, keeping: Keeping, failures: Failures) -> PodWork:
    """Rolling waits until every node has the pod that it should have: what is added and removed counts as unavailable,
    and the next pass sees it."""
    return _Working(situation, keeping, failures).work()


class _Working:
    def __init__(self, situation: Situation, keeping: Keeping, failures: Failures) -> None:
        self._situation = situation
        self._keeping = keeping
        self._stop = failures.stop
        self._limits = situation.limits
        self._hooks = situation.daemon_set.spec.lifecycle
        self._mover = PodMover(
            situation,
            hooks=self._hooks,
            options=InPlaceOptions.of(situation.gates),
            revision_labels=lambda revision: revision_labels(revision.metadata.name),
            writes_states=False,
        )
        self._deletes: list[Chain] = []
        self._nodes = list(keeping.nodes)
        self._held: list[Held] = []
        self._going: set[str] = set()

    def work(self) -> PodWork:
        for deletion in self._keeping.deletions:
            self._delete(deletion)
        self._mover.refresh(without=self._going)
        is_keeping = bool(self._nodes or self._deletes)
        if is_keeping:
            self._wait_for_keeping()
        else:
            self._roll()
        self._hold_kept()
        creates = create_pods(self._situation, self._within_burst(self._nodes))
        phases = (
            # A quota that refuses new pods must not keep those that have to go. Which node a pod is for shows only when
            # the pod is there, so a pass waits for the pods that it makes.
            creation(CREATE, [(action,) for action in creates], detaches=False),
            Phase(name=DELETE, chains=tuple(self._deletes), on_error=OnError.CONTINUE),
            dataclasses.replace(self._mover.refresh_phase, alongside=True),
            dataclasses.replace(self._mover.budget_phase, unless_done=(CREATE, DELETE)),
            self._mover.update_phase(self._situation.update, unless_done=(CREATE, DELETE)),
        )
        return PodWork(phases=phases, held=(*self._held, *self._mover.held), mover=self._mover, is_keeping=is_keeping)

    # Deleting

    def _delete(self, deletion: Deletion) -> None:
        """A pod that the hook holds prepares for its deletion, any other goes (DS-50, DS-51)."""
        pod = deletion.pod
        self._going.add(pod.metadata.name)
        stay = held_by_hook(pod, self._hooks, now=self._situation.now)
        if stay is not None:
            self._held.append(stay.held)
            if stay.chain:
                self._deletes.append(stay.chain)
        elif len(self._deletes) >= self._limits.burst:
            self._hold(pod, self._burst_cause())
        elif (cause := self._situation.permits.may_delete(pod)) is not None:
            self._hold(pod, cause)
        else:
            self._deletes.append((plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=deletion.reason),))

    # Rolling

    def _wait_for_keeping(self) -> None:
        for fact in self._situation.facts:
            if not fact.is_new and fact.name not in self._going:
                self._mover.hold(fact, causes.NEXT, "first every node gets the pod that it should have", "")

    def _roll(self) -> None:
        situation, limits = self._situation, self._limits
        if limits.is_on_delete or limits.is_paused or self._stop is not None:
            self._nobody_moves()
            return
        chosen = roll(
            situation.nodes,
            limits,
            is_selected=_selected_nodes(situation.rolling),
            prune=situation.gate("DaemonSetPruneIneligibleNodes"),
        )
        for fact in chosen.replace:
            self._replace(fact, situation.update)
        self._nodes += chosen.surge
        self._hold_waiting(chosen)

    def _replace(self, fact: PodFacts, target: ControllerRevision) -> None:
        """In place where the strategy and the change allow it (DS-66), otherwise by deletion."""
        if fact.is_pending or self._mover.is_busy(fact):
            return
        rolling = self._situation.rolling
        if (
            rolling is not None
            and rolling.rolling_update_type == IN_PLACE_IF_POSSIBLE
            and has_gate(fact.pod, keys.IN_PLACE_READY)
        ):
            spec = self._mover.spec_for(fact, target)
            if isinstance(spec, UpdateSpec):
                if self._mover.is_full or len(self._mover.updates) >= self._limits.burst:
                    self._mover.hold_all((fact,), self._burst_cause())
                else:
                    hashed = short_hash(target.metadata.name)  # a pod tells its revision by the hash alone (DS-66)
                    self._mover.update_in_place(fact, evolve(spec, revision=hashed), target)
                return
        self._delete(Deletion(fact.pod, fact.pod.spec.node_name, REPLACE))

    # Saying why

    def _nobody_moves(self) -> None:
        for fact in self._situation.facts:
            if fact.is_new or fact.name in self._going:
                continue
            if self._limits.is_on_delete or self._limits.is_paused:
                self._mover.hold_all((fact,), causes.stands_still(is_on_delete=self._limits.is_on_delete))
            elif self._stop is not None:
                self._mover.hold_all((fact,), cause_of(self._stop))

    def _hold_waiting(self, chosen: Rolling) -> None:
        limits, hold = self._limits, self._mover.hold_all
        hold(chosen.kept_old, causes.kept_old(limits.partition))
        elsewhere = NODE_NOT_SELECTED.cause(
            "updateStrategy.rollingUpdate.selector does not select its node",
            remedy="label the node, or change the selector, when its turn has come",
        )
        hold(chosen.not_selected, elsewhere)
        for fact, successor in chosen.succeeded:
            waits = SUCCESSOR.cause(
                f"it goes when {successor} is available", details={"unavailable": [successor]}, remedy=""
            )
            hold((fact,), waits)
        for fact, leaving in chosen.crowded:
            waits = TWO_PODS.cause(
                f"its node gets no third pod: first {leaving} goes", details={"unavailable": [leaving]}, remedy=""
            )
            hold((fact,), waits)
        stuck = MISPLACED.cause(
            "a taint of its node keeps new pods away, so none can be started beside it",
            remedy="take the taint off the node, let the template tolerate it, or delete the pod",
        )
        hold(chosen.misplaced, stuck)
        used = f"; used up by {listed(chosen.used_by)}" if chosen.used_by else ""
        details = {"unavailable": chosen.used_by}
        remedy = "wait for these pods, or repair them" if chosen.used_by else ""
        if limits.surges:
            full = MAX_SURGE.cause(
                f"maxSurge lets {plural(limits.surge, 'node')} have two pods{used}",
                details=details,
                remedy=remedy,
            )
        else:
            full = causes.MAX_UNAVAILABLE.cause(
                f"maxUnavailable lets {plural(limits.unavailable, 'node')} be without an available pod{used}",
                details={**details, "budget": limits.unavailable},
                remedy=remedy,
            )
        hold(chosen.waiting, full)

    def _hold_kept(self) -> None:
        keeping, owner = self._keeping, self._situation.owner
        namespace = owner.namespace
        for name, left in keeping.delayed.items():
            cause = FAILED_POD.cause(
                f"the pod failed; it is replaced in {left:.0f} s", remedy="see its status and events for the reason"
            )
            self._held.append(Held(target=Target(PODS, namespace, name), causes=(cause,)))
        if keeping.held_back:
            cause = causes.PARTITION.cause(
                f"partitioned scaling leaves {listed(keeping.held_back)} without a pod",
                remedy="lower updateStrategy.rollingUpdate.partition",
            )
            self._held.append(Held(target=self._target, causes=(cause,)))
        if len(self._nodes) > self._limits.burst:
            self._held.append(Held(target=self._target, causes=(self._burst_cause(),)))

    def _within_burst(self, nodes: list[str]) -> list[str]:
        return nodes[: self._limits.burst]

    def _burst_cause(self) -> Cause:
        if self._limits.burst == 0:
            return NO_BURST.cause("burstReplicas is 0", remedy="raise burstReplicas, or leave it out")
        return BURST.cause(f"burstReplicas lets {plural(self._limits.burst, 'pod')} be written to at a time")

    def _hold(self, pod: Pod, cause: Cause) -> None:
        self._held.append(Held(target=Target.of(PODS, pod), causes=(cause,)))

    @property
    def _target(self) -> Target:
        return Target.of(self._situation.owner.resource, self._situation.daemon_set)


def _selected_nodes(rolling: RollingUpdateDaemonSet | None) -> Callable[[Mapping[str, str]], bool] | None:
    """Which labels of a node make its pod one to be updated; None: any. A selector that nobody can read selects none,
    as was said when it was written."""
    if rolling is None or rolling.selector is None:
        return None
    try:
        return from_label_selector(rolling.selector).matches
    except SelectorError:
        return lambda _: False
