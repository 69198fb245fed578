"""Who owns what: owner references, and which objects a controller takes over or lets go (pure decisions).

The rules are those of Kubernetes' controllers. An object that another controller manages is none of our business. One
that we manage stays ours while our selector matches it, and is released when it does not. An orphan that our selector
matches is adopted, unless it or the owner is being deleted.

Adoption has a race that no guard on the object can see: the owner may have been deleted and created anew since the
snapshot, and the orphan would be given to a dead owner. So a claim that adopts says `needs_live_owner`: read the owner
from the server first, and adopt only if `adoption_problem` has nothing to say; `adoption` has the server compare.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from kruise.api.meta import Key, Object, ObjectMeta, OwnerReference, controller_of
from kruise.api.resource import Resource
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import to_builtins
from kruise.machinery.plan import Action, Chain, Target, patch
from kruise.machinery.selectors import Selector
from kruise.machinery.times import format_time

T = TypeVar("T", bound=Object)


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """The object that owns others, as far as ownership is concerned."""

    resource: Resource[Any]
    namespace: str
    name: str
    uid: str
    is_deleted: bool = False
    """Whether it is being deleted."""

    @classmethod
    def of(cls, resource: Resource[Any], obj: Object) -> Owner:
        metadata = obj.metadata
        deleted = metadata.deletion_timestamp is not None
        return cls(resource, metadata.namespace, metadata.name, metadata.uid, deleted)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def reference(self, *, controller: bool = True, block_owner_deletion: bool = True) -> dict[str, Any]:
        """The entry for `metadata.ownerReferences` of a child."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": controller,
            "blockOwnerDeletion": block_owner_deletion,
        }


def is_controlled_by(obj: Object, uid: str) -> bool:
    """Whether the object is managed by the owner with this uid."""
    reference = controller_of(obj)
    return reference is not None and reference.uid == uid


def is_owned_by(obj: Object, uid: str) -> bool:
    """Whether the owner with this uid is among the object's owners, managing it or not."""
    return any(reference.uid == uid for reference in obj.metadata.owner_references)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Generic[T]):
    """What belongs to an owner, and what has to change for that."""

    owned: tuple[T, ...] = ()
    """Ours already, and staying so."""
    to_adopt: tuple[T, ...] = ()
    to_release: tuple[T, ...] = ()

    @property
    def needs_live_owner(self) -> bool:
        """Whether the owner must be read from the server, and found alive, before this is carried out."""
        return bool(self.to_adopt)


def claim(
    owner: Owner,
    objects: Iterable[T],
    selector: Selector,
    *,
    belongs: Callable[[T], bool] = lambda _: True,
) -> Claim[T]:
    """Decide over objects of the owner's namespace. `belongs` narrows the selector (the pods of a StatefulSet must
    also carry its name)."""
    owned: list[T] = []
    to_adopt: list[T] = []
    to_release: list[T] = []
    for obj in objects:
        metadata = obj.metadata
        reference = controller_of(obj)
        if reference is not None and reference.uid != owner.uid:
            continue
        matches = selector.matches(metadata.labels) and belongs(obj)
        if reference is not None:
            if matches:
                owned.append(obj)
            elif not owner.is_deleted:
                to_release.append(obj)
        elif matches and not owner.is_deleted and metadata.deletion_timestamp is None and _same_namespace(owner, obj):
            to_adopt.append(obj)
    return Claim(owned=tuple(owned), to_adopt=tuple(to_adopt), to_release=tuple(to_release))


def _same_namespace(owner: Owner, obj: Object) -> bool:
    return not owner.namespace or owner.namespace == obj.metadata.namespace


def adoption_problem(owner: Owner, live: Object | None) -> str:
    """Why the owner, as the server has it now, must not adopt; empty where it may."""
    if live is None:
        return f"{owner.resource} {owner.key} is gone"
    if live.metadata.uid != owner.uid:
        return f"original {owner.resource} {owner.key} is gone: got uid {live.metadata.uid}, wanted {owner.uid}"
    if live.metadata.deletion_timestamp is not None:
        return f"{owner.resource} {owner.key} has just been deleted at {format_time(live.metadata.deletion_timestamp)}"
    return ""


def adopt(resource: Resource[Any], obj: Object, owner: Owner, *, strategic: bool = True) -> Action:
    """Put our reference on an orphan, as its managing owner.

    Kinds of custom resources know no strategic merge; there the whole list is written, guarded by the version that it
    was read from.
    """
    reason = f"orphan matches the selector of {owner.resource} {owner.key}"
    reference = owner.reference()
    if strategic:
        return _patch(resource, obj, [reference], reason, PatchType.STRATEGIC)
    others = [_as_json(item) for item in obj.metadata.owner_references if item.uid != owner.uid]
    return _patch(resource, obj, [*others, reference], reason, PatchType.MERGE)


def adoption(owner: Owner, resource: Resource[Any], orphan: Object, *, generation: int = 0) -> Chain:
    """Adopt, but only where the server still has the owner: a patch that changes nothing fails if it has not.

    `generation` is the owner's: one that is deleted by now has a higher one, and must not take orphans along that its
    deletion has just made.
    """
    target = Target(owner.resource, owner.namespace, owner.name)
    reason = "the owner must still be there before it adopts"
    if generation:
        test = [{"op": "test", "path": "/metadata/generation", "value": generation}]
        check = patch(target, test, uid=owner.uid, reason=reason, patch_type=PatchType.JSON)
    else:
        check = patch(target, {}, uid=owner.uid, reason=reason)
    return check, adopt(resource, orphan, owner)


def release(resource: Resource[Any], obj: Object, owner: Owner, *, strategic: bool = True) -> Action:
    """Take our reference off an object; see `adopt` for `strategic`."""
    reason = f"no longer matches the selector of {owner.resource} {owner.key}"
    if strategic:
        return _patch(resource, obj, [{"$patch": "delete", "uid": owner.uid}], reason, PatchType.STRATEGIC)
    others = [_as_json(item) for item in obj.metadata.owner_references if item.uid != owner.uid]
    return _patch(resource, obj, others, reason, PatchType.MERGE)


def _patch(
    resource: Resource[Any], obj: Object, references: list[dict[str, Any]], reason: str, patch_type: PatchType
) -> Action:
    metadata: ObjectMeta = obj.metadata
    return patch(
        Target(resource, metadata.namespace, metadata.name),
        {"metadata": {"ownerReferences": references}},
        uid=metadata.uid,
        reason=reason,
        patch_type=patch_type,
        resource_version=metadata.resource_version if patch_type is PatchType.MERGE else "",
    )


def _as_json(reference: OwnerReference) -> dict[str, Any]:
    built: dict[str, Any] = to_builtins(reference)
    return built
