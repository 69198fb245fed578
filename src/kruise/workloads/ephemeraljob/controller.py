"""How an EphemeralJob is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.apps.definitions.ephemeraljob import DEFINITION
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, EphemeralJob
from kruise.api.meta import Key, key_of
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.feature import Feature, Settings
from kruise.machinery.delays import next_delay
from kruise.machinery.mapping import selected_by
from kruise.machinery.plan import Conclusion, Outcomes, Plan, Result
from kruise.machinery.selector_index import Selects
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Watched
from kruise.workloads.ephemeraljob.admission import webhooks
from kruise.workloads.ephemeraljob.conclude import FIRST_DELAY, conclude, events
from kruise.workloads.ephemeraljob.decide import INJECT, decide
from kruise.workloads.ephemeraljob.pods import seen
from kruise.workloads.ephemeraljob.situation import Refusal, Snapshot
from kruise.workloads.shared.reading import pace_of

NAME = "ephemeraljob-controller"
WORKERS = 10
"""EJ-59."""
LONGEST_DELAY = 300.0
_SELECTED = "ephemeraljob-pods"


def _selects(job: EphemeralJob) -> tuple[Selects, ...]:
    """A job that has ended asks for no more pods, but tells of those that it has served."""
    return (Selects(job.spec.selector, job.metadata.namespace),)


_by_labels = selected_by(EPHEMERAL_JOBS, _SELECTED)


def _relevant(pod: Pod) -> tuple[object, ...]:
    """All of a pod that a job looks at (EJ-56, EJ-57)."""
    return (
        pod.metadata.labels,
        pod.spec.ephemeral_containers,
        pod.status.ephemeral_container_statuses,
        is_active(pod),
        pod.spec.node_name,
    )


def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    if not len(stores.store(EPHEMERAL_JOBS)):
        return ()
    if old is not None and new is not None and _relevant(old) == _relevant(new):
        return ()
    return _by_labels(old, new, stores)


class _Refusals:
    """Which pods the server refused containers for, and when to try again."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[str, dict[str, Refusal]]] = {}
        """The uid of the job, and the pods by theirs."""

    def of(self, job: EphemeralJob) -> dict[str, Refusal]:
        uid, known = self._known.get(key_of(job), ("", {}))
        return known if uid == job.metadata.uid else {}

    def note(self, snapshot: Snapshot, outcomes: Outcomes) -> None:
        job = snapshot.job
        known = {**self.of(job)}
        self.forget(key_of(job))
        present = {pod.metadata.uid for pod in snapshot.pods}
        for outcome in outcomes.within(INJECT):
            pod = outcome.action.uid
            if outcome.result is Result.FAILED:
                before = known[pod].delay if pod in known else None
                delay = next_delay(before, snapshot.now, first=FIRST_DELAY, most=LONGEST_DELAY)
                known[pod] = Refusal(message=outcome.message, delay=delay)
            elif outcome.result is Result.DONE:
                known.pop(pod, None)
        is_over = job.status.completion_time or job.metadata.deletion_timestamp
        if not is_over and (left := {pod: refusal for pod, refusal in known.items() if pod in present}):
            self._known[key_of(job)] = (job.metadata.uid, left)

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


class _Silences:
    """Since when pods have containers that nobody has reported. A manager that starts anew counts anew."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, datetime]] = {}

    def look(self, key: Key, job: EphemeralJob, pods: Iterable[Pod], now: datetime) -> dict[str, datetime]:
        before, uid = self._known.pop(key, {}), job.metadata.uid
        if job.status.completion_time is not None:
            return {}
        silent = (one for pod in pods if (one := seen(pod, uid)).is_served and not one.statuses)
        found = {one.pod.metadata.uid: min(before.get(one.pod.metadata.uid, now), now) for one in silent}
        if found:
            self._known[key] = found
        return found

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    refusals, silences = _Refusals(), _Silences()

    def snapshot(view: View, key: Key) -> Snapshot | None:
        job = view.store(EPHEMERAL_JOBS).get(*key)
        if job is None:
            refusals.forget(key)
            silences.forget(key)
            return None
        pods = _pods(view, job)
        unreported = silences.look(key, job, pods, view.now)
        return Snapshot(job=job, pods=pods, now=view.now, refusals=refusals.of(job), unreported=unreported)

    def concluded(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        refusals.note(snapshot, outcomes)
        return conclude(snapshot, plan, outcomes)

    sources: tuple[Source[Any], ...] = (
        Source(Watched(EPHEMERAL_JOBS, selectors={_SELECTED: _selects}), own_key),
        Source(PODS, pod_keys),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=EPHEMERAL_JOBS,
            sources=sources,
            snapshot=snapshot,
            decide=decide,
            conclude=concluded,
            snapshot_type=Snapshot,
            events=events,
            workers=WORKERS,
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


def _pods(view: View, job: EphemeralJob) -> tuple[Pod, ...]:
    """EJ-17: an empty selector matches every pod of the namespace, none matches nothing."""
    try:
        selector = from_label_selector(job.spec.selector)
    except SelectorError:
        return ()
    if selector.selects_nothing:
        return ()
    store = view.store(PODS)
    found = store.list(job.metadata.namespace)
    return tuple(pod for pod in found if selector.matches(pod.metadata.labels) and not store.is_terminating(pod))


FEATURE = Feature(name="ephemeraljob", definitions=(DEFINITION,), controllers=controllers, webhooks=webhooks)
