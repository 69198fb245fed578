"""The failure budget: how many pods of a new revision may fail before its rollout stops by itself.

A workload asks for it with an annotation:

    apps.kruise.io/failure-budget: "2"              stop when more than 2 updated pods have failed
    apps.kruise.io/failure-budget: "10%:rollback"   go back when more than 10 % of the replicas have

Nothing here knows a kind of workload: pods, names of revisions and numbers in, a judgement out. That a rollout stopped
is remembered in a condition of the workload, because a pod that crashes again and again looks well in between. The
message of the condition is that memory: its head is read back.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from kruise.api.meta import Condition
from kruise.api.native.container_reasons import NO_IMAGE, NO_START
from kruise.api.native.pod import ContainerStateTerminated, ContainerStatus, Pod
from kruise.inplace import keys
from kruise.inplace.availability import is_update_ready, latest_meaning
from kruise.inplace.state import BrokenAnnotation, in_grace, state_of
from kruise.machinery.intorpercent import IntOrPercent, scaled_fraction
from kruise.machinery.wording import listed
from kruise.workloads.conditions import FAILURE_BUDGET, lasting

ANNOTATION = "apps.kruise.io/failure-budget"
PAUSED = "Paused"
ROLLED_BACK = "RolledBack"
DEFAULT_DEADLINE = 600
"""Seconds for a pod to become ready, where the workload does not say."""
FORMS = (
    'write a number of pods or a percentage of the replicas, and after a colon "pause" or "rollback" if you like: '
    '"2", "10%", "2:pause", "10%:rollback"'
)
ARRIVAL = 10
"""Seconds that a pod has to be ready before we believe it."""
REMEDY = f"roll out a newer template, go back with kruise rollout undo, or raise or remove the annotation {ANNOTATION}"

LONGEST_MESSAGE = 512
_NAMED = 3


# What is asked for


class Reaction(enum.StrEnum):
    PAUSE = "pause"
    ROLL_BACK = "rollback"


class BudgetError(ValueError):
    """The annotation says nothing that we understand; the text names the allowed forms."""


@dataclasses.dataclass(frozen=True, slots=True)
class Budget:
    amount: IntOrPercent
    reaction: Reaction = Reaction.PAUSE

    def allows(self, replicas: int) -> int:
        """Updated pods that may have failed. A percentage is rounded down: the careful way."""
        return scaled_fraction(self.amount, max(replicas, 0), round_up=False)


_FORM = re.compile(r"(?:(?P<number>[0-9]{1,9})|(?P<percent>[0-9]{1,3}(?:\.[0-9]{1,6})?%))(?::(?P<reaction>[a-z]+))?")


def parse(text: str) -> Budget:
    found = _FORM.fullmatch(text)
    reaction = (found["reaction"] or Reaction.PAUSE) if found is not None else ""
    if found is None or reaction not in tuple(Reaction):
        raise BudgetError(f"is no failure budget: {FORMS}")
    if found["number"] is not None:
        return Budget(int(found["number"]), Reaction(reaction))
    percent: str = found["percent"]
    if float(percent[:-1]) > 100:
        raise BudgetError(f"is more than 100 %: {FORMS}")
    return Budget(percent, Reaction(reaction))


def budget_of(annotations: Mapping[str, str]) -> Budget | None:
    """The budget of a workload; None where it asks for none, or in a way that nobody understands."""
    text = annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        return parse(text)
    except BudgetError:
        return None


# Whether a pod failed


_SENT_AWAY = frozenset({"NodeLost", "NodeShutdown", "NodeAffinity", "Preempting", "Shutdown", "Terminated"})
"""Reasons of a failed pod that tell about its node, or about more important pods, and not about its template."""
_CRASHES = 2
_LONG_AGO = 2000
"""A container that could not be started at all says that it started in 1970."""


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What one look at a pod says about its revision."""

    failure: str = ""
    """In a few words; empty: it has not failed."""
    due_after: float | None = None
    """Seconds after which it has failed if it is not ready by then."""


NOT_FAILED = Look()


