"""Everything about a workload's rollout in one value: what `kruise describe rollout` and the live view show."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.api.native.pod import Pod
from kruise.faces.face import Face, Setting
from kruise.faces.progress import Progress
from kruise.machinery.ages import age
from kruise.machinery.documents import Json, name_of, namespace_of, value_at
from kruise.machinery.wording import table
from kruise.verbs import containers, podstates
from kruise.verbs.errors import VerbError
from kruise.verbs.history import Revision
from kruise.verbs.lookup import pod_spec
from kruise.verbs.podstates import PodState


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RevisionState:
    number: int
    name: str
    role: str
    """`update`: the present template; `current`: the one that all pods had last; else empty."""
    pods: int
    ready: int
    images: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    kind: str
    name: str
    namespace: str
    progress: Progress
    settings: tuple[Setting, ...]
    """Strategy and limits, each with a title."""
    images: tuple[str, ...]
    revisions: tuple[RevisionState, ...]
    pods: tuple[PodState, ...]
    runs_to_end: bool = False
    """Its numbers are of tasks, nodes or images, and its message tells them."""
    causes: tuple[tuple[str, str], ...] = ()
    """Why pods do not move, by pod: filled in by whoever can ask the manager."""


def overview(
    kind: Face,
    document: Json,
    pods: Iterable[Pod],
    revisions: Sequence[Revision],
    *,
    causes: Sequence[tuple[str, str]] = (),
) -> Overview:
    if kind.progress is None:
        raise VerbError(f"{kind.named(name_of(document))} has no rollout")
    states = podstates.states(kind, document, pods, revisions)
    return Overview(
        kind=kind.label,
        name=name_of(document),
        namespace=namespace_of(document),
        progress=kind.progress(document),
        settings=_settings(kind, document),
        images=_images(value_at(document, pod_spec(kind, document), {}))
        if kind.template_of(document) is not None
        else (),
        revisions=tuple(_revision_states(kind, document, states, revisions)),
        pods=tuple(states),
        runs_to_end=kind.runs_to_end,
        causes=tuple(causes),
    )


def _revision_states(
    kind: Face, document: Json, states: Sequence[PodState], revisions: Sequence[Revision]
) -> Iterable[RevisionState]:
    newest = podstates.newest_revision(kind, document, revisions)
    current = value_at(document, ("status", "currentRevision"), "")
    for revision in reversed(revisions):
        own = [pod for pod in states if pod.revision == revision.number]
        role = "update" if newest is not None and revision.number == newest.number else ""
        if not role and revision.name == current:
            role = "current"
        if own or role:
            yield RevisionState(
                number=revision.number,
                name=revision.name,
                role=role,
                pods=len(own),
                ready=sum(pod.is_ready for pod in own),
                images=_images(revision.pods.get("spec") or {}),
            )


def _images(spec: Json) -> tuple[str, ...]:
    return tuple(f"{one.get('name')}={one.get('image')}" for one in containers.listed(spec))


def _settings(kind: Face, document: Json) -> tuple[Setting, ...]:
    found = kind.settings_of(document)
    if kind.paused is not None and value_at(document, kind.paused, False):
        found.append(("Paused", "true"))
    if minimum := value_at(document, kind.min_ready, 0):
        found.append(("Min Ready", f"{minimum}s"))
    if deadline := value_at(document, ("spec", "progressDeadlineSeconds"), 0):
        found.append(("Progress Deadline", f"{deadline}s"))
    return tuple(found)


# Text


def described(view: Overview, now: datetime, *, width: int = 0) -> list[str]:
    """The lines of `kruise describe rollout`. `width`: of the terminal; 0: there is none."""
    progress = view.progress
    head = [
        ("Name", view.name),
        ("Namespace", view.namespace),
        ("Kind", view.kind),
        ("Status", progress.phase.value),
        ("Message", progress.message),
        *view.settings,
        *([("Images", ", ".join(view.images))] if view.images else []),
    ]
    if not view.runs_to_end:
        counts = f"{progress.wanted} desired, {progress.total} total, {progress.updated} updated"
        state = f"{progress.ready} ready, {progress.available} available"
        head.append(("Pods", f"{counts} (of {progress.expected}), {state}"))
    room = max(len(title) for title, _ in head) + 3
    lines = [f"{title + ':':<{room}}{text}" for title, text in head]
    if view.revisions:
        lines += ["", *table(REVISION_COLUMNS, map(_revision_row, view.revisions), width=width)]
    unknown = "?" if view.revisions else "<none>"  # a kind that keeps no history has no numbers
    lines += ["", *table(POD_COLUMNS, (pod_row(pod, now, unknown) for pod in view.pods), width=width)]
    held = dict(view.causes)
    if held:
        lines += ["", *table(("HELD", "BECAUSE"), held.items(), width=width)]
    return lines


def _revision_row(revision: RevisionState) -> tuple[str, ...]:
    figures = (str(revision.pods), str(revision.ready))
    return (str(revision.number), revision.name, revision.role or "-", *figures, ", ".join(revision.images))


REVISION_COLUMNS = ("REVISION", "NAME", "ROLE", "PODS", "READY", "IMAGES")
POD_COLUMNS = ("POD", "REVISION", "STATE", "READY", "RESTARTS", "AGE", "NODE")


def pod_row(pod: PodState, now: datetime, unknown: str = "?") -> tuple[str, ...]:
    return (
        pod.name,
        str(pod.revision or unknown),
        pod.state,
        pod.containers,
        str(pod.restarts),
        age(pod.created, now),
        pod.node or "<none>",
    )


def as_data(view: Overview, now: datetime) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        **dataclasses.asdict(view),
        "progress": view.progress.as_data(),
        "settings": dict(view.settings),
        "pods": [pod.as_data() | {"age": age(pod.created, now)} for pod in view.pods],
        "causes": dict(view.causes),
    }
