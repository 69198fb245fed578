"""Which barriers are open, decided from a pod (CLP A3).

ConfigMaps are not watched: there may be thousands, and only pods matter. What is open follows from the pod: levels
whose containers have run were open. The keys that should be there are applied as a whole, so a barrier that somebody
has deleted comes back with every level that is ready, as soon as a container waits for it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.pod import PODS, ContainerStatus, Pod
from kruise.inplace.barriers import config_name, key_of, priority_of, waits_for_turn
from kruise.machinery import plan as plans
from kruise.machinery.codec import Struct
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Conclusion, Outcomes, Phase, Plan, Target, Wake
from kruise.machinery.remembered import once_per_object
from kruise.sidecars.launch_priority.barrier import DONE, is_done, lets_others_start

MANAGER = "kruise-launch-priority"
"""Who owns the keys."""
OPEN = "open"
AGAIN = timedelta(seconds=5)
"""A kubelet needs a while to find a key. Whether the barrier is there at all is asked again only after that."""


class Opened(Struct):
    """What was written last for a pod."""

    lowest: int
    """All levels from this one up."""
    at: datetime


class Snapshot(Struct, kw_only=True):
    pod: Pod
    now: datetime
    opened: Opened | None = None


class Memo(Struct):
    lowest: int | None = None
    """The lowest level that is open when the plan is carried out; None: nothing is opened."""


@once_per_object
def levels_of(pod: Pod) -> tuple[int, ...]:
    """The priorities of its containers, the highest first."""
    found = {priority for container in pod.spec.containers if (priority := priority_of(container)) is not None}
    return tuple(sorted(found, reverse=True))


def is_concerned(pod: Pod) -> bool:
    """Whether a barrier may have to be opened, or opened again."""
    if pod.metadata.deletion_timestamp is not None or not levels_of(pod):
        return False
    if pod.status.phase in ("Succeeded", "Failed"):
        return False
    # A pod whose containers are all ready has its mark, unless a manager died before it was written: CLP-12 would leave
    # it without one.
    return not is_done(pod) or bool(_missing_levels(pod))


def decide(snapshot: Snapshot) -> Plan:
    pod, now = snapshot.pod, snapshot.now
    if not is_concerned(pod):
        return Plan()
    levels, pending = levels_of(pod), _pending(pod)
    highest = max(pending, default=None)
    lowest_open = min((level for level in levels if highest is None or level >= highest), default=levels[-1])
    before = snapshot.opened.lowest if snapshot.opened is not None else None
    lowest = min([lowest_open, *(level for level in _begun(pod)), *([before] if before is not None else [])])
    if is_done(pod):
        lowest = levels[-1]
    is_last = lowest == levels[-1] or (highest is not None and highest == min(pending))
    awaited = _awaited_since(pod, snapshot)
    # A clock that was ahead, and was put back, keeps nobody waiting.
    asked = awaited is not None and not timedelta(0) <= now - awaited < AGAIN
    actions: list[Action] = []
    is_unknown = before is None and _needs_key(pod, lowest)
    if is_unknown or (before is not None and lowest < before) or asked:
        actions.append(_opening(pod, [level for level in levels if level >= lowest]))
    if is_last and not is_done(pod):
        actions.append(_mark(pod))
    wakes: tuple[Wake, ...] = ()
    if awaited is not None and not asked:
        after = (awaited + AGAIN - now).total_seconds()
        wakes = (Wake(after=after, reason="a container still waits for its barrier"),)
    if not actions:
        return Plan(wakes=wakes)
    return Plan(
        phases=(Phase(name=OPEN, chains=(tuple(actions),)),),
        wakes=wakes,
        memo=Memo(lowest=lowest if actions[0].target.resource == CONFIG_MAPS else None),
    )


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return Conclusion()


def _awaited_since(pod: Pod, snapshot: Snapshot) -> datetime | None:
    """Since when a container of an open level may have found its key, where it says that it cannot: the barrier may be
    gone. Containers of levels that are not open yet say so all the time, and that is as it should be."""
    opened = snapshot.opened
    if opened is None or not any(level >= opened.lowest for level in _missing_levels(pod)):
        return None
    return opened.at


def _opening(pod: Pod, levels: list[int]) -> Action:
    """All open levels at once: applied by one manager, what it leaves out would be taken away (CLP-13)."""
    target = Target(CONFIG_MAPS, pod.metadata.namespace, config_name(pod.metadata.name))
    reference = Owner.of(PODS, pod).reference()
    owner = {name: value for name, value in reference.items() if name not in ("controller", "blockOwnerDeletion")}
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": target.name, "namespace": target.namespace, "ownerReferences": [owner]},
        "data": {key_of(level): "true" for level in levels},
    }
    reason = f"containers of priority {levels[-1]} may start"
    return plans.apply_object(target, body, field_manager=MANAGER, reason=reason, force=True)


def _mark(pod: Pod) -> Action:
    body = {"metadata": {"annotations": {DONE: "true"}}}
    return plans.patch(Target.of(PODS, pod), body, uid=pod.metadata.uid, reason="all its containers may start")


# What the pod tells


def _statuses(pod: Pod) -> dict[str, ContainerStatus]:
    return {status.name: status for status in pod.status.container_statuses}


def _pending(pod: Pod) -> list[int]:
    """CLP-11: levels with a container that others wait for."""
    statuses = _statuses(pod)
    return [
        priority
        for container in pod.spec.containers
        if (priority := priority_of(container)) is not None and not lets_others_start(pod, statuses.get(container.name))
    ]


def _begun(pod: Pod) -> list[int]:
    """Levels that were open once: one of their containers has run."""
    statuses = _statuses(pod)
    return [
        priority
        for container in pod.spec.containers
        if (priority := priority_of(container)) is not None and _has_run(statuses.get(container.name))
    ]


def _has_run(status: ContainerStatus | None) -> bool:
    if status is None:
        return False
    ended = status.state.terminated or status.last_state.terminated
    return bool(status.ready or status.restart_count or status.state.running is not None or ended is not None)


def _needs_key(pod: Pod, lowest: int) -> bool:
    """Whether a container of these levels still has to find its key. Where all of them have run, a manager before may
    have opened more than the pod shows (a container above is not ready any more), and that must not be taken away:
    levels open one by one, so below one that has not run as a whole none is open."""
    statuses = _statuses(pod)
    return any(level >= lowest for level in _missing_levels(pod)) or any(
        (priority := priority_of(container)) is not None
        and priority >= lowest
        and not _has_run(statuses.get(container.name))
        for container in pod.spec.containers
    )


def _missing_levels(pod: Pod) -> list[int]:
    """Levels whose containers tell that they do not find their key."""
    priorities = {container.name: priority_of(container) for container in pod.spec.containers}
    return [
        priority
        for status in pod.status.container_statuses
        if (priority := priorities.get(status.name)) is not None and waits_for_turn(pod, status)
    ]
