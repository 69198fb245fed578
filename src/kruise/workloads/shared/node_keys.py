"""Which changes of nodes concern workloads that run a pod on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kruise.api.meta import Key, key_of
from kruise.api.native.nodes import Node
from kruise.api.resource import Resource
from kruise.machinery.spec import Stores


def traits(node: Node) -> tuple[object, ...]:
    """What templates of daemons can ask for."""
    return node.metadata.labels, node.spec.taints


def node_keys(
    workloads: Resource[Any],
    meaning: Callable[[Any, Node | None], object],
    *,
    traits: Callable[[Node], object] = traits,
) -> Callable[[Node | None, Node | None, Stores], Iterable[Key]]:
    """The workloads to which a node is something else now, by what it means to them: heartbeats are no news. `traits`
    are all that the meaning depends on."""

    def keys(old: Node | None, new: Node | None, stores: Stores) -> Iterable[Key]:
        if old is not None and new is not None and traits(old) == traits(new):
            return
        for found in stores.store(workloads).list():
            if meaning(found, old) != meaning(found, new):
                yield key_of(found)

    return keys
