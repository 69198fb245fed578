"""What becomes of an object, once it and all its owners were read from the server. Pure."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping

from kruise.local.collector.objects import FOREGROUND, ORPHAN, Owned, Reference, reference_of


class OwnerState(enum.Enum):
    SOLID = "solid"
    """It is there."""
    WAITING = "waiting"
    """It is being deleted and waits for its dependents to go first."""
    ABSENT = "absent"
    """There is no such object, or another one has its name."""


@dataclasses.dataclass(frozen=True, slots=True)
class Keep:
    """Nothing is to be done."""


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """The object stays; references to owners that are no more, or that wait for it in vain, go."""

    uids: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Delete:
    propagation: str
    unblocks_owners: bool = False
    """First say that no owner has to wait for it: two that wait for each other would wait for ever."""


Verdict = Keep | Release | Delete


def judge(
    obj: Owned,
    owners: Mapping[Reference, OwnerState],
    *,
    has_dependents: bool,
    dependent_waits: bool,
) -> Verdict:
    """`dependent_waits`: one of its own dependents is being deleted and waits for dependents, too."""
    references = [reference_of(owner) for owner in obj.metadata.owner_references]
    if not references:
        return Keep()
    states = [owners[reference] for reference in references]
    if OwnerState.SOLID in states:
        loose = [
            reference.uid for reference, state in zip(references, states, strict=True) if state is not OwnerState.SOLID
        ]
        return Release(tuple(loose)) if loose else Keep()
    if OwnerState.WAITING in states and has_dependents:
        return Delete("Foreground", unblocks_owners=dependent_waits)
    if ORPHAN in obj.metadata.finalizers:
        return Delete("Orphan")
    if FOREGROUND in obj.metadata.finalizers:
        return Delete("Foreground")
    return Delete("Background")


def state_of(owner: Owned | None, uid: str) -> OwnerState:
    if owner is None or owner.metadata.uid != uid:
        return OwnerState.ABSENT
    return OwnerState.WAITING if owner.waits_for_dependents else OwnerState.SOLID


def without_owners(obj: Owned, uids: tuple[str, ...]) -> dict[str, object]:
    """The merge patch that takes references away, for this very state of the object."""
    kept = [owner for owner in obj.metadata.owner_references if owner.get("uid") not in uids]
    return _guarded(obj, ownerReferences=kept or None)


def unblocking(obj: Owned) -> dict[str, object]:
    """The merge patch after which no owner waits for the object."""
    return _guarded(
        obj, ownerReferences=[{**owner, "blockOwnerDeletion": False} for owner in obj.metadata.owner_references]
    )


def without_finalizer(obj: Owned, finalizer: str) -> dict[str, object]:
    kept = [item for item in obj.metadata.finalizers if item != finalizer]
    return _guarded(obj, finalizers=kept or None)


def _guarded(obj: Owned, **metadata: object) -> dict[str, object]:
    about = obj.metadata
    return {"metadata": {"uid": about.uid, "resourceVersion": about.resource_version, **metadata}}
