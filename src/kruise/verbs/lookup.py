"""From words and manifests to kinds, and what verbs must have of a kind."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from kruise import kinds
from kruise.faces.face import Face, Pods
from kruise.machinery.documents import Json, Path
from kruise.machinery.wording import with_article
from kruise.verbs.errors import UsageError


class UnknownKindError(UsageError):
    """No verb knows it. The cluster may."""


def find(word: str) -> Face:
    """What people call a kind: `clone`, `CloneSet`, `clonesets.apps.kruise.io`, `deployments.v1.apps`.

    Whatever version is named, the one of the face is spoken. Where one word means kinds of several groups, it means
    Kubernetes' own, as it does for kubectl. Installed packages are only asked where no other kind is called so.
    """
    found = _called(word, kinds.REGISTRY.built_in) or _called(word, kinds.faces())
    if found:
        return min(found, key=lambda face: face.is_ours)
    name = word.partition(".")[0].lower()
    known = [known for face in kinds.faces() for known in _words(face)]
    near = difflib.get_close_matches(name, known, n=1)
    everything = ", ".join(sorted({face.singular for face in kinds.faces()}))
    hint = f"did you mean {near[0]}?" if near else f"known are {everything}."
    raise UnknownKindError(f'there is no kind "{word}" here; {hint}')


def _called(word: str, faces: Iterable[Face]) -> list[Face]:
    name, _, rest = word.partition(".")
    return [face for face in faces if name.lower() in _words(face) and (not rest or _is_group(face, rest))]


def find_manifest(document: Mapping[str, Any], origin: str = "") -> Face:
    """The kind of an object that stands in a file."""
    group, _, _ = str(document["apiVersion"]).rpartition("/")
    found = kinds.face_of(group, str(document["kind"]))
    if found is not None:
        return found
    where = f"{origin}: " if origin else ""
    raise UsageError(f"{where}this verb does not know {document['apiVersion']} {document['kind']}")


def workloads() -> tuple[Face, ...]:
    """The kinds that roll out: what the word `all` means."""
    return tuple(face for face in kinds.faces() if face.progress is not None and not _is_aside(face))


def _is_aside(face: Face) -> bool:
    """Kubernetes' own Jobs come in thousands, what runs by the clock always waits for it, and what every node has is no
    workload of anybody: all are told of where they are named."""
    if face.pods is Pods.NONE:
        return not face.runs_to_end or not face.resource.namespaced
    return face.runs_to_end and not face.is_ours


def namesakes(face: Face) -> tuple[Face, ...]:
    """Kinds of other groups that are called the same."""
    return tuple(one for one in kinds.REGISTRY.built_in if one.singular == face.singular and one is not face)


def template_path(kind: Face, document: Json) -> Path:
    found = kind.template_of(document)
    if found is None:
        raise UsageError(f"{with_article(str(kind))} has no pod template")
    return found


def revised_path(kind: Face, document: Json) -> Path:
    """Where an object has what its revisions hold."""
    return kind.revised or template_path(kind, document)


def pod_spec(kind: Face, document: Json) -> Path:
    """Where the spec of the pods is. Only for kinds that have a template."""
    return (*template_path(kind, document), "spec")


def _words(face: Face) -> tuple[str, ...]:
    return (face.singular, face.resource.plural, *face.short_names)


def _is_group(face: Face, rest: str) -> bool:
    group = face.resource.group
    if rest == group:
        return True
    version, _, behind = rest.partition(".")
    return behind == group and version[:1] == "v" and version[1:2].isdigit()
