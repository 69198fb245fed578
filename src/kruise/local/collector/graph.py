"""Who owns whom, as the watches tell it. Pure: a change of an object gives the uids that have to be looked at.

The graph only says where to look. Before anything is deleted, the object and its owners are read from the server: a
graph may lag behind, and nothing that was deleted comes back.
"""

from __future__ import annotations

import dataclasses

from kruise.local.collector.objects import FOREGROUND, ORPHAN, Owned, Reference, blocks, references_of
from kruise.machinery.client.discovery import ServedResource


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """An object that was seen."""

    served: ServedResource
    object: Owned

    @property
    def uid(self) -> str:
        return self.object.metadata.uid

    @property
    def namespace(self) -> str:
        return self.object.metadata.namespace

    @property
    def name(self) -> str:
        return self.object.metadata.name

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.served.resource} {where}"


@dataclasses.dataclass(frozen=True, slots=True)
class Look:
    """What a change asks for."""

    uids: tuple[str, ...] = ()
    """Objects to be looked at, in order."""
    astray: tuple[tuple[Node, Reference], ...] = ()
    """References to an owner that lives in another namespace: nobody will find it from there."""


class Graph:
    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        """Owner's uid -> uids of those that name it, in the order in which they came."""

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def __len__(self) -> int:
        return len(self._nodes)

    def dependents(self, uid: str) -> list[Node]:
        return [self._nodes[each] for each in self._dependents.get(uid, ()) if each in self._nodes]

    def blocking(self, uid: str) -> list[Node]:
        return [node for node in self.dependents(uid) if blocks(node.object, uid)]

    def knows(self, reference: Reference, namespace: str) -> bool:
        """Whether the owner was seen where the reference says: then it need not be looked for."""
        node = self._nodes.get(reference.uid)
        return node is not None and _is_meant(node, reference) and (not node.namespace or node.namespace == namespace)

    def seen(self, served: ServedResource, obj: Owned) -> Look:
        """An object is there, or changed."""
        uid = obj.metadata.uid
        before = self._nodes.get(uid)
        node = self._nodes[uid] = Node(served, obj)
        look: dict[str, None] = {}
        astray: list[tuple[Node, Reference]] = []
        old = references_of(before.object) if before is not None else ()
        new = references_of(obj)
        self._link(uid, old, new)
        if before is None:
            # Those who came before their owner: some of them may mean another object with its uid.
            for dependent in self.dependents(uid):
                for reference in references_of(dependent.object):
                    if reference.uid == uid and not self.knows(reference, dependent.namespace):
                        look[dependent.uid] = None
                        if self._is_astray(reference, dependent.namespace):
                            astray.append((dependent, reference))
        for reference in new:
            if reference in old:
                continue
            owner = self._nodes.get(reference.uid)
            if not self.knows(reference, node.namespace):
                look[uid] = None
                if self._is_astray(reference, node.namespace):
                    astray.append((node, reference))
            elif owner is not None and owner.object.waits_for_dependents:
                look[uid] = None
        if before is not None:
            look.update(dict.fromkeys(self._unblocked(before.object, obj)))
        for finalizer in (ORPHAN, FOREGROUND):
            if _begins(before.object if before is not None else None, obj, finalizer):
                if finalizer == FOREGROUND:
                    look.update(dict.fromkeys(self._dependents.get(uid, ())))
                look[uid] = None
        return Look(tuple(look), tuple(astray))

    def gone(self, uid: str) -> Look:
        """An object is gone: its dependents lose an owner, and an owner that waits may be free."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return Look()
        owners = references_of(node.object)
        self._link(uid, owners, ())
        look = dict.fromkeys(self._dependents.get(uid, ()))
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is not None and owner.object.waits_for_dependents:
                look[reference.uid] = None
        return Look(tuple(look))

    def forget_kind(self, served: ServedResource) -> None:
        """A kind is no longer served. That says nothing about its objects, so nobody is looked at."""
        for uid in [uid for uid, node in self._nodes.items() if node.served == served]:
            node = self._nodes.pop(uid)
            self._link(uid, references_of(node.object), ())

    def _link(self, uid: str, old: tuple[Reference, ...], new: tuple[Reference, ...]) -> None:
        wanted = {reference.uid for reference in new}
        for reference in old:
            if reference.uid not in wanted:
                named = self._dependents.get(reference.uid)
                if named is not None:
                    named.pop(uid, None)
                    if not named:
                        del self._dependents[reference.uid]
        for reference in new:
            self._dependents.setdefault(reference.uid, {})[uid] = None

    def _is_astray(self, reference: Reference, namespace: str) -> bool:
        owner = self._nodes.get(reference.uid)
        return owner is not None and bool(owner.namespace) and owner.namespace != namespace

    def _unblocked(self, before: Owned, after: Owned) -> list[str]:
        """Owners that no longer have to wait for this object."""
        freed = []
        for reference in references_of(before):
            if blocks(before, reference.uid) and not blocks(after, reference.uid) and reference.uid in self._nodes:
                freed.append(reference.uid)
        return freed


def _is_meant(node: Node, reference: Reference) -> bool:
    group, _, _ = reference.api_version.rpartition("/")
    return (node.served.group, node.served.kind) == (group, reference.kind) and node.name == reference.name


def _begins(before: Owned | None, after: Owned, finalizer: str) -> bool:
    """Whether a deletion that has to wait for this finalizer was not known before."""
    if not after.is_deleted or finalizer not in after.metadata.finalizers:
        return False
    return before is None or not before.is_deleted or finalizer not in before.metadata.finalizers
