"""How a CloneSet is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.apps.definitions.cloneset import DEFINITION
from kruise.api.apps.shared import GROUP
from kruise.api.meta import Key, controller_of
from kruise.api.native.deletion_cost import differ_in_cost_alone
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.feature import Conversion, Feature, Settings
from kruise.flags import FeatureFlag, Flag, boolean
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, no_keys, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.cloneset.admission import handlers
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.events import events
from kruise.workloads.cloneset.numbers import replicas_of
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


_owner_keys = owner_keys(CLONE_SETS)


def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """What a pod's deletion costs decides which pods go where there are too many, and nothing else: whoever sets it for
    a thousand pods makes nobody look at them a thousand times. The next pass sees it, whatever that is about."""
    if old is None or new is None or not differ_in_cost_alone(old, new):
        return _owner_keys(old, new, stores)
    return [key for key in _owner_keys(old, new, stores) if _has_too_many(key, new, stores)]


def _has_too_many(key: Key, pod: Pod, stores: Stores) -> bool:
    """Some are on their way out, or held back from it: which ones may change now."""
    cloneset, owner = stores.store(CLONE_SETS).get(*key), controller_of(pod)
    if cloneset is None or owner is None:
        return False
    return stores.store(PODS).count(OWNER, owner.uid) > replicas_of(cloneset.spec)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_PODS, pod_keys),
        Source(Watched(PERSISTENT_VOLUME_CLAIMS, indexes=OWNER_INDEX), _owner_keys),
        Source(WATCHED_REVISIONS, _owner_keys),
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
