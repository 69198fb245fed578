"""What a WorkloadSpread needs, decided from a snapshot (WS section 7).

The order is a promise (WS-36): deletion costs are there before `observedGeneration` tells of a change, and a subset is
marked before the pods that are stuck in it are deleted, so that those who follow them go elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.workloadspread import UNLIMITED, WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.core.field_errors import Path
from kruise.api.native.deletion_cost import DELETION_COST
from kruise.api.native.pod import PODS, Pod, condition, finds_no_node
from kruise.machinery import plan as plans
from kruise.machinery.causes import Cause
from kruise.machinery.codec import Struct, evolve
from kruise.machinery.plan import Chain, EventNote, Held, OnError, Phase, Plan, Target, Urgency, Wake
from kruise.machinery.wording import plural
from kruise.spread.workloadspread import causes
from kruise.spread.workloadspread.classifying import UNASSIGNED, Group, classified
from kruise.spread.workloadspread.costs import costs
from kruise.spread.workloadspread.counting import Count, count
from kruise.spread.workloadspread.injection import UnfitPatchError, patch_of, unfit
from kruise.spread.workloadspread.ledger import is_schedulable
from kruise.spread.workloadspread.matched import MATCHED, Matched, mark_of
from kruise.spread.workloadspread.numbers import has_percentages, limit_of
from kruise.spread.workloadspread.situation import Snapshot
from kruise.spread.workloadspread.statuses import overall_write, status_form, status_write
from kruise.spread.workloadspread.targets import WITH_DELETION_COST, target_of

_ASKED_AGAIN = 60.0
LEDGER, MARK, STATUS = "ledger", "mark", "status"
"""Phases."""
_MANY = 16
"""Marks that take so long that admission writes into the ledger meanwhile."""
KEEPS_METADATA = "workloadspread.kruise.io/ignore-patch-existing-pods-metadata"
"""Annotation of a WorkloadSpread: pods from before it do not get the metadata of their subset's patch."""


class Memo(Struct):
    events: tuple[EventNote, ...] = ()
    """Of what the count found to be over."""
    observes: int | None = None
    """The generation that is to be told of once all pods are marked."""
    parts: tuple[str, ...] = ()
    """Of the subsets, in words: how many pods each has, and why."""


def decide(snapshot: Snapshot) -> Plan:
    spread, target = snapshot.spread, snapshot.target
    if spread.metadata.deletion_timestamp is not None:
        return Plan()  # WS-35
    terminating = frozenset(snapshot.terminating)
    groups = classified(
        spread,
        snapshot.pods,
        replicas=target.replicas,
        nodes=snapshot.nodes,
        versioned=frozenset(snapshot.versioned),
    )

    def is_terminating(pod: Pod) -> bool:
        return pod.metadata.deletion_timestamp is not None or pod.metadata.name in terminating

    wanted: Mapping[str, int] = {}
    if target_of(spread).is_supported and spread.spec.target_ref.kind in WITH_DELETION_COST:
        wanted = costs(
            spread.spec,
            groups,
            replicas=target.replicas,
            latest=target.latest_version,
            is_terminating=is_terminating,
        )
    counted = count(spread, groups, replicas=target.replicas, now=snapshot.now, is_terminating=is_terminating)
    if target.problem:
        # Percentages of nobody knows how many: what was counted last stays, and nobody is sent away by it.
        counted = Count(spread.status, wakes=counted.wakes)
        wanted = {}
    marks = tuple(_marks(spread, groups, wanted))
    observes = None
    if marks and counted.status.observed_generation != spread.status.observed_generation:
        # A pod that takes no mark must not keep the count from being written, but the change is not done with (WS-36).
        observes = counted.status.observed_generation
        counted.status = evolve(counted.status, observed_generation=spread.status.observed_generation)
    first, last = _status_chains(spread, counted, marks=len(marks))
    phases = (
        Phase(name=LEDGER, chains=(first,) if first else (), on_error=OnError.CONTINUE),
        # They come in thousands, and pods that are still to be made must not stand behind them.
        Phase(name=MARK, chains=marks, on_error=OnError.CONTINUE, urgency=Urgency.LATER),
        Phase(name=STATUS, chains=(last,) if last else ()),
    )
    return Plan(
        phases=tuple(phase for phase in phases if phase.chains),
        held=(*_held(snapshot, counted), *map(_unmarked, marks)),
        wakes=(*counted.wakes, *_asks_again(spread)),
        memo=Memo(events=tuple(counted.events), observes=observes, parts=tuple(_parts(spread, groups, counted))),
    )


