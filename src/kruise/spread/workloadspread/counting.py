"""The controller's count of pods: the status, and what has expired in the ledger (WS section 7.6, 7.7)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from kruise.api.apps.workloadspread import (
    SCHEDULABLE,
    UNLIMITED,
    Subset,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from kruise.api.meta import Condition
from kruise.api.native.pod import Pod, finds_no_node, is_active
from kruise.machinery.codec import evolve
from kruise.machinery.plan import EventNote, EventType, Wake
from kruise.spread.workloadspread.classifying import Group
from kruise.spread.workloadspread.ledger import entry_key, name_in
from kruise.spread.workloadspread.matched import mark_of
from kruise.spread.workloadspread.numbers import limit_of

CREATION_PATIENCE = timedelta(seconds=30)
DELETION_PATIENCE = timedelta(seconds=15)
RECOVERY = timedelta(seconds=300)
SUFFICIENT, POD_UNSCHEDULABLE = "Sufficient", "PodUnschedulable"
_ONE_SECOND = timedelta(seconds=1)


@dataclasses.dataclass(slots=True)
class Count:
    """What a pass counted."""

    status: WorkloadSpreadStatus
    events: list[EventNote] = dataclasses.field(default_factory=list)
    wakes: list[Wake] = dataclasses.field(default_factory=list)
    stuck: dict[str, list[Pod]] = dataclasses.field(default_factory=dict)
    """Pods that find no node, by subset: they are made again elsewhere."""
    replicas: int | None = None
    """What percentages were taken of."""


def count(
    spread: WorkloadSpread,
    groups: Mapping[str, Group],
    *,
    replicas: int | None,
    now: datetime,
    is_terminating: Callable[[Pod], bool],
) -> Count:
    counting = _Counting(spread, replicas, now, is_terminating)
    everybody = Group.of_all(groups.values())
    overall = counting.elements(spread.status.subset_statuses, everybody, is_overall=True)
    versions: dict[str, tuple[SubsetStatus, ...]] = {}
    before = spread.status.versioned_subset_statuses
    for version, group in groups.items():
        versions[version] = counting.elements(before.get(version, ()), group)
    for version, known in before.items():
        if version in versions:
            continue
        left = counting.elements(known, Group())
        if any(element.creating_pods or element.deleting_pods for element in left):
            versions[version] = left  # WS-48: those who come or go are not seen yet
    status = WorkloadSpreadStatus(
        observed_generation=spread.metadata.generation,
        subset_statuses=overall,
        versioned_subset_statuses=dict(sorted(versions.items())),
    )
    return Count(status, counting.events, counting.wakes, counting.stuck, replicas)


class _Counting:
    def __init__(
        self, spread: WorkloadSpread, replicas: int | None, now: datetime, is_terminating: Callable[[Pod], bool]
    ) -> None:
        self._spread = spread
        self._replicas = replicas
        self._now = now
        self._is_terminating = is_terminating
        self._critical = spread.spec.schedule_strategy.critical_seconds
        self.events: list[EventNote] = []
        self.wakes: list[Wake] = []
        self.stuck: dict[str, list[Pod]] = {}

    def elements(
        self, before: Iterable[SubsetStatus], group: Group, *, is_overall: bool = False
    ) -> tuple[SubsetStatus, ...]:
        known = {element.name: element for element in before}
        subsets = self._spread.spec.subsets
        found = []
        for position, subset in enumerate(subsets):
            old, pods = known.get(subset.name, SubsetStatus()), group.pods.get(subset.name, ())
            # The overall list is no ledger: nobody enters anything there (WS-5).
            element = self._element(subset, SubsetStatus() if is_overall else old, pods)
            conditions = self._conditions(
                subset, old.conditions, pods, is_last=position == len(subsets) - 1, is_overall=is_overall
            )
            found.append(evolve(element, conditions=conditions))
        return tuple(found)

    def is_counted(self, pod: Pod) -> bool:
        return is_active(pod) and not self._is_terminating(pod)

    def _element(self, subset: Subset, old: SubsetStatus, pods: Sequence[Pod]) -> SubsetStatus:
        """WS-47; a pod that is being deleted keeps its place until it is seen to go."""
        limit = limit_of(subset, self._replicas)
        creating, deleting = dict(old.creating_pods), {}
        replicas = 0
        for pod in pods:
            name = pod.metadata.name
            if not self.is_counted(pod):
                continue
            for key in _keys_of(pod):
                creating.pop(key, None)
            replicas += 1
            if name in old.deleting_pods:
                time = old.deleting_pods[name]
                if self._waits(time, DELETION_PATIENCE, f"pod {name} is expected to be deleted by then"):
                    deleting[name] = time
                else:
                    self._warn("DeletePodFailed", f"Pod {self._named(name)} was expected to be deleted but it wasn't")
        for pod in pods:
            if not self.is_counted(pod):
                _forget(creating, pod)
        for key, time in list(creating.items()):
            if not self._waits(time, CREATION_PATIENCE, f"pod {key} is expected to be created by then"):
                del creating[key]
                text = f"Pod {self._named(name_in(key))} was expected to be created but it wasn't"
                self._warn("CreatePodFailed", text)
        # Of a pod that was never seen, its creation is still to be heard of: its deletion must not be forgotten before.
        unseen = {name_in(key) for key in creating}
        for name, time in old.deleting_pods.items():
            if name in unseen and self._waits(time, DELETION_PATIENCE, f"pod {name} is expected to be seen by then"):
                deleting[name] = time
        missing = UNLIMITED if limit is None else max(0, limit - replicas - len(creating))
        return SubsetStatus(
            name=subset.name,
            replicas=replicas,
            missing_replicas=missing,
            creating_pods=creating,
            deleting_pods=deleting,
        )

    def _waits(self, since: datetime, patience: timedelta, reason: str) -> bool:
        left = (since + patience - self._now).total_seconds()
        # What lies far ahead was written before the clock was set back: waiting for it could take for ever.
        if left <= 0 or since > self._now + patience:
            return False
        self._wake(left, reason)
        return True

    def _wake(self, after: float, reason: str) -> None:
        self.wakes.append(Wake(after=math.ceil(after * 1000) / 1000, reason=reason))

    def _warn(self, reason: str, message: str) -> None:
        self.events.append(EventNote(reason=reason, message=message, type=EventType.WARNING))

    def _named(self, name: str) -> str:
        return f"{self._spread.metadata.namespace}/{name}"

    # Rescheduling

    def _conditions(
        self, subset: Subset, old: Sequence[Condition], pods: Sequence[Pod], *, is_last: bool, is_overall: bool
    ) -> tuple[Condition, ...]:
        """WS-8, WS-50."""
        if self._critical <= 0:
            return ()
        known = next((item for item in old if item.type == SCHEDULABLE), None)
        if is_last:
            return (self._condition(known, is_fine=True),)
        stuck = [pod for pod in pods if self._is_stuck(pod)]
        if stuck:
            if is_overall:
                self.stuck[subset.name] = stuck
            return (self._condition(known, is_fine=False),)
        if known is not None and known.status == "False":
            time = known.last_transition_time or self._now
            left = (time + RECOVERY - self._now).total_seconds()
            if left > 0:
                self._wake(left, f"subset {subset.name} is tried again then")
                return (known,)
            if is_overall:
                message = f"Subset {subset.name} of WorkloadSpread {self._named(self._spread.metadata.name)} "
                self.events.append(EventNote(reason="RecoverSchedulable", message=f"{message}gets pods again"))
        return (self._condition(known, is_fine=True),)

    def _condition(self, known: Condition | None, *, is_fine: bool) -> Condition:
        status, reason = ("True", SUFFICIENT) if is_fine else ("False", POD_UNSCHEDULABLE)
        time = self._now.replace(microsecond=0)
        if known is not None and known.status == status:
            if known.reason == reason:
                return known
            time = known.last_transition_time or time
        return Condition(type=SCHEDULABLE, status=status, reason=reason, last_transition_time=time)

    def _is_stuck(self, pod: Pod) -> bool:
        """Those that wait for less than they may are looked at again, whether or not the scheduler has said a word by
        now (WS-53)."""
        if self._is_terminating(pod) or pod.status.phase not in ("", "Pending") or pod.spec.node_name:
            return False
        created = pod.metadata.creation_timestamp or self._now
        # The time is cut to whole seconds: nobody is deleted before its time is over.
        left = (created + timedelta(seconds=self._critical) + _ONE_SECOND - self._now).total_seconds()
        if left > 0:
            self._wake(left, f"pod {pod.metadata.name} has waited long enough for a node then")
            return False
        return finds_no_node(pod)


def _keys_of(pod: Pod) -> tuple[str, ...]:
    """What may stand for it among those that are being created."""
    mark, name = mark_of(pod), pod.metadata.name
    return (mark.uid, entry_key(name, mark.uid)) if mark is not None and mark.uid else (name,)


def _forget(creating: dict[str, datetime], pod: Pod) -> None:
    """A pod that is on its way out was created. The entry of its name may be for the one that follows it."""
    name, created = pod.metadata.name, pod.metadata.creation_timestamp
    for key in _keys_of(pod):
        time = creating.get(key)
        if time is not None and (key != name or created is None or created >= time - _ONE_SECOND):
            del creating[key]
