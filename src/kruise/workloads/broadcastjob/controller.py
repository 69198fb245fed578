"""How a BroadcastJob is watched, and what it brings to the manager."""

from __future__ import annotations

from kruise.api.apps.broadcastjob import BROADCAST_JOBS, BroadcastJob
from kruise.api.apps.definitions.broadcastjob import DEFINITION
from kruise.api.meta import Key, key_of
from kruise.api.native.nodes import NODES, Node
from kruise.feature import Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.plan import Conclusion, Outcomes, Plan
from kruise.machinery.spec import OWNER_INDEX, ControllerSpec, Source, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.broadcastjob.admission import ADMISSION
from kruise.workloads.broadcastjob.conclude import conclude, events
from kruise.workloads.broadcastjob.decide import CREATE, decide
from kruise.workloads.broadcastjob.fitting import judge_of, traits
from kruise.workloads.broadcastjob.situation import Snapshot, wants_no_nodes
from kruise.workloads.shared.node_keys import node_keys
from kruise.workloads.shared.reading import WATCHED_PODS, pace_of, pods_of, tasks_of

NAME = "broadcastjob-controller"
_ALREADY_EXISTS = "AlreadyExists"
BY_SCHEDULER: FeatureFlag[bool] = FeatureFlag(
    "assign-bcj-pods-by-scheduler", Flag(boolean, True, "the scheduler places pods of BroadcastJobs on their nodes")
)


class _Foreign:
    """Names that a job would give its pods, and that pods of others have: they were refused. A pod that somebody took
    from its job is one of them. A new process finds them out again."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[str, frozenset[str]]] = {}
        """The uid of the job, and these names."""

    def of(self, job: BroadcastJob) -> frozenset[str]:
        uid, names = self._known.get(key_of(job), ("", frozenset()))
        return names if uid == job.metadata.uid else frozenset()

    def note(self, job: BroadcastJob, outcomes: Outcomes) -> None:
        refused = {one.action.target.name for one in outcomes.within(CREATE) if one.error_reason == _ALREADY_EXISTS}
        if refused:
            self._known[key_of(job)] = (job.metadata.uid, self.of(job) | refused)

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)


class _Snapshots:
    """Reads what a pass needs from the stores, under the settings of this process."""

    def __init__(self, settings: Settings, foreign: _Foreign) -> None:
        self._by_scheduler = settings.flag(BY_SCHEDULER)
        self._foreign = foreign

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        job = view.store(BROADCAST_JOBS).get(*key)
        if job is None:
            self._foreign.forget(key)
            return None
        return Snapshot(
            job=job,
            pods=pods_of(view, job.metadata.uid),
            nodes=view.store(NODES).list(),
            foreign=tuple(sorted(self._foreign.of(job))),
            by_scheduler=self._by_scheduler,
            now=view.now,
        )


def _meaning(job: BroadcastJob, node: Node | None) -> object:
    """Whether the job runs on the node (BJ-69). To one that has ended, nodes are nothing any more."""
    return node is not None and not wants_no_nodes(job) and not judge_of(job.spec.template)(node)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    foreign = _Foreign()

    def concluded(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        foreign.note(snapshot.job, outcomes)
        return conclude(snapshot, plan, outcomes)

    return (
        ControllerSpec(
            name=NAME,
            subject=BROADCAST_JOBS,
            sources=(
                Source(Watched(BROADCAST_JOBS, indexes=OWNER_INDEX), own_key),
                Source(WATCHED_PODS, owner_keys(BROADCAST_JOBS)),
                Source(NODES, node_keys(BROADCAST_JOBS, _meaning, traits=traits)),
            ),
            snapshot=_Snapshots(settings, foreign),
            decide=decide,
            conclude=concluded,
            snapshot_type=Snapshot,
            events=events,
            workers=tasks_of(settings, "broadcastjob"),
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


FEATURE = Feature(
    name="broadcastjob",
    flags=(BY_SCHEDULER,),
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=ADMISSION.webhooks,
)
