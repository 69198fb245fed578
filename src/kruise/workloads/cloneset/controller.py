"""How a CloneSet is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.definitions.cloneset import DEFINITION
from kruise.api.apps.shared import GROUP
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import Pod
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
    WATCHED_PODS,
    WATCHED_REVISIONS,
    common_sources,
    common_to_snapshots,
    pace_of,
    tasks_of,
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
        claims = view.store(PERSISTENT_VOLUME_CLAIMS)
        seen = common_to_snapshots(view, cloneset, pulls_images=self._pulls_images)
        return Snapshot(
            cloneset=cloneset,
            claims=tuple(claim for claim in claims.by_index(OWNER, uid) if not claims.is_terminating(claim)),
            node_labels=_node_labels(view, seen["pods"]) if _spreads(cloneset) else {},
            exclude_preparing_delete=self._exclude,
            **seen,
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
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_PODS, mine),
        Source(Watched(PERSISTENT_VOLUME_CLAIMS, indexes=OWNER_INDEX), mine),
        Source(WATCHED_REVISIONS, mine),
        Source(NODES, no_keys),
        *common_sources(settings, CLONE_SETS, PRE_DOWNLOAD_GATE),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=CLONE_SETS,
            sources=sources,
            snapshot=_Snapshots(settings),
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            events=events,
            workers=tasks_of(settings, "cloneset"),
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


FEATURE = Feature(
    name="cloneset",
    flags=(EXCLUDE_PREPARING_DELETE,),
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=lambda settings: handlers(allow_privileged=settings.allow_privileged),
    conversions=(Conversion(GROUP, "CloneSet", convert),),
)
