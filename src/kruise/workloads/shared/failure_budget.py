"""The failure budget: how many pods of a new revision may fail before its rollout stops by itself.

A workload asks for it with an annotation:

    apps.kruise.io/failure-budget: "2"              stop when more than 2 updated pods have failed
    apps.kruise.io/failure-budget: "10%:rollback"   go back when more than 10 % of the replicas have

Nothing here knows a kind of workload: pods, names of revisions and numbers in, a judgement out. That a rollout stopped
is remembered in the status of the workload (`failureBudget`), because a pod that crashes again and again looks well in
between. The condition says the same in words, for people: nobody reads it back.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from kruise.api.apps.shared import FailedPod, FailureBudgetStatus
from kruise.api.meta import Condition
from kruise.api.native.container_reasons import NO_IMAGE, NO_START
from kruise.api.native.pod import ContainerStateTerminated, ContainerStatus, Pod
from kruise.inplace import keys
from kruise.inplace.availability import is_update_ready, latest_meaning
from kruise.inplace.barriers import waits_for_turn
from kruise.inplace.resizing import is_resizing, refused_resize, resizing_since
from kruise.inplace.state import BrokenAnnotation, UpdateState, in_grace, update_state_of
from kruise.machinery.codec import evolve
from kruise.machinery.intorpercent import IntOrPercent, scaled_fraction
from kruise.machinery.wording import plural, shortened
from kruise.workloads.shared.conditions import FAILURE_BUDGET, lasting

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
FIRST_REMEDY = f"roll out a newer template, or raise or remove the annotation {ANNOTATION}"
"""Where nothing ever worked, there is nothing to go back to."""

LONGEST_MESSAGE = 512
_NAMED = 3
_LONGEST_FAILURE = 128


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
    state = _update_in_place(pod)
    moved = state.update_timestamp if state is not None else None
    resize = _resize(pod, state, deadline_seconds, now) if state is not None and state.update_resources else None
    if resize is not None and resize.failure:
        return resize
    if has_arrived(pod, now):
        return resize or NOT_FAILED
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        if trouble := _trouble(pod, status, moved):
            return Look(trouble)
    if resize is not None:
        return resize
    if is_update_ready(pod, 0, now) or in_grace(pod) or _is_held_back(pod):
        return NOT_FAILED  # it is ready, or not ready because of us and not because of its revision
    since = max((time for time in (pod.metadata.creation_timestamp, moved, _unready_since(pod)) if time), default=now)
    missing = (latest_meaning(since) + timedelta(seconds=deadline_seconds) - now).total_seconds()
    if missing > 0:
        return Look(due_after=missing)
    what = f"not ready for {deadline_seconds} s" if pod.spec.node_name else f"without a node for {deadline_seconds} s"
    return Look(what)


def _resize(pod: Pod, state: UpdateState, deadline_seconds: int, now: datetime) -> Look | None:
    """The pod may serve on with what it has, yet it does not get where its revision wants it. None: it has got there,
    or nobody has said anything about it."""
    refused = refused_resize(pod)
    if refused is None and not is_resizing(pod):
        return None
    # It may be another resize, of somebody else, long after the update.
    since = max(time for time in (state.update_timestamp, resizing_since(pod)) if time is not None)
    missing = (latest_meaning(since) + timedelta(seconds=deadline_seconds) - now).total_seconds()
    if missing > 0 and (refused is None or not refused.is_final):
        return Look(due_after=missing)
    return Look(str(refused) if refused is not None else f"without its new resources for {deadline_seconds} s")


def has_arrived(pod: Pod, now: datetime) -> bool:
    """Ready for a while. A container that crashes at once may make its pod ready for a moment each time."""
    return is_update_ready(pod, ARRIVAL, now)


def is_lost(pod: Pod) -> bool:
    """Whether the pod ended for good in a way that its revision may have to do with."""
    return pod.status.phase == "Failed" and pod.status.reason not in _SENT_AWAY


def _update_in_place(pod: Pod) -> UpdateState | None:
    """How the pod was brought to its revision; None where it was made at it."""
    try:
        return update_state_of(pod)
    except BrokenAnnotation:
        return None


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
        if is_present and not waits_for_turn(pod, status):
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
class RolloutState:
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
    is_first: bool = False
    """No revision has ever been rolled out completely."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A rollout that has stopped."""

    memory: FailureBudgetStatus
    """What later passes must know of it."""
    allowed: int
    rolls_back: bool
    message: str
    remedy: str
    is_new: bool
    """It was not known before this pass."""

    @property
    def revision(self) -> str:
        return self.memory.revision

    @property
    def failed(self) -> int:
        """The most pods that were seen to have failed."""
        return self.memory.failed

    @property
    def pods(self) -> str:
        return described(self.memory)

    @property
    def reason(self) -> str:
        return ROLLED_BACK if self.rolls_back else PAUSED


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    stop: Stop | None = None
    ended: str = ""
    """Why a stop that was known is over; empty: there was none, or it goes on."""
    trial: FailureBudgetStatus | None = None
    """What is remembered where nothing stopped: that no revision has ever been rolled out completely."""


