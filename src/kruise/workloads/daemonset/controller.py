"""How a DaemonSet is watched, and what it brings to the manager."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSet
from kruise.api.apps.definitions.daemonset import DEFINITION
from kruise.api.meta import Key
from kruise.api.native.daemon_pods import LONGEST_DELAY, NOT_HERE, verdict_on
from kruise.api.native.nodes import NODES, Node
from kruise.feature import Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.delays import KeptDelays
from kruise.machinery.plan import Conclusion, Outcomes, Plan
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import ControllerSpec, Source, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.daemonset.admission import ADMISSION
from kruise.workloads.daemonset.conclude import conclude
from kruise.workloads.daemonset.decide import decide
from kruise.workloads.daemonset.events import events
from kruise.workloads.daemonset.memo import Memo
from kruise.workloads.daemonset.predownload import GATE as PRE_DOWNLOAD_GATE
from kruise.workloads.daemonset.situation import Snapshot
from kruise.workloads.shared.adoption import ADOPTERS, WATCHED_PODS, orphans_for, pod_keys
from kruise.workloads.shared.node_keys import node_keys
from kruise.workloads.shared.reading import WATCHED_REVISIONS, common_sources, common_to_snapshots, pace_of, tasks_of

NAME = "daemonset-controller"
BY_SCHEDULER: FeatureFlag[bool] = FeatureFlag(
    "assign-pods-by-scheduler", Flag(boolean, True, "the scheduler places pods of DaemonSets on their nodes")
)


def _generation(daemon_set: DaemonSet) -> tuple[str, int]:
    """How often pods have failed on a node is forgotten with a new one (DS-44)."""
    return daemon_set.metadata.uid, daemon_set.metadata.generation


class _Snapshots:
    """Reads what a pass needs from the stores, under the settings of this process."""

    def __init__(self, settings: Settings, failures: KeptDelays) -> None:
        self._by_scheduler = settings.flag(BY_SCHEDULER)
        self._pulls_images = settings.gates.get(PRE_DOWNLOAD_GATE, False)
        self._failures = failures

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        daemon_set = view.store(DAEMON_SETS).get(*key)
        if daemon_set is None:
            return None
        try:
            from_label_selector(daemon_set.spec.selector)
        except SelectorError:
            return None  # admission refuses it; trying again cannot help
        seen = common_to_snapshots(view, daemon_set, pulls_images=self._pulls_images)
        return Snapshot(
            daemon_set=daemon_set,
            orphans=orphans_for(view, daemon_set),
            nodes=view.store(NODES).list(),
            delays=self._failures.of(_generation(daemon_set)),
            by_scheduler=self._by_scheduler,
            **seen,
        )


def _meaning(daemon_set: DaemonSet, node: Node | None) -> tuple[object, ...]:
    """What the node is to the DaemonSet: whether it has a pod, may keep one, and is one to be updated (DS-21). One
    that suits no pod is as good as none."""
    if node is None or (found := verdict_on(daemon_set.spec.template, node)) == NOT_HERE:
        return (NOT_HERE,)
    rolling = daemon_set.spec.update_strategy.rolling_update
    selector = rolling.selector if rolling is not None else None
    try:
        is_selected = selector is None or from_label_selector(selector).matches(node.metadata.labels)
    except SelectorError:
        is_selected = False
    return found, is_selected


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    failures = KeptDelays(LONGEST_DELAY)

    def concluded(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if plan.memo is not None:
            failures.note(_generation(snapshot.daemon_set), plan.memo_as(Memo).delays, snapshot.now)
        return conclude(snapshot, plan, outcomes)

    mine = owner_keys(DAEMON_SETS)
    sources: tuple[Source[Any], ...] = (
        Source(Watched(DAEMON_SETS, selectors=ADOPTERS), own_key),
        Source(WATCHED_PODS, pod_keys(DAEMON_SETS)),
        Source(WATCHED_REVISIONS, mine),
        Source(NODES, node_keys(DAEMON_SETS, _meaning)),
        *common_sources(settings, DAEMON_SETS, PRE_DOWNLOAD_GATE),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=DAEMON_SETS,
            sources=sources,
            snapshot=_Snapshots(settings, failures),
            decide=decide,
            conclude=concluded,
            snapshot_type=Snapshot,
            events=events,
            workers=tasks_of(settings, "daemonset"),
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


FEATURE = Feature(
    name="daemonset",
    flags=(BY_SCHEDULER,),
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=ADMISSION.webhooks,
    conversions=(ADMISSION.conversion,),
)
