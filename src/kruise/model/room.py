"""What is free on the nodes, where a new pod goes, and whether a running one gets more: by the rules of scheduler and
kubelet, as pods come, change and go.

The pods of the world are heard of one by one. What others take on the nodes stays as it was read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.inplace.resizing import RefusedResize
from kruise.model.grants import Grants, granted, grows
from kruise.scheduling.exclusion import Namespaces
from kruise.scheduling.messages import Unschedulable
from kruise.scheduling.placing import ClaimsOf, Cluster, no_claims
from kruise.scheduling.requests import requests

_FINISHED = ("Succeeded", "Failed")
_NOWHERE = "a-node"
"""Where pods go when no node was read."""


class NoRoomError(Exception):
    """No node takes the pod; the text says why, in the words of a scheduler."""


class RoomNotReadError(Exception):
    """A pod needs a node, or more of its own, and nobody has read yet what other pods take there."""


class Room(Protocol):
    def find(self, pod: Pod) -> str:
        """The node that a pod gets. Raises NoRoomError."""

    def check(self, pod: Pod) -> None:
        """Look at a new pod that names its node itself. Raises NoRoomError."""

    def resize(self, pod: Pod) -> RefusedResize | None:
        """A pod asks its node for the resources that its spec says now. Why it does not get them; None: it has them
        from now on."""

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        """A pod came, changed or went. Whether something is free now that was not before."""


class EndlessRoom:
    """No node is known: then each pod gets one."""

    def find(self, pod: Pod) -> str:
        return _NOWHERE

    def check(self, pod: Pod) -> None: ...

    def resize(self, pod: Pod) -> RefusedResize | None:
        return None

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        return False


class RoomNotRead(EndlessRoom):
    """Good as long as no pod asks for a node, or for more of its own. Whoever meets the error reads what others take,
    and begins anew."""

    def find(self, pod: Pod) -> str:
        raise RoomNotReadError(f"pod {pod.metadata.name} needs a node")

    def check(self, pod: Pod) -> None:
        raise RoomNotReadError(f"pod {pod.metadata.name} names its node")

    def resize(self, pod: Pod) -> RefusedResize | None:
        if grows(granted(pod), requests(pod)):
            raise RoomNotReadError(f"pod {pod.metadata.name} asks for more of its node")
        return None

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        return takes_room(old) and not takes_room(new)


class NodeRoom:
    """`others`: pods that are no part of the world. Of those without a node or at their end nothing counts."""

    def __init__(
        self,
        nodes: Iterable[Node],
        others: Iterable[Pod] = (),
        *,
        namespaces: Namespaces | None = None,
        claims_of: ClaimsOf = no_claims,
    ) -> None:
        by_node: dict[str, list[Pod]] = {}
        for pod in others:
            if takes_room(pod):
                by_node.setdefault(pod.spec.node_name, []).append(pod)
        usable = [node for node in nodes if node.metadata.deletion_timestamp is None]
        self._names = frozenset(node.metadata.name for node in usable)
        self._cluster = Cluster(usable, by_node, namespaces=namespaces, claims_of=claims_of)
        self._grants = Grants(usable)
        for pods in by_node.values():
            for pod in pods:
                self._grants.hold(pod, granted(pod))

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

    def resize(self, pod: Pod) -> RefusedResize | None:
        return self._grants.ask(pod)

    def saw(self, old: Pod | None, new: Pod | None) -> bool:
        before = old if takes_room(old) else None
        after = new if takes_room(new) else None
        if before is not None and after is not None:
            if _is_same(before, after):
                return False
            # What its node grants it is another matter: `resize`. A scheduler keeps free what pods ask for.
            self._cluster.leave(before.metadata.uid)
            self._assume(after)
            return grows(requests(after), requests(before))
        if before is not None:
            self._cluster.leave(before.metadata.uid)
            self._grants.release(before.metadata.uid)
        if after is not None:
            self._assume(after)
            self._grants.hold(after, granted(after))
        return before is not None

    def _assume(self, pod: Pod) -> None:
        if pod.spec.node_name in self._names:
            self._cluster.assume(pod, pod.spec.node_name)


def takes_room(pod: Pod | None) -> bool:
    return pod is not None and bool(pod.spec.node_name) and pod.status.phase not in _FINISHED


def _is_same(old: Pod, new: Pod) -> bool:
    """As far as a scheduler looks at it."""
    if old.spec is not new.spec and old.spec != new.spec:
        return False
    return old.metadata is new.metadata or old.metadata.labels == new.metadata.labels