UNJUDGED = Judgement()


def judge(
    budget: Budget | None, rollout: RolloutState, memory: FailureBudgetStatus | None, *, is_told: bool = False
) -> Judgement:
    """Whether the rollout stops, goes on standing still, or may go on.

    `memory` is what the status keeps of a stop. `is_told`: its condition stands, so it is no news. A server that does
    not know the field (its definition is another one) keeps the condition alone.
    """
    if memory is not None and (over := _why_over(budget, rollout, memory)):
        again = judge(budget, rollout, None)
        return again if again.stop is not None else Judgement(ended=over)
    if budget is None or (memory is None and (rollout.is_complete or not rollout.is_under_way)):
        return UNJUDGED
    allowed, seen = budget.allows(rollout.replicas), len(rollout.failed)
    if memory is None and seen <= allowed:
        return UNJUDGED
    if memory is None or seen > memory.failed:
        kept = _remembered(budget, rollout)
    else:
        kept = evolve(memory, budget=str(budget.amount))
    return Judgement(stop=_stop(budget, rollout, kept, allowed=allowed, is_new=memory is None and not is_told))


def _remembered(budget: Budget, rollout: RolloutState) -> FailureBudgetStatus:
    failed = rollout.failed
    return FailureBudgetStatus(
        revision=rollout.revision,
        failed=len(failed),
        budget=str(budget.amount),
        pods=tuple(
            FailedPod(name=name, failure=shortened(failed[name], _LONGEST_FAILURE)) for name in sorted(failed)[:_NAMED]
        ),
    )


def _why_over(budget: Budget | None, rollout: RolloutState, memory: FailureBudgetStatus) -> str:
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
    if memory.budget != str(budget.amount) and failed <= budget.allows(rollout.replicas):
        return f"the budget of {budget.amount} allows {plural(failed, 'failed pod')}"
    return ""


def _stop(budget: Budget, rollout: RolloutState, memory: FailureBudgetStatus, *, allowed: int, is_new: bool) -> Stop:
    rolls_back = budget.reaction is Reaction.ROLL_BACK and bool(rollout.back_to)
    if rolls_back:
        tail = f"updated pods go back to {rollout.back_to}"
    elif budget.reaction is Reaction.ROLL_BACK:
        tail = "there is no earlier revision to go back to, so no further pod is updated"
    else:
        tail = "no further pod is updated"
    head = (
        f"{memory.failed} pod{'s' if memory.failed != 1 else ''} failed at revision {rollout.revision}, "
        f"failure budget {budget.amount} allows {allowed}: "
    )
    pods = described(memory)
    remedy = FIRST_REMEDY if rollout.is_first else REMEDY
    message = f"{head}{pods}; {tail}; {remedy}"
    if len(message) > LONGEST_MESSAGE:
        kept = max(len(pods) - (len(message) - LONGEST_MESSAGE) - 3, 0)
        message = f"{head}{pods[:kept]}...; {tail}; {remedy}"[:LONGEST_MESSAGE]
    return Stop(memory=memory, allowed=allowed, rolls_back=rolls_back, message=message, remedy=remedy, is_new=is_new)


def described(memory: FailureBudgetStatus) -> str:
    """The first pods that failed, and how many more."""
    named = ", ".join(f"{pod.name} ({pod.failure.replace(';', ',')})" for pod in memory.pods)
    more = memory.failed - len(memory.pods)
    return f"{named} and {more} more" if more > 0 else named


def condition_of(stop: Stop | None, previous: Condition | None, now: datetime) -> Condition | None:
    """The condition from now on; None: there is none."""
    if stop is None:
        return None
    before = None if stop.is_new else previous
    return lasting(FAILURE_BUDGET, stop.message, before, now, reason=stop.reason)
