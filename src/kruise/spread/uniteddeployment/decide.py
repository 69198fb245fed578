"""What a UnitedDeployment needs, decided from a snapshot (UD section 6).

The phases in order: the revision of the template, workloads that are adopted, further workloads of a subset that has
one, labels of pods that are stuck, workloads that are missing, those that nobody asks for any more, changes of the
others, pods that their workload would wait for in vain, and the bookkeeping in the end.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping

from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, Subset
from kruise.api.native.ordinals import ordinal_of
from kruise.api.native.pod import PODS, is_ready
from kruise.machinery import names, ownership, revisions
from kruise.machinery import plan as plans
from kruise.machinery.codec import evolve
from kruise.machinery.documents import value_at
from kruise.machinery.plan import Action, Chain, Held, OnError, Phase, Plan, Target, Wake, single
from kruise.spread.uniteddeployment import adaptive, holding, keys, shape, status
from kruise.spread.uniteddeployment.children import Child, Json, is_new
from kruise.spread.uniteddeployment.memo import Memo, Part
from kruise.spread.uniteddeployment.numbers import Share, Shares, SizeError, allocated, partition_of, reserves
from kruise.spread.uniteddeployment.shape import ShapeError, Wanted
from kruise.spread.uniteddeployment.situation import (
    Situation,
    Snapshot,
    revisions_in_use,
    selector_problem,
    situation_of,
)
from kruise.workloads.shared.rollout_revisions import revision_phase

ADOPT, DUPLICATES, LABELS, CREATE, DELETE, UPDATE = "adopt", "duplicates", "labels", "create", "delete", "update"
_STUCK = "stuck"
_LONGEST_NAME = 52
"""Pods of a StatefulSet have a label with its name and a hash."""


def decide(snapshot: Snapshot) -> Plan:
    if snapshot.united.metadata.deletion_timestamp is not None:
        return Plan()  # children go with it (UD-38)
    target = Target.of(UNITED_DEPLOYMENTS, snapshot.united)
    problem = selector_problem(snapshot.united)
    if problem:
        return Plan(held=(Held(target=target, causes=(holding.no_selector(problem),)),))
    situation = situation_of(snapshot)
    if situation is None:
        return Plan(held=(Held(target=target, causes=(holding.no_kind(),)),))
    first = revision_phase(situation.choice)
    if situation.adopted:
        return _adopting(situation, first)
    try:
        shares = allocated(situation.united.spec, situation.seen())
    except SizeError as error:
        return _refusing(situation, first, str(error))
    return _Deciding(situation, _with_grown(situation, shares)).plan(first)


def _plan(situation: Situation, phases: tuple[Phase | None, ...], memo: Memo, held: tuple[Held, ...] = ()) -> Plan:
    wakes: list[Wake] = [wake for verdict in situation.verdicts.values() for wake in verdict.wakes]
    return Plan(
        phases=tuple(phase for phase in phases if phase is not None and phase.chains),
        held=held,
        wakes=tuple(wakes),
        memo=memo,
    )


def _adopting(situation: Situation, first: Phase | None) -> Plan:
    """Nothing else is decided until they are its own: their subsets must not get a second workload (UD-47)."""
    generation = situation.united.metadata.generation
    chains = [_adoption(situation, child, generation) for child in situation.adopted]
    memo = status.memo_of(situation, shares=None)
    held = Held(target=Target.of(UNITED_DEPLOYMENTS, situation.united), causes=(holding.adopting(situation.adopted),))
    return _plan(situation, (first, Phase(name=ADOPT, chains=tuple(chains))), memo, (held,))


def _adoption(situation: Situation, child: Child, generation: int) -> Chain:
    check, _ = ownership.adoption(situation.owner, child.kind.resource, child.object, generation=generation)
    is_native = child.kind.resource.group == "apps"
    return check, ownership.adopt(child.kind.resource, child.object, situation.owner, strategic=is_native)


def _refusing(situation: Situation, first: Phase | None, why: str) -> Plan:
    """Nothing is changed (UD-45)."""
    memo = evolve(status.memo_of(situation, shares=None), refused=why)
    target = Target.of(UNITED_DEPLOYMENTS, situation.united)
    return _plan(situation, (first,), memo, (Held(target=target, causes=(holding.impossible_sizes(why),)),))


def _with_grown(situation: Situation, shares: Shares) -> Shares:
    """A subset that has just recovered and gets more pods stays marked until these have shown that they run (UD-71)."""
    if not reserves(situation.united.spec):
        return shares
    for name, share in shares.items():
        child, verdict = situation.children.get(name), situation.verdicts[name]
        if child is not None and verdict.was_marked and not verdict.is_unschedulable and share.pods > child.size:
            text = "subset just recovered scaled up"
            verdict.status = adaptive.marked(verdict.status, False, adaptive.RESCHEDULE, text, situation.now)
    return shares


@dataclasses.dataclass(slots=True)
class _Deciding:
    situation: Situation
    shares: Shares
    creates: list[Action] = dataclasses.field(default_factory=list)
    updates: list[Action] = dataclasses.field(default_factory=list)
    misshapen: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why the workload of a subset cannot be made, by subset."""
    parts: list[Part] = dataclasses.field(default_factory=list)

    def plan(self, first: Phase | None) -> Plan:
        situation = self.situation
        for subset in sorted(situation.subsets, key=lambda subset: subset.name):
            self._subset(subset, self.shares[subset.name])
        gone = [child for name, child in sorted(situation.children.items()) if name not in self.shares]
        deletes = _deletes(gone, situation.others)
        # What is there goes only when its replacement has come: a refusal must not leave the subsets empty.
        creating = OnError.STOP_PLAN if deletes else OnError.STOP_PHASE
        phases = (
            first,
            single(DUPLICATES, *map(_delete_duplicate, situation.duplicates), on_error=OnError.CONTINUE),
            single(LABELS, *self._labels(), on_error=OnError.CONTINUE),
            single(CREATE, *self.creates, on_error=creating, slow_start=True),
            single(DELETE, *(() if self.misshapen else deletes), on_error=OnError.CONTINUE),
            single(UPDATE, *self.updates, on_error=OnError.CONTINUE, slow_start=True),
            single(_STUCK, *self._stuck(), on_error=OnError.CONTINUE),
            single("history", *self._history(), on_error=OnError.CONTINUE),
        )
        order = {subset.name: place for place, subset in enumerate(situation.subsets)}
        memo = evolve(
            status.memo_of(situation, shares=self.shares),
            parts=tuple(sorted(self.parts, key=lambda part: order[part.name])),
            subset_of={part.child: part.name for part in self.parts if part.child},
            misshapen=self.misshapen,
        )
        return _plan(situation, phases, memo, holding.held(situation, self.shares, self.misshapen))

    # Workloads

    def _subset(self, subset: Subset, share: Share) -> None:
        situation, spec = self.situation, self.situation.united.spec
        child = situation.children.get(subset.name)
        partition = partition_of(spec, subset.name, share.pods)
        wanted = Wanted(
            subset=subset,
            revision=situation.revision,
            pods=share.pods,
            partition=partition,
            patch=shape.patch_text(subset.patch),
            max_unavailable=self._max_unavailable(subset.name, child),
            keeps_stuck_pods=reserves(spec),
        )
        name = child.name if child is not None else _name(situation, subset)
        self.parts.append(Part(name=subset.name, pods=share.pods, why=share.why, partition=partition, child=name))
        try:
            metadata = shape.metadata_of(situation.template, situation.kind, spec.selector, wanted)
            wanted_spec = shape.spec_of(situation.template, situation.kind, spec.selector, wanted)
        except ShapeError as error:
            self.misshapen[subset.name] = str(error)
            return
        if child is None:
            self.creates.append(self._create(name, metadata, wanted_spec, subset, share))
        elif not child.is_leaving and _must_look(child, wanted):
            change = shape.change_of(child, metadata, wanted_spec, self._given_last(child, wanted))
            if change is not None:
                reason = _what_changes(child, wanted, share)
                self.updates.append(_patch(child, change, reason))

    def _create(
        self, name: str, metadata: Mapping[str, object], spec: Mapping[str, object], subset: Subset, share: Share
    ) -> Action:
        situation = self.situation
        resource = situation.kind.resource
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": name,
                "namespace": situation.owner.namespace,
                **metadata,
                "ownerReferences": [situation.owner.reference()],
            },
            "spec": spec,
        }
        reason = f"subset {subset.name} gets {share.pods} pods: {share.why}"
        return plans.create(resource, body, reason=reason, owner_uid=situation.owner.uid)

    def _max_unavailable(self, subset: str, child: Child | None) -> int | None:
        """What the template allows beside the pods that are stuck (UD-73). Counting all that are not ready would let
        each pod that an update takes down make room for the next."""
        situation = self.situation
        verdict = situation.verdicts[subset]
        if child is None or not verdict.is_unschedulable or not reserves(situation.united.spec):
            return None
        allowed = situation.kind.unavailable(
            value_at(situation.template, (situation.kind.member, "spec"), {}), child.size
        )
        return max(min(verdict.hopeless + allowed, child.size), 1)

    def _given_last(self, child: Child, wanted: Wanted) -> Json | None:
        """The spec that a child was given with the template that it has."""
        situation = self.situation
        worn = next((one for one in situation.history if one.metadata.name == child.worn_revision), None)
        template = revisions.template_of(worn) if worn is not None else None
        if worn is None and child.worn_revision == situation.revision:
            template = situation.template
        if template is None or not isinstance(template.get(situation.kind.member), dict):
            return None
        then = dataclasses.replace(
            wanted,
            revision=child.worn_revision,
            pods=child.size,
            partition=child.partition,
            patch=child.patch or "",
        )
        try:
            return shape.spec_of(template, situation.kind, situation.united.spec.selector, then)
        except (ShapeError, ValueError):
            return None

    # Pods

    def _labels(self) -> list[Action]:
        """Which pods are stuck, for whoever counts pods by the selector (UD-67)."""
        found: list[Action] = []
        for name, child in sorted(self.situation.children.items()):
            verdict = self.situation.verdicts.get(name)
            for pod in child.pods if verdict is not None else ():
                value = verdict.labels.get(pod.metadata.name) if verdict is not None else None
                if value is not None:
                    reason = "it is stuck, and others stand in for it" if value == "true" else "it counts"
                    body = {"metadata": {"labels": {keys.RESERVED: value}}}
                    found.append(plans.patch(Target.of(PODS, pod), body, uid=pod.metadata.uid, reason=reason))
        return found

    def _stuck(self) -> list[Action]:
        """Pods of an old template that are not ready, and that a StatefulSet would wait for (UD-82)."""
        situation = self.situation
        if not situation.kind.rolls_in_order:
            return []
        found: list[Action] = []
        for name, child in sorted(situation.children.items()):
            if name not in self.shares or child.object.spec.update_strategy.type == "OnDelete":
                continue
            partition = partition_of(situation.united.spec, name, self.shares[name].pods)
            if child.worn_revision != situation.revision or child.partition != partition or child.is_leaving:
                continue  # it has not got the template yet
            for pod in child.pods:
                ordinal = ordinal_of(pod.metadata.name)
                if ordinal is None or ordinal < partition or is_new(pod, situation.revision) or is_ready(pod):
                    continue
                reason = "it has an old template and is not ready, so that its StatefulSet would wait for it"
                found.append(plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=reason))
        return found

    def _history(self) -> list[Action]:
        situation = self.situation
        return revisions.truncate(
            situation.history,
            keep=revisions_in_use(situation),
            pod_labels=[pod.metadata.labels.get(keys.REVISION, "") for pod in situation.snapshot.pods],
            limit=situation.united.spec.revision_history_limit,
        )


