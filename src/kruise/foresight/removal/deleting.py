"""What a deletion would take with it, what would refuse it, and what stays. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from kruise.machinery.documents import Json, name_of, uid_of, value_at
from kruise.machinery.wording import plural

_LABEL = "policy.kruise.io/delete-protection"
_GATE = "ResourcesDeletionProtection"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    by: str
    message: str
    remedy: str
    is_certain: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Objects of one kind."""

    kind: str
    names: tuple[str, ...]
    why: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    target: str
    namespace: str
    refusals: tuple[Refusal, ...] = ()
    goes: tuple[Group, ...] = ()
    """What the garbage collector takes with it."""
    stays: tuple[Group, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        return any(one.is_certain for one in self.refusals)


def protection_of(document: Json) -> Refusal | None:
    """By the label of deletion protection."""
    value = value_at(document, ("metadata", "labels"), {}).get(_LABEL)
    replicas = value_at(document, ("spec", "replicas"), 0) or 0
    if value == "Always":
        message, remedy = f"label {_LABEL}=Always protects it", f"take the label off: kubectl label ... {_LABEL}-"
    elif value == "Cascading" and replicas:
        message, remedy = f"label {_LABEL}=Cascading protects it while it has replicas ({replicas})", "scale it to 0"
    else:
        return None
    return Refusal(
        by="deletion protection", message=f"{message}, if the manager has the gate {_GATE} on", remedy=remedy
    )


def dependents(root: str, objects: Mapping[str, Sequence[Json]]) -> tuple[Group, ...]:
    """Everything that belongs to the object with this uid, directly or not, by kind."""
    owners = {root}
    found: dict[str, list[str]] = {}
    taken: set[str] = set()
    grew = True
    while grew:
        grew = False
        for kind, documents in objects.items():
            for document in documents:
                uid = uid_of(document)
                if uid in taken or not _belongs(document, owners):
                    continue
                taken.add(uid)
                owners.add(uid)
                found.setdefault(kind, []).append(name_of(document))
                grew = True
    return tuple(Group(kind=kind, names=tuple(sorted(names))) for kind, names in found.items())


def _belongs(document: Json, owners: set[str]) -> bool:
    """An object goes when all its owners have gone."""
    references = value_at(document, ("metadata", "ownerReferences"), ())
    return bool(references) and all(one.get("uid") in owners for one in references)


def claims_left(pods: Iterable[Json], claims: Sequence[Json], going: Iterable[str]) -> Group | None:
    """Claims of the pods that go, and that stay themselves."""
    named = {
        value_at(volume, ("persistentVolumeClaim", "claimName"))
        for pod in pods
        for volume in value_at(pod, ("spec", "volumes"), ())
    }
    gone = set(going)
    left = sorted(name_of(claim) for claim in claims if name_of(claim) in named and name_of(claim) not in gone)
    if not left:
        return None
    return Group(kind="persistentvolumeclaim", names=tuple(left), why="their data is kept; delete them by hand")


def counted(groups: Iterable[Group]) -> str:
    return ", ".join(plural(len(group.names), group.kind) for group in groups)