def _parts(spread: WorkloadSpread, groups: Mapping[str, Group], counted: Count) -> Iterator[str]:
    if counted.status is spread.status:
        return  # nobody can tell: the workload could not be looked at
    everybody = Group.of_all(groups.values())
    adopted = Counter(name for group in groups.values() for name in group.adopted.values())
    for subset, element in zip(spread.spec.subsets, counted.status.subset_statuses, strict=False):
        limit = "no maxReplicas" if subset.max_replicas is None else f"maxReplicas {subset.max_replicas}"
        told = [limit]
        if taken := adopted[subset.name]:
            told.append(f"{taken} of them taken over by the nodes that they are on")
        most = limit_of(subset, None if element.missing_replicas == UNLIMITED else counted.replicas)
        if most is not None and element.replicas > most:
            told.append(f"{element.replicas - most} above it, the first to go")
        elif element.missing_replicas > 0:
            told.append(f"{plural(element.missing_replicas, 'place')} free")
        if not is_schedulable(element):
            told.append("no pods for five minutes: those it had found no node")
        yield f"{subset.name}: {plural(element.replicas, 'pod')} ({', '.join(told)})"
    outside = len(everybody.pods.get(UNASSIGNED, ()))
    if outside:
        yield f"in no subset: {plural(outside, 'pod')} (they fit none, or theirs is gone)"


def _asks_again(spread: WorkloadSpread) -> Iterator[Wake]:
    """Nobody tells when a workload that is not watched wants another number of pods."""
    if not target_of(spread).is_supported and has_percentages(spread.spec):
        yield Wake(after=_ASKED_AGAIN, reason=f"how many pods {target_of(spread)} wants")


def _marks(spread: WorkloadSpread, groups: Mapping[str, Group], wanted: Mapping[str, int]) -> Iterator[Chain]:
    """One write for each pod: its subset and its cost together (WS-43, WS-45)."""
    for group in groups.values():
        for pods in group.pods.values():
            for pod in pods:
                name = pod.metadata.name
                cost = wanted.get(name)
                annotations: dict[str, str] = {}
                metadata: dict[str, Any] = {}
                if name in group.adopted:
                    metadata = _metadata_of(spread, group.adopted[name])
                    annotations[MATCHED] = Matched(spread.metadata.name, group.adopted[name]).text
                if cost is not None and pod.metadata.annotations.get(DELETION_COST) != str(cost):
                    annotations[DELETION_COST] = str(cost)
                if not annotations:
                    continue
                given = metadata.get("annotations")
                metadata["annotations"] = {**(given if isinstance(given, dict) else {}), **annotations}
                reason = "it belongs to a subset" if name in group.adopted else "the order in which pods are to go"
                yield (plans.patch(Target.of(PODS, pod), {"metadata": metadata}, uid=pod.metadata.uid, reason=reason),)


def _metadata_of(spread: WorkloadSpread, name: str) -> dict[str, Any]:
    """Labels and annotations that a subset's patch has for its pods."""
    if spread.metadata.annotations.get(KEEPS_METADATA, "").lower() == "true":
        return {}
    subset = next(item for item in spread.spec.subsets if item.name == name)
    try:
        found = patch_of(subset.patch).get("metadata")
    except UnfitPatchError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {part: dict(found[part]) for part in ("labels", "annotations") if isinstance(found.get(part), dict)}


def _status_chains(spread: WorkloadSpread, counted: Count, *, marks: int) -> tuple[Chain, Chain]:
    """The status in one write, then the deletions that it announces (WS-52).

    Where many pods are marked before, the ledger is written ahead of that: admission goes on entering pods there, so
    the count would be stale by the time the marks are done, each time, and the ledger would grow until nobody comes
    any more. What people look at, the overall list, tells of pods that are marked, as ever.
    """
    reason = "the pods of its subsets were counted"
    first: Chain = ()
    status: Chain = ()
    if status_form(spread.status) != status_form(counted.status):
        ledger = evolve(spread.status, versioned_subset_statuses=counted.status.versioned_subset_statuses)
        if marks > _MANY and status_form(ledger) != status_form(spread.status):
            first = (status_write(spread, ledger, reason=reason),)
            if status_form(ledger) != status_form(counted.status):
                status = (overall_write(spread, counted.status, reason=reason),)
        else:
            status = (status_write(spread, counted.status, reason=reason),)
    deletions = tuple(
        plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason=f"no node of subset {subset} takes it")
        for subset, pods in counted.stuck.items()
        for pod in pods
    )
    return first, (*status, *deletions)


