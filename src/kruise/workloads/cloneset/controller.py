"""How a CloneSet is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.definitions import CLONE_SET_DEFINITION
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.apps.shared import GROUP
from kruise.api.meta import Key, controller_of
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.feature import Conversion, Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.codec import evolve
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, View, no_keys, owner_keys
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched
from kruise.workloads.cloneset.admission import handlers
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.events import events
from kruise.workloads.cloneset.situation import Snapshot

NAME = "cloneset-controller"
PRE_DOWNLOAD_GATE = "PreDownloadImageForInPlaceUpdate"
EXCLUDE_PREPARING_DELETE: FeatureFlag[bool] = FeatureFlag(
    "cloneset-scaling-exclude-preparing-delete",
    Flag(boolean, False, "pods preparing for deletion do not count"),
)

_PACE_PER_POD = 40e-6
_PACE_OF_FEW_PODS = 160e-6
_LONG_ENOUGH = 0.08
"""Seconds in which a pass over some hundred pods gathers enough changes to be worth its while."""
_TASKS_PER_WORKER = 10
"""A worker here is a task that mostly waits for the API server, not a thread. With three of them, two hundred CloneSets
would stand in line while the server has nothing to do."""
_BY_NAME = "owner-name"
_ORPHANS = "orphans"


def _by_owner_name(revision: ControllerRevision) -> tuple[str, ...]:
    """Revisions of another owner of the same name, of whatever kind, may hold a name that ours would have."""
    reference = controller_of(revision)
    return (f"{revision.metadata.namespace}/{reference.name}",) if reference is not None else ()


def _orphans(revision: ControllerRevision) -> tuple[str, ...]:
    return (revision.metadata.namespace,) if controller_of(revision) is None else ()


class _Snapshots:
    """Reads what a pass needs from the stores, under the settings of this process."""

    def __init__(self, settings: Settings) -> None:
        self._exclude = settings.flag(EXCLUDE_PREPARING_DELETE)
        self._pulls_images = settings.gates.get(PRE_DOWNLOAD_GATE, False)

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        cloneset = view.store(CLONE_SETS).get(*key)
        if cloneset is None:
            return None
        try:
            from_label_selector(cloneset.spec.selector)
        except SelectorError:
            return None  # admission refuses it; trying again cannot help (CS-63)
        uid = cloneset.metadata.uid
        pods = _alive_or_terminating(view.store(PODS), uid, view.now)
        claims = view.store(PERSISTENT_VOLUME_CLAIMS)
        jobs = view.store(IMAGE_PULL_JOBS) if self._pulls_images else None
        return Snapshot(
            cloneset=cloneset,
            pods=pods,
            claims=tuple(claim for claim in claims.by_index(OWNER, uid) if not claims.is_terminating(claim)),
            revisions=_revisions(view.store(CONTROLLER_REVISIONS), cloneset),
            pull_jobs=jobs.by_index(OWNER, uid) if jobs is not None and jobs.synced else (),
            pull_jobs_served=jobs is not None and jobs.synced,
            node_labels=_node_labels(view, pods) if _spreads(cloneset) else {},
            gates=dict(view.gates),
            exclude_preparing_delete=self._exclude,
            resize_subresource=view.server_version is None or view.server_version.at_least(1, 32),
            pending=view.pending(PODS),
            now=view.now,
            seed=view.seed,
        )


def _alive_or_terminating(store: Store[Pod], uid: str, now: datetime) -> tuple[Pod, ...]:
    """The pods; one whose deletion was answered but not yet seen is shown as what it is."""
    return tuple(
        evolve(pod, metadata=evolve(pod.metadata, deletion_timestamp=now))
        if pod.metadata.deletion_timestamp is None and store.is_terminating(pod)
        else pod
        for pod in store.by_index(OWNER, uid)
    )


def _revisions(store: Store[ControllerRevision], cloneset: CloneSet) -> tuple[ControllerRevision, ...]:
    namespace = cloneset.metadata.namespace
    named = store.by_index(_BY_NAME, f"{namespace}/{cloneset.metadata.name}")
    return (*named, *store.by_index(_ORPHANS, namespace))


def _spreads(cloneset: CloneSet) -> bool:
    return b'"topologySpreadConstraints"' in bytes(cloneset.spec.template)


def _node_labels(view: View, pods: Iterable[Pod]) -> dict[str, dict[str, str]]:
    nodes = view.store(NODES)
    names = {pod.spec.node_name for pod in pods if pod.spec.node_name}
    found = ((name, nodes.get("", name)) for name in sorted(names))
    return {name: node.metadata.labels for name, node in found if node is not None}


def _pace(snapshot: Snapshot) -> float:
    """Several times what deciding takes, so that most of a core is left for writing. A pod that became ready still
    makes room for the next one within a quarter of a second."""
    pods = len(snapshot.pods)
    return max(min(pods * _PACE_OF_FEW_PODS, _LONG_ENOUGH), pods * _PACE_PER_POD)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    mine = owner_keys(CLONE_SETS)
    sources: list[Source[Any]] = [
        Source(Watched(PODS, indexes=OWNER_INDEX), mine),
        Source(Watched(PERSISTENT_VOLUME_CLAIMS, indexes=OWNER_INDEX), mine),
        Source(Watched(CONTROLLER_REVISIONS, indexes={_BY_NAME: _by_owner_name, _ORPHANS: _orphans}), mine),
        Source(NODES, no_keys),
    ]
    if settings.gates.get(PRE_DOWNLOAD_GATE, False):
        sources.append(Source(Watched(IMAGE_PULL_JOBS, indexes=OWNER_INDEX, optional=True), mine))
    return (
        ControllerSpec(
            name=NAME,
            subject=CLONE_SETS,
            sources=tuple(sources),
            snapshot=_Snapshots(settings),
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            events=events,
            workers=settings.workers_of("cloneset") * _TASKS_PER_WORKER,
            pace=_pace,
        ),
    )


FEATURE = Feature(
    name="cloneset",
    flags=(EXCLUDE_PREPARING_DELETE,),
    definitions=(CLONE_SET_DEFINITION,),
    controllers=controllers,
    webhooks=lambda settings: handlers(allow_privileged=settings.allow_privileged),
    conversions=(Conversion(GROUP, "CloneSet", convert),),
)
