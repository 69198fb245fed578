"""How a CloneSet is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.definitions import CLONE_SET_DEFINITION
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.apps.shared import GROUP
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.feature import Conversion, Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, View, no_keys, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.cloneset.admission import handlers
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.events import events
from kruise.workloads.cloneset.situation import Snapshot
from kruise.workloads.shared.reading import (
    PRE_DOWNLOAD_GATE,
    TASKS_PER_WORKER,
    WATCHED_PODS,
    WATCHED_REVISIONS,
    has_resize_subresource,
    pace_of,
    pods_of,
    revisions_near,
)

NAME = "cloneset-controller"
EXCLUDE_PREPARING_DELETE: FeatureFlag[bool] = FeatureFlag(
    "cloneset-scaling-exclude-preparing-delete",
    Flag(boolean, False, "pods preparing for deletion do not count"),
)


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
        pods = pods_of(view, uid)
        claims = view.store(PERSISTENT_VOLUME_CLAIMS)
        jobs = view.store(IMAGE_PULL_JOBS) if self._pulls_images else None
        return Snapshot(
            cloneset=cloneset,
            pods=pods,
            claims=tuple(claim for claim in claims.by_index(OWNER, uid) if not claims.is_terminating(claim)),
            revisions=revisions_near(view, cloneset),
            pull_jobs=jobs.by_index(OWNER, uid) if jobs is not None and jobs.synced else (),
            pull_jobs_served=jobs is not None and jobs.synced,
            node_labels=_node_labels(view, pods) if _spreads(cloneset) else {},
            gates=dict(view.gates),
            exclude_preparing_delete=self._exclude,
            resize_subresource=has_resize_subresource(view),
            pending=view.pending(PODS),
            now=view.now,
            seed=view.seed,
        )


def _spreads(cloneset: CloneSet) -> bool:
    return b'"topologySpreadConstraints"' in bytes(cloneset.spec.template)


def _node_labels(view: View, pods: Iterable[Pod]) -> dict[str, dict[str, str]]:
    nodes = view.store(NODES)
    names = {pod.spec.node_name for pod in pods if pod.spec.node_name}
    found = ((name, nodes.get("", name)) for name in sorted(names))
    return {name: node.metadata.labels for name, node in found if node is not None}


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    mine = owner_keys(CLONE_SETS)
    sources: list[Source[Any]] = [
        Source(WATCHED_PODS, mine),
        Source(Watched(PERSISTENT_VOLUME_CLAIMS, indexes=OWNER_INDEX), mine),
        Source(WATCHED_REVISIONS, mine),
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
            workers=settings.workers_of("cloneset") * TASKS_PER_WORKER,
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
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
