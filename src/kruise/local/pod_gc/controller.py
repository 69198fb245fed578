"""How pods without anyone to look after them, and nodes in trouble, are watched."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.local.pod_gc import collect, node_lifecycle
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, own_key
from kruise.machinery.watched import Watched

COLLECTOR = "pod-garbage-collector-controller"
NODE_LIFECYCLE = "taint-eviction-controller"
NO_NODE = Key("", "")
"""The key of everything that concerns no node."""
BY_NODE = "pods/node"
ENDED = "pods/ended"
_ALL = "all"
_FINISHED = ("Succeeded", "Failed")


def specs(*, threshold: int = collect.THRESHOLD) -> tuple[ControllerSpec[Any], ...]:
    """`threshold`: how many pods that have ended are kept."""
    return (collector_spec(threshold), node_lifecycle_spec())


def _by_node(pod: Pod) -> tuple[str, ...]:
    return (pod.spec.node_name,)


def _by_end(pod: Pod) -> tuple[str, ...]:
    return (_ALL,) if pod.status.phase in _FINISHED else ()


INDEXES = {BY_NODE: _by_node, ENDED: _by_end}


def collector_spec(threshold: int) -> ControllerSpec[collect.Snapshot]:
    missing_since: dict[str, datetime] = {}

    def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        if new is None:
            return
        placed = old is None or old.spec.node_name != new.spec.node_name
        deleted = new.metadata.deletion_timestamp is not None
        if new.spec.node_name:
            if deleted or (placed and stores.store(NODES).get("", new.spec.node_name) is None):
                yield Key("", new.spec.node_name)
        elif deleted:
            yield NO_NODE
        if new.status.phase in _FINISHED and (old is None or old.status.phase not in _FINISHED):
            yield NO_NODE

    def snapshot(view: View, key: Key) -> collect.Snapshot | None:
        pods = view.store(PODS)
        if key == NO_NODE:
            ended = pods.by_index(ENDED, _ALL)
            unplaced = tuple(pod for pod in pods.by_index(BY_NODE, "") if pods.is_terminating(pod))
            if not unplaced and len(ended) <= threshold:
                return None
            return collect.Snapshot(now=view.now, pods=unplaced, finished=ended, threshold=threshold)
        there = pods.by_index(BY_NODE, key.name)
        node = view.store(NODES).get("", key.name)
        if node is not None or not there:
            missing_since.pop(key.name, None)
            if node is None or not any(taint.key == collect.OUT_OF_SERVICE for taint in node.spec.taints):
                return None
        since = missing_since.setdefault(key.name, view.now) if node is None else None
        return collect.Snapshot(now=view.now, pods=there, node_name=key.name, node=node, missing_since=since)

    return ControllerSpec(
        name=COLLECTOR,
        subject=NODES,
        sources=(Source(NODES, own_key), Source(Watched(PODS, indexes=INDEXES), pod_keys)),
        snapshot=snapshot,
        decide=collect.decide,
        conclude=collect.conclude,
        snapshot_type=collect.Snapshot,
        workers=1,
    )


def node_lifecycle_spec() -> ControllerSpec[node_lifecycle.Snapshot]:
    def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        """A pod that comes to a node, or tolerates other things than before."""
        if new is None or not new.spec.node_name:
            return ()
        if old is not None and (old.spec.node_name, old.spec.tolerations) == (new.spec.node_name, new.spec.tolerations):
            return ()
        return (Key("", new.spec.node_name),)

    return ControllerSpec(
        name=NODE_LIFECYCLE,
        subject=NODES,
        sources=(Source(NODES, _node_keys), Source(Watched(PODS, indexes=INDEXES), pod_keys)),
        snapshot=_lifecycle_snapshot,
        decide=node_lifecycle.decide,
        conclude=node_lifecycle.conclude,
        snapshot_type=node_lifecycle.Snapshot,
    )


def _node_keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
    """Heartbeats are no news."""
    if old is not None and new is not None and old.spec == new.spec:
        before = [(item.type, item.status) for item in old.status.conditions]
        if before == [(item.type, item.status) for item in new.status.conditions]:
            return ()
    return own_key(old, new, stores)


def _lifecycle_snapshot(view: View, key: Key) -> node_lifecycle.Snapshot | None:
    node = view.store(NODES).get("", key.name)
    if node is None:
        return None
    pods = view.store(PODS)
    troubled = bool(node.spec.taints) or any(
        item.status != "True" if item.type == "Ready" else item.status == "True" for item in node.status.conditions
    )
    if not troubled and not node.spec.unschedulable:
        return None
    there = tuple(pod for pod in pods.by_index(BY_NODE, key.name) if not pods.is_terminating(pod))
    return node_lifecycle.Snapshot(now=view.now, node=node, pods=there)
