"""When the scheduler looks at the cluster, and what it sees.

It has one key: a pass concerns all pods that wait for a node. A new pod asks for a pass, and so does whatever may help
those that wait: a node that came or changed, a pod that left, a claim that was bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.nodes import NAMESPACES, NODES, Namespace, Node
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import STORAGE_CLASSES, claim_names
from kruise.local.scheduler.decide import Snapshot, conclude, decider
from kruise.local.storage_binding.objects import CLAIMS, VOLUMES, Claim
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, no_keys
from kruise.machinery.watched import Watched

NAME = "default-scheduler"
KEY = Key("", NAME)
_HERE = (KEY,)
_FINISHED = ("Succeeded", "Failed")
WAITING = "scheduler/waiting"
ON_NODE = "scheduler/on-node"
_ALL = "all"


def specs() -> tuple[ControllerSpec[Any], ...]:
    return (spec(),)


def spec() -> ControllerSpec[Snapshot]:
    return ControllerSpec(
        name=NAME,
        subject=NODES,
        sources=(
            Source(Watched(PODS, indexes={WAITING: _is_waiting, ON_NODE: _is_on_node}), _pod_keys),
            Source(NODES, _node_keys),
            Source(CLAIMS, _claim_keys),
            Source(VOLUMES, no_keys),
            Source(STORAGE_CLASSES, _any_keys),
            Source(NAMESPACES, _namespace_keys),
        ),
        snapshot=snapshot,
        decide=decider(),
        conclude=conclude,
        snapshot_type=Snapshot,
        workers=1,
    )


def _waits(pod: Pod) -> bool:
    return (
        not pod.spec.node_name
        and pod.spec.scheduler_name in ("", NAME)
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in _FINISHED
    )


def _is_waiting(pod: Pod) -> tuple[str, ...]:
    return (_ALL,) if _waits(pod) else ()


def _is_on_node(pod: Pod) -> tuple[str, ...]:
    return (_ALL,) if pod.spec.node_name and pod.status.phase not in _FINISHED else ()


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    if new is not None and _waits(new):
        # The condition that says why a pod waits is our own write.
        if old is None or old.spec != new.spec or old.metadata.labels != new.metadata.labels:
            return _HERE
        return ()
    if old is None or not old.spec.node_name or old.status.phase in _FINISHED:
        return ()
    leaves = new is None or new.status.phase in _FINISHED
    if leaves or (new is not None and (old.metadata.labels, old.spec) != (new.metadata.labels, new.spec)):
        return _HERE
    return ()


def _node_keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
    """Heartbeats are no news."""
    if old is not None and new is not None:
        before = (old.spec, old.metadata.labels, old.status.allocatable)
        if before == (new.spec, new.metadata.labels, new.status.allocatable):
            return ()
    return _HERE


def _claim_keys(old: Claim | None, new: Claim | None, stores: Stores) -> Iterable[Key]:
    if old is not None and new is not None:
        before = (old.spec.volume_name, old.status.phase, old.metadata.deletion_timestamp)
        if before == (new.spec.volume_name, new.status.phase, new.metadata.deletion_timestamp):
            return ()
    return _HERE


def _namespace_keys(old: Namespace | None, new: Namespace | None, stores: Stores) -> Iterable[Key]:
    """Their labels count in namespace selectors."""
    return _HERE if old is not None and new is not None and old.metadata.labels != new.metadata.labels else ()


def _any_keys(old: object, new: object, stores: Stores) -> Iterable[Key]:
    return _HERE


def _asks_for_company(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)


def snapshot(view: View, key: Key) -> Snapshot | None:
    if key != KEY:
        return None  # a controller begins with a key for every node
    pods = view.store(PODS)
    pending = pods.by_index(WAITING, _ALL)
    if not pending:
        return None
    has_claims = any(pod.spec.volumes and claim_names(pod) for pod in pending)
    placed = pods.by_index(ON_NODE, _ALL)
    has_terms = any(map(_asks_for_company, (*pending, *placed)))
    return Snapshot(
        now=view.now,
        pending=tuple(pod for pod in pending if not pods.is_terminating(pod)),
        placed=placed,
        nodes=tuple(node for node in view.store(NODES).list() if node.metadata.deletion_timestamp is None),
        namespaces=view.store(NAMESPACES).list() if has_terms else (),
        claims=view.store(CLAIMS).list() if has_claims else (),
        volumes=view.store(VOLUMES).list() if has_claims else (),
        storage_classes=view.store(STORAGE_CLASSES).list() if has_claims else (),
    )
