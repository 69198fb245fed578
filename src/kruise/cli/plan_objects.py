"""Which objects a plan is about: one that is named, or those of files."""

from __future__ import annotations

import dataclasses

from kruise.cli.flags import Where
from kruise.cli.served_kinds import ServedKinds
from kruise.cli.session import Session
from kruise.faces.face import Face
from kruise.foresight.rendering.report import Refused
from kruise.kinds import face_of, faces
from kruise.machinery.documents import Json, name_of, namespace_of
from kruise.machinery.wording import listed
from kruise.verbs import targets
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target

_OBJECTS_SHOWN = 8


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    planned: tuple[tuple[Target, Json | None], ...]
    """Objects, each with its manifest if it comes from a file."""
    skipped: tuple[str, ...] = ()
    """What else the files hold, as kubectl names it."""
    refused: tuple[Refused, ...] = ()
    """Objects of kinds that the cluster does not have."""

    @property
    def is_one(self) -> bool:
        """One object was asked for, and the answer is about it alone."""
        return len(self.planned) == 1 and not self.skipped and not self.refused


async def choose(session: Session, words: tuple[str, ...], where: Where) -> Chosen:
    """Names without files name the object; with files, they pick from what these hold."""
    named = targets.parse(words, can_select=False).targets if words or not where.has_files else ()
    if not where.has_files:
        return Chosen(planned=((targets.only(named, "plan"), None),))
    found = list(session.manifests(where))
    if named:
        return _picked(session, found, named, where)
    return await _all_of(session, found, where)


async def _all_of(session: Session, found: list[tuple[str, Json]], where: Where) -> Chosen:
    planned = [(session.target_of(origin, one), one) for origin, one in found if _can_be_planned(one)]
    served = ServedKinds(session, (one for _, one in found))
    skipped, refused = [], []
    for origin, one in found:
        if _can_be_planned(one):
            continue
        if problem := await served.problem(one):
            refused.append(_refused(session, one, f"{origin}: {problem}"))
        else:
            skipped.append(_named(one))
    if len(found) == 1 and refused:
        raise VerbError(refused[0].error)
    if len(found) == 1 and skipped:
        [(origin, document)] = found
        return Chosen(
            planned=((session.target_of(origin, document), document),)
        )  # which tells why it cannot be planned
    if not planned and not refused:
        held = f"nothing but {listed(skipped, _OBJECTS_SHOWN)}" if skipped else "no object"
        raise VerbError(f"{where.files_text} holds {held}. Plans are for {plannable()}")
    return Chosen(planned=tuple(planned), skipped=tuple(skipped), refused=tuple(refused))


def _refused(session: Session, document: Json, error: str) -> Refused:
    return Refused(
        subject=_named(document),
        kind=str(document["kind"]),
        namespace=namespace_of(document) or session.namespace,
        name=name_of(document),
        error=error,
    )


def plannable() -> str:
    """The kinds that can be foreseen."""
    return ", ".join(sorted(str(face) for face in faces() if face.forecast or face.outlook))


def _picked(session: Session, found: list[tuple[str, Json]], named: tuple[Target, ...], where: Where) -> Chosen:
    planned = []
    for one in named:
        same = [
            (origin, document)
            for origin, document in found
            if name_of(document) == one.name and (face := _face(document)) and face.resource == one.kind.resource
        ]
        if not same:
            held = listed([_named(document) for _, document in found], _OBJECTS_SHOWN) or "no object"
            raise UsageError(f"{one} is not in {where.files_text}, which holds {held}")
        origin, document = same[0] if len(same) == 1 else _by_namespace(session, one, same, where)
        planned.append((session.target_of(origin, document), document))
    return Chosen(planned=tuple(planned))


def _by_namespace(session: Session, target: Target, same: list[tuple[str, Json]], where: Where) -> tuple[str, Json]:
    """Of several with one name: nothing is guessed."""
    places = [namespace_of(document) or session.namespace for _, document in same]
    meant = [one for one, place in zip(same, places, strict=True) if session.is_chosen and place == session.namespace]
    if len(meant) == 1:
        return meant[0]
    told = listed([f"in namespace {place} ({origin})" for place, (origin, _) in zip(places, same, strict=True)])
    raise UsageError(f"{target} is {len(same)} times in {where.files_text}: {told}. Pick one by its namespace with -n")


def _can_be_planned(document: Json) -> bool:
    face = _face(document)
    return face is not None and bool(face.forecast or face.outlook)


def _face(document: Json) -> Face | None:
    return face_of(_group(document), str(document.get("kind")))


def _group(document: Json) -> str:
    return str(document.get("apiVersion", "")).rpartition("/")[0]


def _named(document: Json) -> str:
    """As kubectl names it: `service/web`, `ingress.networking.k8s.io/web`."""
    group = _group(document)
    kind = str(document.get("kind", "?")).lower()
    return f"{kind}{'.' if group else ''}{group}/{name_of(document) or '?'}"