def _must_look(child: Child, wanted: Wanted) -> bool:
    """UD-78."""
    return (
        child.worn_revision != wanted.revision
        or child.label != wanted.subset.name
        or child.size != wanted.pods
        or child.partition != wanted.partition
        or child.patch != wanted.patch
        or child.updated < child.replicas
    )


def _what_changes(child: Child, wanted: Wanted, share: Share) -> str:
    subset = wanted.subset.name
    if child.worn_revision != wanted.revision:
        return f"subset {subset} gets the template of revision {wanted.revision}"
    if child.size != wanted.pods:
        return f"subset {subset} goes from {child.size} to {wanted.pods} pods: {share.why}"
    if child.label != subset:
        return f"it is the workload of subset {subset}, though its label says {child.label or 'nothing'}"
    if child.patch != wanted.patch:
        return f"the patch of subset {subset} is another one"
    if child.partition != wanted.partition:
        return f"the partition of subset {subset} goes from {child.partition} to {wanted.partition}"
    return f"the workload of subset {subset} is not as the template says"


def _patch(child: Child, change: Json, reason: str) -> Action:
    """Lists are written as a whole: what others have put into them since must not get lost."""
    known = child.object.metadata
    version = known.resource_version if shape.has_list(change) else ""
    return plans.patch(child.target, change, uid=known.uid, reason=reason, resource_version=version)


