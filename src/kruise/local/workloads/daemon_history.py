"""The revisions of a DaemonSet: one for each template, known by a label instead of a name (pure)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.pod import PODS, Pod
from kruise.inplace.keys import REVISION_LABEL
from kruise.local.workloads import templates
from kruise.local.workloads.objects import DaemonSet
from kruise.machinery import plan as plans
from kruise.machinery import revisions
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Target


@dataclasses.dataclass(frozen=True, slots=True)
class History:
    hash: str
    """Of the current template."""
    old: Sequence[ControllerRevision]
    """The revisions of other templates, oldest first."""
    collision_count: int | None
    actions: Sequence[Action]
    """What makes it so."""


def construct(
    owner: Owner,
    daemon_set: DaemonSet,
    known: Sequence[ControllerRevision],
    others: Iterable[ControllerRevision],
    pods: Iterable[Pod],
) -> History:
    """`known`: the revisions of the DaemonSet; `others`: those of its namespace."""
    data = templates.revision_data(daemon_set.spec.template)
    before = daemon_set.status.collision_count
    choice = revisions.choose(
        owner,
        known,
        data,
        labels=templates.labels(daemon_set.spec.template),
        annotations=daemon_set.metadata.annotations,
        collision_count=before,
        others=others,
        hash_label=REVISION_LABEL,
    )
    current = choice.revision
    actions = [_labelled(item) for item in known if REVISION_LABEL not in item.metadata.labels]
    if choice.action is not None:
        actions.append(choice.action)
    equal = revisions.equal_to(data, known)
    twins = [item for item in equal if item.metadata.name != current.metadata.name]
    if twins:
        actions += [_relabelled(pod, hash_of(current)) for pod in pods if _label(pod) != hash_of(current)]
        actions += [_removal(item, "another revision has the same template") for item in twins]
    same = {item.metadata.name for item in equal}
    old = [item for item in revisions.in_order(known) if item.metadata.name not in same]
    collisions = choice.collision_count if choice.collision_count or before is not None else None
    return History(hash_of(current), old, collisions, actions)


def hash_of(revision: ControllerRevision) -> str:
    return revision.metadata.labels.get(REVISION_LABEL) or revision.metadata.name


def superfluous(history: History, pods: Iterable[Pod], limit: int | None) -> list[Action]:
    """The oldest beyond the limit that no pod has. Those that pods have count against it."""
    keep = revisions.DEFAULT_HISTORY_LIMIT if limit is None else limit
    living = {_label(pod) for pod in pods}
    idle = [item for item in history.old if hash_of(item) not in living]
    return [_removal(item, "beyond the history limit") for item in idle[: max(0, len(history.old) - keep)]]


def _label(pod: Pod) -> str:
    return pod.metadata.labels.get(REVISION_LABEL, "")


def _labelled(revision: ControllerRevision) -> Action:
    body = {"metadata": {"labels": {REVISION_LABEL: revision.metadata.name}}}
    target = Target.of(CONTROLLER_REVISIONS, revision)
    return plans.patch(target, body, uid=revision.metadata.uid, reason="pods are matched with it by this label")


def _relabelled(pod: Pod, revision: str) -> Action:
    body = {"metadata": {"labels": {REVISION_LABEL: revision}}}
    return plans.patch(Target.of(PODS, pod), body, uid=pod.metadata.uid, reason="its revision is a twin of another")


def _removal(revision: ControllerRevision, reason: str) -> Action:
    return plans.delete(Target.of(CONTROLLER_REVISIONS, revision), uid=revision.metadata.uid, reason=reason)
