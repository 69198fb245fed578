"""What is free on the nodes, and where a new pod goes: by the rules of the scheduler, as pods come and go.

The pods of the world are heard of one by one. What others take on the nodes stays as it was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.scheduling.messages import Unschedulable
from kruise.scheduling.placing import Cluster

_FINISHED = ("Succeeded", "Failed")
_NOWHERE = "a-node"
"""Where pods go when no node was read."""


class NoRoomError(Exception):
    """No node takes the pod; the text says why, in the words of a scheduler."""


class RoomNotReadError(Exception):
    """A pod needs a node, and nobody has read yet what other pods take there."""


class Room(Protocol):
    def find(self, pod: Pod) -> str:
        """The node that a pod gets. Raises NoRoomError."""

    def check(self, pod: Pod) -> None:
        """Look at a new pod that names its node itself. Raises NoRoomError."""

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        """A pod came, changed or went. Whether something is free now that was not before."""


class EndlessRoom:
    """No node is known: then each pod gets one."""

    def find(self, pod: Pod) -> str:
        return _NOWHERE

    def check(self, pod: Pod) -> None: ...

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        return False


class RoomNotRead(EndlessRoom):
    """Good as long as no pod asks for a node. Whoever meets the error reads what others take, and begins anew."""

    def find(self, pod: Pod) -> str:
        raise RoomNotReadError(f"pod {pod.metadata.name} needs a node")

    def check(self, pod: Pod) -> None:
        raise RoomNotReadError(f"pod {pod.metadata.name} names its node")

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        return takes_room(old) and not takes_room(new)


class NodeRoom:
    """`others`: pods that are no part of the world. Of those without a node or at their end nothing counts."""

    def __init__(self, nodes: Iterable[Node], others: Iterable[Pod] = ()) -> None:
        by_node: dict[str, list[Pod]] = {}
        for pod in others:
            if takes_room(pod):
                by_node.setdefault(pod.spec.node_name, []).append(pod)
        usable = [node for node in nodes if node.metadata.deletion_timestamp is None]
        self._names = frozenset(node.metadata.name for node in usable)
        self._cluster = Cluster(usable, by_node)

    def find(self, pod: Pod) -> str:
        found = self._cluster.place(pod)
        if isinstance(found, Unschedulable):
            raise NoRoomError(found.summary)
        return found.node

    def check(self, pod: Pod) -> None:
        name = pod.spec.node_name
        reasons = self._cluster.refusals(pod, name)
        if reasons is None:
            raise NoRoomError(f'spec.nodeName asks for node "{name}", and there is none of that name')
        if reasons:
            raise NoRoomError(f'spec.nodeName asks for node "{name}": {", ".join(reasons)}')

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        if old is not None and new is not None and takes_room(old) and takes_room(new) and _is_same(old, new):
            return False
        if old is not None and takes_room(old):
            self._cluster.leave(old.metadata.uid)
        if new is not None and takes_room(new) and new.spec.node_name in self._names:
            self._cluster.assume(new, new.spec.node_name)
            return False
        return takes_room(old)


def takes_room(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and pod.status.phase not in _FINISHED


def _is_same(old: Pod, new: Pod) -> bool:
    """As far as a scheduler looks at it."""
    if old.spec is not new.spec and old.spec != new.spec:
        return False
    return old.metadata is new.metadata or old.metadata.labels == new.metadata.labels
