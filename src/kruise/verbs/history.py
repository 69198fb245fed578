"""The earlier templates of a workload: one list from ReplicaSets or ControllerRevisions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from kruise.api.core.field_errors import TemplateTypeError
from kruise.api.core.values import equal_templates
from kruise.faces.face import Face, History
from kruise.machinery.documents import Json, is_controlled_by, name_of, uid_of, value_at
from kruise.verbs.errors import VerbError

CHANGE_CAUSE = "kubernetes.io/change-cause"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
TEMPLATE_HASH = "pod-template-hash"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    number: int
    name: str
    template: Json
    cause: str = ""
    source: Json
    """The object that holds it."""

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
    else:
        number, template = source.get("revision"), value_at(source, ("data", "spec", "template"))
    if not isinstance(template, dict):
        return None
    return Revision(
        number=int(number),
        name=name_of(source),
        template=_plain(template, strip_hash=kind.history is History.REPLICA_SETS),
        cause=annotations.get(CHANGE_CAUSE, ""),
        source=source,
    )


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
    try:
        return equal_templates(left, right)
    except TemplateTypeError:
        return bool(left == right)