# What holds pods back


def _held(snapshot: Snapshot, counted: Count) -> Iterator[Held]:
    spread = snapshot.spread
    own = Target.of(WORKLOAD_SPREADS, spread)
    reference = spread.spec.target_ref
    if snapshot.target.problem:
        cause = causes.NO_TARGET.cause(snapshot.target.problem, remedy="see spec.targetRef and spec.targetFilter")
        yield Held(target=own, causes=(cause,))
    elif not snapshot.target.exists:
        text = f"there is no {reference.kind} {reference.name} ({reference.api_version}) in this namespace"
        remedy = "create it: its first pods are spread already; or delete this WorkloadSpread"
        yield Held(target=own, causes=(causes.NO_TARGET.cause(text, remedy=remedy),))
    for position, subset in enumerate(spread.spec.subsets):
        if problem := unfit(subset.patch, where := Path("spec").child("subsets").at(position).child("patch")):
            text = f"pods that are to go into subset {subset.name} are refused: {problem}"
            cause = causes.UNFIT_PATCH.cause(text, remedy=f"correct {where}")
            yield Held(target=own, causes=(cause,))
    for rival, pods in sorted(Counter(snapshot.rivals.values()).items()):
        text = (
            f"{plural(pods, 'pod')} of {reference.kind} {reference.name} are spread by WorkloadSpread {rival} already"
        )
        remedy = f"delete WorkloadSpread {rival}, or this one: a pod is in a subset of one of them"
        yield Held(target=own, causes=(causes.RIVAL.cause(text, remedy=remedy),))
    for element in counted.status.subset_statuses:
        if not is_schedulable(element):
            yield Held(target=own, causes=(_marked(snapshot, element.name),))
    critical = spread.spec.schedule_strategy.critical_seconds
    last = spread.spec.subsets[-1].name if spread.spec.subsets else ""
    for pod in snapshot.pods:
        mark = mark_of(pod)
        if mark is None or mark.name != spread.metadata.name or not finds_no_node(pod) or pod.spec.node_name:
            continue
        yield Held(target=Target.of(PODS, pod), causes=(_pending(pod, mark, critical, is_last=mark.subset == last),))


def _unmarked(chain: Chain) -> Held:
    """As long as a pod is to be marked it is not: where the API refuses that, it is so at each pass."""
    text = "the write that tells its subset or its deletion cost is not done yet"
    remedy = (
        "wait; if it stays, see the event PatchPodDeletionCostFailed of the WorkloadSpread: it quotes the API. Let the "
        "webhook or policy that it names allow patches of this pod's metadata, or delete the pod"
    )
    return Held(target=chain[0].target, causes=(causes.UNMARKED.cause(text, remedy=remedy),))


def _marked(snapshot: Snapshot, subset: str) -> Cause:
    words = next(
        (
            _short(scheduled.message)
            for pod in snapshot.pods
            if (mark := mark_of(pod)) is not None
            and mark.subset == subset
            and finds_no_node(pod)
            and (scheduled := condition(pod, "PodScheduled")) is not None
        ),
        "",
    )
    text = f"subset {subset} gets no pods: those it had found no node"
    return causes.LEFT_OUT.cause(
        f"{text}. The scheduler says: {words}" if words else text,
        remedy="it is tried again five minutes after it was marked; make room on its nodes, or change its selectors",
    )


def _short(message: str) -> str:
    """The scheduler's words, without those about preemption."""
    return message.partition(" no new claims to deallocate")[0].partition(" preemption:")[0].strip()


def _pending(pod: Pod, mark: Matched, critical: int, *, is_last: bool) -> Cause:
    scheduled = condition(pod, "PodScheduled")
    words = _short(scheduled.message) if scheduled is not None else ""
    text = f"no node takes it as a pod of subset {mark.subset} of WorkloadSpread {mark.name}: {words}"
    if critical > 0 and not is_last:
        remedy = f"wait: it is made again in another subset when it has waited for {critical} seconds"
        return causes.RESCHEDULE.cause(text, remedy=remedy)
    remedy = (
        "make room on the nodes of the subset, or change its selectors or its maxReplicas; with "
        "scheduleStrategy.adaptive.rescheduleCriticalSeconds pods move on to the next subset by themselves"
    )
    return causes.SUBSET_NODES.cause(text, remedy=remedy)
