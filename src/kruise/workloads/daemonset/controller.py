"""How a DaemonSet is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSet
from kruise.api.apps.definitions import DAEMON_SET_DEFINITION
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.meta import Key, key_of
from kruise.api.native.daemon_pods import verdict_on
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS
from kruise.feature import Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.delays import Delay, is_over
from kruise.machinery.plan import Conclusion, Outcomes, Plan
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.daemonset.conclude import conclude
from kruise.workloads.daemonset.decide import decide
from kruise.workloads.daemonset.events import events
from kruise.workloads.daemonset.keeping import LONGEST_DELAY
from kruise.workloads.daemonset.memo import Memo
from kruise.workloads.daemonset.predownload import GATE as PRE_DOWNLOAD_GATE
from kruise.workloads.daemonset.situation import Snapshot
from kruise.workloads.shared.adoption import ADOPTERS, WATCHED_PODS, orphans_for, pod_keys
from kruise.workloads.shared.reading import (
    TASKS_PER_WORKER,
    WATCHED_REVISIONS,
    has_resize_subresource,
    pace_of,
    pods_of,
    revisions_near,
)

NAME = "daemonset-controller"
BY_SCHEDULER: FeatureFlag[bool] = FeatureFlag(
    "assign-pods-by-scheduler", Flag(boolean, True, "the scheduler places pods of DaemonSets on their nodes")
)


class _FailureDelays:
    """How long failed pods of a DaemonSet stay on a node before they are replaced (DS-44). A new generation begins
    anew."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], dict[str, Delay]] = {}

    def of(self, daemon_set: DaemonSet) -> dict[str, Delay]:
        return dict(self._known.get(_generation(daemon_set), {}))

    def note(self, daemon_set: DaemonSet, delays: dict[str, Delay], now: datetime) -> None:
        if not delays:
            return
        self._known.setdefault(_generation(daemon_set), {}).update(delays)
        for key, by_node in list(self._known.items()):
            current = {node: delay for node, delay in by_node.items() if not is_over(delay, now, most=LONGEST_DELAY)}
            if current:
                self._known[key] = current
            else:
                del self._known[key]


def _generation(daemon_set: DaemonSet) -> tuple[str, int]:
    return daemon_set.metadata.uid, daemon_set.metadata.generation


class _Snapshots:
    """Reads what a pass needs from the stores, under the settings of this process."""

    def __init__(self, settings: Settings, failures: _FailureDelays) -> None:
        self._by_scheduler = settings.flag(BY_SCHEDULER)
        self._pulls_images = settings.gates.get(PRE_DOWNLOAD_GATE, False)
        self._failures = failures

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        daemon_set = view.store(DAEMON_SETS).get(*key)
        if daemon_set is None:
            return None
        try:
            if from_label_selector(daemon_set.spec.selector).is_empty:
                return None  # it would take every pod of the namespace; admission refuses it (DS-34)
        except SelectorError:
            return None  # admission refuses it; trying again cannot help
        uid = daemon_set.metadata.uid
        jobs = view.store(IMAGE_PULL_JOBS) if self._pulls_images else None
        return Snapshot(
            daemon_set=daemon_set,
            pods=pods_of(view, uid),
            orphans=orphans_for(view, daemon_set),
            nodes=view.store(NODES).list(),
            revisions=revisions_near(view, daemon_set),
            pull_jobs=jobs.by_index(OWNER, uid) if jobs is not None and jobs.synced else (),
            pull_jobs_served=jobs is not None and jobs.synced,
            delays=self._failures.of(daemon_set),
            gates=dict(view.gates),
            by_scheduler=self._by_scheduler,
            resize_subresource=has_resize_subresource(view),
            pending=view.pending(PODS),
            now=view.now,
            seed=view.seed,
        )


def _node_keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
    """Only the DaemonSets to which the node is something else now (DS-21): heartbeats are no news."""
    if old is not None and new is not None and _traits(old) == _traits(new):
        return
    for found in stores.store(DAEMON_SETS).list():
        if _meaning(found, old) != _meaning(found, new):
            yield key_of(found)


def _traits(node: Node) -> tuple[object, ...]:
    return node.metadata.labels, node.spec.taints


def _meaning(daemon_set: DaemonSet, node: Node | None) -> tuple[object, ...] | None:
    """What the node is to the DaemonSet: whether it has a pod, may keep one, and is one to be updated."""
    if node is None:
        return None
    rolling = daemon_set.spec.update_strategy.rolling_update
    selector = rolling.selector if rolling is not None else None
    try:
        is_selected = selector is None or from_label_selector(selector).matches(node.metadata.labels)
    except SelectorError:
        is_selected = False
    return verdict_on(daemon_set.spec.template, node), is_selected


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    failures = _FailureDelays()

    def concluded(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if plan.memo is not None:
            failures.note(snapshot.daemon_set, plan.memo_as(Memo).delays, snapshot.now)
        return conclude(snapshot, plan, outcomes)

    mine = owner_keys(DAEMON_SETS)
    sources: list[Source[Any]] = [
        Source(Watched(DAEMON_SETS, selectors=ADOPTERS), own_key),
        Source(WATCHED_PODS, pod_keys(DAEMON_SETS)),
        Source(WATCHED_REVISIONS, mine),
        Source(NODES, _node_keys),
    ]
    if settings.gates.get(PRE_DOWNLOAD_GATE, False):
        sources.append(Source(Watched(IMAGE_PULL_JOBS, indexes=OWNER_INDEX, optional=True), mine))
    return (
        ControllerSpec(
            name=NAME,
            subject=DAEMON_SETS,
            sources=tuple(sources),
            snapshot=_Snapshots(settings, failures),
            decide=decide,
            conclude=concluded,
            snapshot_type=Snapshot,
            events=events,
            workers=settings.workers_of("daemonset") * TASKS_PER_WORKER,
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


FEATURE = Feature(
    name="daemonset",
    flags=(BY_SCHEDULER,),
    definitions=(DAEMON_SET_DEFINITION,),
    controllers=controllers,
)