def _name(situation: Situation, subset: Subset) -> str:
    """The same at each try, so that a create whose answer was lost is not done twice."""
    united = situation.united.metadata
    base = f"{united.name}-{subset.name}-"
    if names.dns_subdomain_problems(f"{base}x"):
        base = f"{united.name}-"
    # One that lost the labels of the selector is neither used nor let go (UD-47), but has its name.
    taken = {one.metadata.name for one in situation.snapshot.objects(situation.kind)}
    parts = (united.uid, subset.name, situation.kind.member)
    suffixes = (names.derived_suffix(*parts, *((again,) if again else ())) for again in itertools.count())
    return next(
        name for suffix in suffixes if (name := names.child_name(base, suffix, limit=_LONGEST_NAME)) not in taken
    )


def _delete_duplicate(child: Child) -> Action:
    reason = f"subset {child.subset} has another workload"
    return plans.delete(child.target, uid=child.object.metadata.uid, reason=reason, propagation="Background")


def _deletes(gone: list[Child], others: tuple[Child, ...]) -> list[Action]:
    """UD-52, UD-53."""
    found = [(child, f"there is no subset {child.subset or child.name} any more") for child in gone]
    found += [(child, f"the template is no {child.kind.word} any more") for child in others]
    return [
        plans.delete(child.target, uid=child.object.metadata.uid, reason=reason, propagation="Background")
        for child, reason in found
        if not child.is_leaving
    ]
