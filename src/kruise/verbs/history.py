"""The earlier templates of a workload: one list from ReplicaSets or ControllerRevisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from kruise.faces.face import Contribution, Face, History
from kruise.machinery.codec import encode
from kruise.machinery.documents import Json, is_controlled_by, name_of, uid_of, value_at, with_value
from kruise.machinery.patches.values import same
from kruise.verbs.errors import VerbError
from kruise.verbs.lookup import revised_path

CHANGE_CAUSE = "kubernetes.io/change-cause"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
TEMPLATE_HASH = "pod-template-hash"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    number: int
    name: str
    template: Json
    part: Json | None = None
    """The pod template, where the whole is more than that."""
    cause: str = ""
    source: Json
    """The object that holds it."""

    @property
    def pods(self) -> Json:
        """The pod template."""
        return self.template if self.part is None else self.part

    @property
    def object_name(self) -> str:
        """As `-o name` prints it: `controllerrevision.apps/web-6fb5dc7d9b`."""
        return f"{self.source['kind'].lower()}.apps/{self.name}"


def revisions_of(kind: Face, document: Json, held: Iterable[Json]) -> list[Revision]:
    """The revisions among the objects that are `held` for the kind, oldest first. Where two have the same number, the
    younger one counts."""
    uid = uid_of(document)
    found = [_revision(kind, source) for source in held if is_controlled_by(source, uid)]
    known = [revision for revision in found if revision is not None]
    known.sort(key=lambda one: (one.number, value_at(one.source, ("metadata", "creationTimestamp"), ""), one.name))
    return list({revision.number: revision for revision in known}.values())


def _revision(kind: Face, source: Json) -> Revision | None:
    annotations = value_at(source, ("metadata", "annotations"), {})
    if kind.history is History.REPLICA_SETS:
        number = annotations.get(REVISION_ANNOTATION, "")
        template = value_at(source, ("spec", "template"))
        if not number.isdecimal():
            return None
    elif kind.contribution is not None:
        number, template = source.get("revision"), _parts(kind.contribution, value_at(source, ("data", "spec"), {}))
    else:
        number, template = source.get("revision"), value_at(source, ("data", "spec", "template"))
    if not isinstance(template, dict):
        return None
    whole = _plain(template, strip_hash=kind.history is History.REPLICA_SETS)
    return Revision(
        number=int(number),
        name=name_of(source),
        template=whole,
        part=_pod_template(kind, whole),
        cause=annotations.get(CHANGE_CAUSE, ""),
        source=source,
    )


def _pod_template(kind: Face, whole: Json) -> Json | None:
    if kind.revised is None:
        return None
    holder = with_value({}, kind.revised, whole)
    found: Json = value_at(holder, kind.template_of(holder) or (), {})
    return found


def _parts(contribution: Contribution, spec: Json) -> Json:
    """What a revision holds of a spec, in the shape of a pod."""
    return {"spec": {name: spec[name] for name in contribution.recorded if spec.get(name)}}


def present(kind: Face, document: Json) -> Json:
    """What a revision would hold of the object as it is now."""
    if kind.contribution is not None:
        return _parts(kind.contribution, value_at(document, ("spec",), {}))
    template: Json = value_at(document, revised_path(kind, document), {})
    return template


def restored(kind: Face, document: Json, revision: Revision) -> Json:
    """The object with what a revision holds."""
    if kind.contribution is None:
        return with_value(document, revised_path(kind, document), revision.template)
    kept = {name: value for name, value in document["spec"].items() if name not in kind.contribution.recorded}
    return {**document, "spec": {**kept, **revision.template["spec"]}}


def is_present(kind: Face, document: Json, revision: Revision) -> bool:
    """Whether the object is what a revision holds."""
    now = present(kind, document)
    if kind.contribution is not None:
        return same(now, revision.template)
    return same_template(now, revision.template)


def _plain(template: Json, *, strip_hash: bool) -> Json:
    """The template as it was in the workload."""
    plain = {name: value for name, value in template.items() if name != "$patch"}
    labels = value_at(plain, ("metadata", "labels"), {})
    if strip_hash and TEMPLATE_HASH in labels:
        kept = {name: value for name, value in labels.items() if name != TEMPLATE_HASH}
        plain["metadata"] = {**plain["metadata"], "labels": kept}
    return plain


def find(revisions: Sequence[Revision], number: int) -> Revision:
    for revision in revisions:
        if revision.number == number:
            return revision
    known = ", ".join(str(revision.number) for revision in revisions) or "none"
    raise VerbError(f"unable to find the specified revision {number}; there are {known}")


def table(revisions: Sequence[Revision]) -> list[str]:
    if not revisions:
        return ["No rollout history found."]
    rows = [(str(revision.number), revision.cause or "<none>") for revision in revisions]
    width = max(len("REVISION"), *(len(number) for number, _ in rows)) + 2
    return [f"{'REVISION':<{width}}CHANGE-CAUSE", *(f"{number:<{width}}{cause}" for number, cause in rows)]


def same_template(left: Any, right: Any) -> bool:
    """Whether two templates mean the same: null and empty fields count as absent."""
    from kruise.machinery.revisions import same_data

    one, other = ({"spec": {"template": side}} for side in (left, right))
    return same_data(encode(one), encode(other))
