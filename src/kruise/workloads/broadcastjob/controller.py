"""How a BroadcastJob is watched, and what it brings to the manager."""

from __future__ import annotations

from kruise.api.apps.broadcastjob import BROADCAST_JOBS, BroadcastJob
from kruise.api.apps.definitions.broadcastjob import DEFINITION
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.feature import Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.spec import OWNER_INDEX, ControllerSpec, Source, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.broadcastjob.admission import ADMISSION
from kruise.workloads.broadcastjob.conclude import conclude, events
from kruise.workloads.broadcastjob.decide import decide
from kruise.workloads.broadcastjob.fitting import judge_of, traits
from kruise.workloads.broadcastjob.situation import Snapshot, has_ended
from kruise.workloads.shared.node_keys import node_keys
from kruise.workloads.shared.reading import WATCHED_PODS, pace_of, pods_of, tasks_of

NAME = "broadcastjob-controller"
BY_SCHEDULER: FeatureFlag[bool] = FeatureFlag(
    "assign-bcj-pods-by-scheduler", Flag(boolean, True, "the scheduler places pods of BroadcastJobs on their nodes")
)


class _Snapshots:
    """Reads what a pass needs from the stores, under the settings of this process."""

    def __init__(self, settings: Settings) -> None:
        self._by_scheduler = settings.flag(BY_SCHEDULER)

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        job = view.store(BROADCAST_JOBS).get(*key)
        if job is None:
            return None
        return Snapshot(
            job=job,
            pods=pods_of(view, job.metadata.uid),
            nodes=view.store(NODES).list(),
            by_scheduler=self._by_scheduler,
            now=view.now,
        )


def _meaning(job: BroadcastJob, node: Node | None) -> object:
    """Whether the job runs on the node (BJ-69). To one that has ended, nodes are nothing any more."""
    return node is not None and not has_ended(job) and not judge_of(job.spec.template)(node)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    return (
        ControllerSpec(
            name=NAME,
            subject=BROADCAST_JOBS,
            sources=(
                Source(Watched(BROADCAST_JOBS, indexes=OWNER_INDEX), own_key),
                Source(WATCHED_PODS, owner_keys(BROADCAST_JOBS)),
                Source(NODES, node_keys(BROADCAST_JOBS, _meaning, traits=traits)),
            ),
            snapshot=_Snapshots(settings),
            decide=decide,
            conclude=conclude,
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
