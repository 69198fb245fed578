"""What a deletion would take with it, what would refuse it, and what stays. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from kruise.admission.decisions import Deny, HandlerView, NeedsReads
from kruise.admission.inventory import PROTECTION_LABEL
from kruise.admission.review import AdmissionRequest, GroupVersionKind
from kruise.machinery.codec import Raw, encode
from kruise.machinery.documents import Json, name_of, namespace_of, uid_of, value_at
from kruise.machinery.wording import plural
from kruise.protection.deletion.judging import JUDGES, advice_about
from kruise.protection.deletion.rules import GATE


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


def is_labelled(document: Json) -> bool:
    """Whether deletion protection has to be asked."""
    return PROTECTION_LABEL in (value_at(document, ("metadata", "labels"), {}) or {})


def protection_of(document: Json, view: HandlerView) -> Refusal | NeedsReads | None:
    """What deletion protection says, by its own rules: see `view.reads` for what they need to know. `view.gates` are
    those that the manager has, or would have."""
    group, _, version = str(document.get("apiVersion", "")).rpartition("/")
    judge = JUDGES.get((group, str(document.get("kind"))))
    if judge is None or not is_labelled(document):
        return None
    said = judge(_deletion(document, group, version), view)
    if isinstance(said, NeedsReads):
        return said
    if not isinstance(said, Deny):
        return None
    message, _, remedy = said.message.partition("; ")
    return Refusal(by="deletion protection", message=message, remedy=remedy or "see what cannot be read")


def idle_label(document: Json, *, is_protecting: bool) -> str:
    """Why the label of deletion protection does nothing here; empty: it does something, or there is none."""
    group = str(document.get("apiVersion", "")).rpartition("/")[0]
    return advice_about(group, str(document.get("kind")), document, {GATE: is_protecting})


def doubtful(refusal: Refusal) -> Refusal:
    """Of a manager that nobody has seen."""
    return dataclasses.replace(
        refusal, message=f"{refusal.message}, if the manager has the gate {GATE} on", is_certain=False
    )


def _deletion(document: Json, group: str, version: str) -> AdmissionRequest:
    name = name_of(document)
    return AdmissionRequest(
        uid="",
        kind=GroupVersionKind(group=group, version=version, kind=str(document.get("kind"))),
        name=name,
        namespace=name if document.get("kind") == "Namespace" else namespace_of(document),
        operation="DELETE",
        old_object=Raw(encode(document)),
    )


def dependents(root: str, objects: Mapping[str, Sequence[Json]], *, with_namespaces: bool = False) -> tuple[Group, ...]:
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
                found.setdefault(kind, []).append(_full_name(document) if with_namespaces else name_of(document))
                grew = True
    return tuple(Group(kind=kind, names=tuple(sorted(names))) for kind, names in found.items())


def _full_name(document: Json) -> str:
    namespace = namespace_of(document)
    return f"{namespace}/{name_of(document)}" if namespace else name_of(document)


def inside(objects: Mapping[str, Sequence[Json]], *, with_namespaces: bool = False) -> tuple[Group, ...]:
    """All of it, by kind."""
    named = _full_name if with_namespaces else name_of
    return tuple(
        Group(kind=kind, names=tuple(sorted(named(document) for document in documents)))
        for kind, documents in objects.items()
        if documents
    )


def with_finalizers(objects: Mapping[str, Sequence[Json]]) -> tuple[str, ...]:
    """What goes only when somebody else has acted. Those of Kubernetes and of ours are acted upon by themselves."""
    found = []
    for kind, documents in objects.items():
        for document in documents:
            names = value_at(document, ("metadata", "finalizers"), ())
            if foreign := [name for name in names if "/" in name and not _is_ours_or_native(name)]:
                found.append(f"{kind}/{_full_name(document)} ({', '.join(foreign)})")
    return tuple(sorted(found))


def _is_ours_or_native(finalizer: str) -> bool:
    domain = finalizer.partition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in ("kubernetes.io", "k8s.io", "kruise.io"))


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