def look_at(pod: Pod, *, deadline_seconds: int, now: datetime) -> Look:
    """Whether an active pod has failed at the revision that it carries."""
    if has_arrived(pod, now):
        return NOT_FAILED
    moved = _moved_in_place(pod)
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if trouble := _trouble(pod, status, moved):
            return Look(trouble)
    if is_update_ready(pod, 0, now) or in_grace(pod) or _is_held_back(pod):
        return NOT_FAILED  # it is ready, or not ready because of us and not because of its revision
    since = max((time for time in (pod.metadata.creation_timestamp, moved, _unready_since(pod)) if time), default=now)
    missing = (latest_meaning(since) + timedelta(seconds=deadline_seconds) - now).total_seconds()
    if missing > 0:
        return Look(due_after=missing)
    what = f"not ready for {deadline_seconds} s" if pod.spec.node_name else f"without a node for {deadline_seconds} s"
    return Look(what)


def has_arrived(pod: Pod, now: datetime) -> bool:
    """Ready for a while. A container that crashes at once may make its pod ready for a moment each time."""
    return is_update_ready(pod, ARRIVAL, now)


def is_lost(pod: Pod) -> bool:
    """Whether the pod ended for good in a way that its revision may have to do with."""
    return pod.status.phase == "Failed" and pod.status.reason not in _SENT_AWAY


def _moved_in_place(pod: Pod) -> datetime | None:
    """When the pod was brought to its revision; None where it was made at it."""
    try:
        state = state_of(pod)
    except BrokenAnnotation:
        return None
    return state.update_timestamp if state is not None else None


def _unready_since(pod: Pod) -> datetime | None:
    for condition in pod.status.conditions:
        if condition.type == "Ready" and condition.status != "True":
            return condition.last_transition_time
    return None


def _is_held_back(pod: Pod) -> bool:
    """A hook marks the pod as not ready, or somebody else who asks for that through `KruisePodReady`."""
    return any(item.type == keys.KRUISE_POD_READY and item.status == "False" for item in pod.status.conditions)


def _trouble(pod: Pod, status: ContainerStatus, moved: datetime | None) -> str:
    """What is wrong with a container at the present revision.

    After an update in place a kubelet goes on telling the old trouble until it has pulled the new image. That must not
    count, or the repair of broken pods would be taken for the next failure.
    """
    ended = status.state.terminated or status.last_state.terminated
    is_present = moved is None or (ended is not None and _began_after(ended, moved))
    waiting = status.state.waiting
    if waiting is not None and waiting.reason in NO_IMAGE:
        if moved is None or _image_of(pod, status.name) in waiting.message:
            return f"{waiting.reason} of container {status.name}"
    elif waiting is not None and waiting.reason in NO_START:
        if is_present:
            return f"{waiting.reason} of container {status.name}"
    elif ended is not None and ended.exit_code != 0 and is_present and _restarts(status, moved) >= _CRASHES:
        return f"container {status.name} ended with code {ended.exit_code}, {status.restart_count} restarts"
    return ""


def _restarts(status: ContainerStatus, moved: datetime | None) -> int:
    """Without the one that an update in place makes."""
    return status.restart_count - (moved is not None)


def _began_after(ended: ContainerStateTerminated, moved: datetime) -> bool:
    if ended.finished_at is None or ended.finished_at <= moved:
        return False
    return ended.started_at is None or ended.started_at.year < _LONG_AGO or ended.started_at > moved


def _image_of(pod: Pod, container: str) -> str:
    everyone = (*pod.spec.init_containers, *pod.spec.containers)
    return next((item.image for item in everyone if item.name == container), "")


# Whether a rollout stops


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """Where a workload stands, as far as the budget asks."""

    revision: str
    """The one that is rolled out."""
    replicas: int
    failed: Mapping[str, str]
    """Pods that failed at this revision, and what they failed of."""
    is_under_way: bool
    """The revision has not been rolled out completely before: what fails later has other causes."""
    is_complete: bool
    """All pods carry the revision, are available, and have been ready for a while."""
    back_to: str = ""
    """The revision to go back to; empty: there is none."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A rollout that has stopped."""

    revision: str
    failed: int
    """The most pods that were seen to have failed."""
    allowed: int
    rolls_back: bool
    message: str
    pods: str
    is_new: bool
    """It was not known before this pass."""

    @property
    def reason(self) -> str:
        return ROLLED_BACK if self.rolls_back else PAUSED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    stop: Stop | None = None
    ended: str = ""
    """Why a stop that was known is over; empty: there was none, or it goes on."""


