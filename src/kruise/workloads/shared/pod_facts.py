"""What every decision of a workload asks about its pods."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from kruise.api.meta import controller_of
from kruise.api.native.pod import Pod, is_active
from kruise.inplace import keys
from kruise.inplace.availability import is_ready_for, readiness_of, seconds_until_available, serves
from kruise.inplace.engine import is_settled
from kruise.machinery import codec
from kruise.machinery.codec import Struct
from kruise.machinery.ownership import Owner
from kruise.machinery.pending import Pending, revision_of
from kruise.machinery.plan import Wake
from kruise.machinery.revision_names import is_revision
from kruise.machinery.selectors import Selector

NOBODY: frozenset[str] = frozenset()


class PodFacts(Struct):
    """An active pod, and what every decision asks about it. A struct, since thousands of them are made in a pass."""

    pod: Pod
    name: str
    state: str
    """Lifecycle state; empty where the pod has none."""
    is_new: bool
    """It carries the update revision."""
    is_available: bool
    is_ready: bool
    """Update-ready without minReadySeconds, whatever its lifecycle state."""
    is_specified: bool
    """Somebody asked for its deletion: by label, or by name where the workload has a list for that."""
    is_preparing_delete: bool
    is_settled: bool = False
    """In state Normal, with both conditions written and no update under way: a refresh would change nothing."""
    is_pending: bool = False
    """An earlier pass still writes to it. One that moves counts as there already, and as down."""
    is_arriving: bool = False
    """Its update in place is under way, and therefore it does not count as available, though it may serve."""


def facts_of(
    pod: Pod,
    *,
    update: str,
    min_ready_seconds: int,
    now: datetime,
    to_delete: frozenset[str] = NOBODY,
    hash_label: bool = False,
) -> PodFacts:
    """`to_delete` names pods whose deletion was asked for. `hash_label`: pods of this kind carry the short hash of
    their revision in a label of its own, and one without it is not settled."""
    metadata = pod.metadata
    labels = metadata.labels
    state = labels.get(keys.STATE_LABEL, "")
    seen = readiness_of(pod)
    return PodFacts(
        pod=pod,
        name=metadata.name,
        state=state,
        is_new=is_revision(labels.get(keys.REVISION_LABEL, ""), update),
        is_available=serves(state) and is_ready_for(seen, min_ready_seconds, now),
        is_ready=seen.is_ready,
        is_specified=keys.SPECIFIED_DELETE_LABEL in labels or metadata.name in to_delete,
        is_settled=is_settled(pod) and (not hash_label or keys.TEMPLATE_HASH_LABEL in labels),
        is_preparing_delete=state == "PreparingDelete",
    )


def once_written(observed: Iterable[PodFacts], pending: Pending, update: str) -> Iterator[PodFacts]:
    """The pods as they are when the pending writes have ended."""
    for facts in observed:
        mark = pending.mark_of(facts.pod)
        if revision := revision_of(mark):
            is_new = is_revision(revision, update)
            yield codec.evolve(facts, is_pending=True, is_new=is_new, is_available=False, is_ready=False)
        elif mark is not None:
            yield codec.evolve(facts, is_pending=True)
        else:
            yield facts


def next_available(facts: Iterable[PodFacts], min_ready_seconds: int, now: datetime) -> Wake | None:
    """When the next pod becomes available for which only time is missing."""
    if min_ready_seconds <= 0:
        return None
    waits: list[tuple[float, str]] = []
    for fact in facts:
        if fact.is_ready and not fact.is_available and not fact.is_arriving:
            seconds = seconds_until_available(fact.pod, min_ready_seconds, now)
            if seconds is not None:
                waits.append((seconds, fact.name))
    if not waits:
        return None
    after, name = min(waits)
    return Wake(after=after, reason=f"pod {name} becomes available after minReadySeconds")


@dataclasses.dataclass(frozen=True, slots=True)
class SortedOut:
    """The pods of a workload by what becomes of them, each group by name."""

    kept: tuple[Pod, ...]
    """Active pods that stay."""
    inactive: tuple[Pod, ...]
    """Finished or terminating ones."""
    released: tuple[Pod, ...]
    """Active ones that the selector does not match any more."""


def sorted_out(
    pods: Iterable[Pod], owner: Owner, selector: Selector, belongs: Callable[[Pod], bool] | None = None
) -> SortedOut:
    """CS-65, CS-67. A workload that is being deleted lets nothing go. `belongs` narrows the selector."""
    kept: list[Pod] = []
    inactive: list[Pod] = []
    released: list[Pod] = []
    for pod in sorted(pods, key=operator.attrgetter("metadata.name")):
        reference = controller_of(pod)
        if not is_active(pod):
            inactive.append(pod)
        elif reference is None or reference.uid != owner.uid:
            continue  # an owner among others, but not the one that manages it
        elif owner.is_deleted or (selector.matches(pod.metadata.labels) and (belongs is None or belongs(pod))):
            kept.append(pod)
        else:
            released.append(pod)
    return SortedOut(tuple(kept), tuple(inactive), tuple(released))
