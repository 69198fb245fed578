"""`rollout undo` (KK-2): an earlier template put back.

The template is replaced as a whole. Merging the stored one into the present one, as the data of a revision suggests,
would leave behind labels, annotations and other fields that only the present one has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from kruise.faces.face import Face, History
from kruise.machinery.documents import Json, name_of, value_at, with_value
from kruise.verbs import history
from kruise.verbs.errors import VerbError
from kruise.verbs.history import REVISION_ANNOTATION, Revision

_ANNOTATIONS = ("metadata", "annotations")
ROLLOUT_PREFIX = "rollouts.kruise.io/"
KEPT_ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION_ANNOTATION,
        "deployment.kubernetes.io/revision-history",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deprecated.deployment.rollback.to",
    }
)
"""Of a Deployment: they tell about it, not about a template."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    revision: Revision
    skipped: str = ""
    """Why nothing has to be done; empty where something has."""
    changed: Json


def target(kind: Face, document: Json, revisions: Sequence[Revision], to_revision: int) -> Revision:
    """The revision that is meant: the named one, or with 0 the one before the newest."""
    if to_revision < 0:
        raise VerbError(f"unable to find specified revision {to_revision} in history")
    if to_revision:
        return history.find(revisions, to_revision)
    if len(revisions) < 2:
        if kind.history is History.REPLICA_SETS:
            raise VerbError(f'no rollout history found for {kind.singular} "{name_of(document)}"')
        raise VerbError(f"{kind.named(name_of(document))}: no last revision to roll back to")
    return revisions[-2]


def roll_back(kind: Face, document: Json, revisions: Sequence[Revision], to_revision: int) -> Rollback:
    if kind.history is None or (kind.revised or kind.template) is None:
        raise VerbError(f"{kind.named(name_of(document))} keeps no history to roll back to")
    revision = target(kind, document, revisions, to_revision)
    if kind.history is History.REPLICA_SETS and kind.paused and value_at(document, kind.paused, False):
        raise VerbError(
            f"you cannot rollback a paused {kind.singular}; resume it first with "
            f"'kruise rollout resume {kind.word}/{name_of(document)}' and try again"
        )
    if history.is_present(kind, document, revision):
        said = f"skipped rollback (current template already matches revision {revision.number})"
        return Rollback(revision=revision, skipped=said, changed=document)
    changed = history.restored(kind, document, revision)
    if kind.history is History.REPLICA_SETS:
        changed = with_value(changed, _ANNOTATIONS, _annotations(document, revision.source))
    return Rollback(revision=revision, changed=changed)


def _annotations(document: Json, source: Json) -> dict[str, str]:
    """Those of the Deployment that tell about itself, and those that its ReplicaSet took over from it back then."""
    own: dict[str, str] = value_at(document, _ANNOTATIONS, {})
    stored: dict[str, str] = value_at(source, _ANNOTATIONS, {})
    return {name: text for name, text in own.items() if _is_kept(name)} | {
        name: text for name, text in stored.items() if not _is_kept(name)
    }


def _is_kept(name: str) -> bool:
    return name in KEPT_ANNOTATIONS or name.startswith(ROLLOUT_PREFIX)