UNJUDGED = Judgement()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    failed: int
    revision: str
    amount: str
    pods: str


_HEAD = re.compile(
    r"(?P<failed>[0-9]+) pods? failed at revision (?P<revision>\S+), "
    r"failure budget (?P<amount>\S+) allows [0-9]+: (?P<pods>[^;]*); "
)


def judge(budget: Budget | None, rollout: Rollout, previous: Condition | None) -> Judgement:
    """Whether the rollout stops, goes on standing still, or may go on. `previous` is the condition as it stands."""
    memory = _remembered(previous)
    if memory is not None and (over := _why_over(budget, rollout, memory)):
        again = judge(budget, rollout, None)
        return again if again.stop is not None else Judgement(ended=over)
    if budget is None or (memory is None and (rollout.is_complete or not rollout.is_under_way)):
        return UNJUDGED
    allowed, seen = budget.allows(rollout.replicas), len(rollout.failed)
    if memory is None and seen <= allowed:
        return UNJUDGED
    failed = max(seen, memory.failed if memory is not None else 0)
    pods = memory.pods if memory is not None and memory.failed >= seen else listed(_described(rollout.failed), _NAMED)
    return Judgement(stop=_stop(budget, rollout, failed=failed, allowed=allowed, pods=pods, is_new=memory is None))


def _why_over(budget: Budget | None, rollout: Rollout, memory: _Memory) -> str:
    """Why what is remembered does not hold any more.

    While the annotation says the same, more replicas do not end it: a percentage of them may have grown just because
    pods failed.
    """
    if budget is None:
        return f"the annotation {ANNOTATION} is gone"
    if memory.revision != rollout.revision:
        return f"{rollout.revision} is rolled out now, not {memory.revision}"
    if rollout.is_complete:
        return f"all pods are available at {rollout.revision}"
    failed = max(memory.failed, len(rollout.failed))
    if memory.amount != str(budget.amount) and failed <= budget.allows(rollout.replicas):
        return f"the budget of {budget.amount} allows {failed} failed pods"
    return ""


def _stop(budget: Budget, rollout: Rollout, *, failed: int, allowed: int, pods: str, is_new: bool) -> Stop:
    rolls_back = budget.reaction is Reaction.ROLL_BACK and bool(rollout.back_to)
    if rolls_back:
        tail = f"updated pods go back to {rollout.back_to}"
    elif budget.reaction is Reaction.ROLL_BACK:
        tail = "there is no earlier revision to go back to, so no further pod is updated"
    else:
        tail = "no further pod is updated"
    head = (
        f"{failed} pod{'s' if failed != 1 else ''} failed at revision {rollout.revision}, "
        f"failure budget {budget.amount} allows {allowed}: "
    )
    message = f"{head}{pods}; {tail}; {REMEDY}"
    if len(message) > LONGEST_MESSAGE:
        kept = max(len(pods) - (len(message) - LONGEST_MESSAGE) - 3, 0)
        message = f"{head}{pods[:kept]}...; {tail}; {REMEDY}"[:LONGEST_MESSAGE]
    return Stop(
        revision=rollout.revision,
        failed=failed,
        allowed=allowed,
        rolls_back=rolls_back,
        message=message,
        pods=pods,
        is_new=is_new,
    )


def condition_of(stop: Stop | None, previous: Condition | None, now: datetime) -> Condition | None:
    """The condition from now on; None: there is none."""
    if stop is None:
        return None
    before = None if stop.is_new else previous
    return lasting(FAILURE_BUDGET, stop.message, before, now, reason=stop.reason)


def _remembered(condition: Condition | None) -> _Memory | None:
    if condition is None or condition.status != "True":
        return None
    found = _HEAD.match(condition.message)
    if found is None:
        return None
    return _Memory(failed=int(found["failed"]), revision=found["revision"], amount=found["amount"], pods=found["pods"])


def _described(failed: Mapping[str, str]) -> list[str]:
    return [f"{name} ({failed[name].replace(';', ',')})" for name in sorted(failed)]
