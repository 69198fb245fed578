"""The revisions of a workload's template that a pass has to do with, and the writes that keep them in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.machinery import codec, revisions
from kruise.machinery.codec import Raw
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import OnError, Phase, single
from kruise.machinery.selectors import Selector

REVISION = "revision"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRevisions:
    choice: revisions.Choice
    current: ControllerRevision
    """The revision that old pods are kept at and go back to."""
    update: ControllerRevision
    """The revision of the present template."""
    history: tuple[ControllerRevision, ...]
    """The workload's revisions that exist, oldest first."""
    templates: Mapping[str, Mapping[str, Any]]
    """Pod templates of the current and the update revision, by revision name."""


def rollout_revisions(
    owner: Owner,
    template: Raw,
    existing: Sequence[ControllerRevision],
    *,
    selector: Selector,
    annotations: Mapping[str, str],
    current_name: str,
    collision_count: int | None,
    refreshed: Mapping[str, str] | None = None,
    hash_label: str = revisions.HASH_LABEL,
) -> RolloutRevisions:
    """`existing` are revisions of the namespace, as far as the workload may use or collide with them. `refreshed` are
    annotations that a revision carries in their newest form, `hash_label` is the label that has its hash."""
    history = revisions.belonging_to(owner, existing, selector)
    document = codec.decode(bytes(template), object)
    choice = revisions.choose(
        owner,
        history,
        revisions.template_data(document),
        labels=revisions.template_labels(document),
        annotations=annotations,
        refreshed=refreshed or {},
        collision_count=collision_count,
        others=existing,
        hash_label=hash_label,
    )
    update = choice.revision
    current = revisions.current_revision(history, current_name, update)
    return RolloutRevisions(
        choice=choice,
        current=current,
        update=update,
        history=tuple(history),
        templates={revision.metadata.name: revisions.template_of(revision) or {} for revision in (current, update)},
    )


def revision_phase(choice: revisions.Choice) -> Phase | None:
    """The write that makes the template's revision. Nothing else is done where it fails."""
    return single(REVISION, choice.action) if choice.action is not None else None


def history_phase(
    history: Sequence[ControllerRevision],
    *,
    in_use: Iterable[ControllerRevision],
    pods: Iterable[Pod],
    limit: int | None,
    named: str = "",
) -> Phase:
    """Deletes revisions that nothing uses any more (IPU-19). Terminating pods keep theirs: they may still be looked
    at. `named` is the one that the status calls current: it stays until the status names another one."""
    deletes = revisions.truncate(
        history,
        keep={named, *(revision.metadata.name for revision in in_use)},
        pod_labels=[pod.metadata.labels.get(keys.REVISION_LABEL, "") for pod in pods],
        limit=limit,
    )
    return single("history", *deletes, on_error=OnError.CONTINUE)
