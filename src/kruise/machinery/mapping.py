"""From a changed object to the keys of those it concerns, where that takes a look at stores. For `Source.keys`. Pure.

What was concerned before the change and is no more needs a look as well, so the old object counts like the new one.
Keys of the object itself and of its owner need no store: `own_key` and `owner_keys` in `kruise.machinery.spec`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kruise.api.meta import Key, Object, key_of
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.machinery.spec import Stores

T = TypeVar("T", bound=Object)

Keys = Callable[[T | None, T | None, Stores], Iterable[Key]]


def selected_by(resource: Resource[Any], index: str, *, by_namespace_labels: bool = False) -> Keys[Object]:
    """The objects of `resource` that select the changed one by its labels, or did. `index` is one of their `selectors`.

    A pod is mapped to the budgets over it. A Namespace is mapped to those who select namespaces, with an index of their
    namespace selectors. `by_namespace_labels`: the selectors of the index ask for labels of the namespace as well; the
    controller needs a source of Namespaces for that.
    """

    def selecting(obj: Object | None, stores: Stores) -> Iterable[Key]:
        if obj is None:
            return ()
        namespace, around = obj.metadata.namespace, None
        if by_namespace_labels and namespace:
            found = stores.store(NAMESPACES).get("", namespace)
            around = found.metadata.labels if found is not None else None
        store = stores.store(resource)
        return [key_of(item) for item in store.selecting(index, obj.metadata.labels, namespace, around)]

    def keys(old: Object | None, new: Object | None, stores: Stores) -> Iterable[Key]:
        after = selecting(new, stores)
        if old is None or (new is not None and old.metadata.labels == new.metadata.labels):
            return after
        return dict.fromkeys((*selecting(old, stores), *after))

    return keys


def found_by(resource: Resource[Any], index: str, values_of: Callable[[T], Iterable[str]]) -> Keys[T]:
    """The objects of `resource` that have one of the changed object's values in an index, or did."""

    def keys(old: T | None, new: T | None, stores: Stores) -> Iterable[Key]:
        store = stores.store(resource)
        values = dict.fromkeys(value for obj in (old, new) if obj is not None for value in values_of(obj))
        return dict.fromkeys(key_of(item) for value in values for item in store.by_index(index, value))

    return keys


def own_name(obj: Object) -> tuple[str]:
    """For `found_by` from objects that others name: a node, a namespace."""
    return (obj.metadata.name,)


def by_node(pod: Pod) -> tuple[str, ...]:
    """Index by the node that a pod is on; none before it has one."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


NODE = "node"
NODE_INDEX: Mapping[str, Callable[[Pod], Iterable[str]]] = {NODE: by_node}


def pods_on_node(pods: Resource[Pod]) -> Keys[Object]:
    """The pods on a changed node, of a kind that is watched with `NODE_INDEX`."""
    return found_by(pods, NODE, own_name)
