"""Everything about a workload's rollout in one value: what `kruise describe rollout` and the live view show."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.api.apps.cloneset import CloneSetSpec
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.ages import age
from kruise.machinery.intorpercent import IntOrPercentError, scaled
from kruise.verbs import containers, kinds, podstates
from kruise.verbs.documents import Json, name_of, namespace_of, value_at
from kruise.verbs.errors import VerbError
from kruise.verbs.history import Revision
from kruise.verbs.kinds import Kind
from kruise.verbs.podstates import PodState
from kruise.verbs.rollout_status import Progress
from kruise.workloads.cloneset.numbers import limits_of


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
    settings: tuple[tuple[str, str], ...]
    """Strategy and limits, each with a title."""
    images: tuple[str, ...]
    revisions: tuple[RevisionState, ...]
    pods: tuple[PodState, ...]
    causes: tuple[tuple[str, str], ...] = ()
    """Why pods do not move, by pod: filled in by whoever can ask the manager."""


def overview(
    kind: Kind,
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
        images=_images(value_at(document, kind.pod_spec(), {})),
        revisions=tuple(_revision_states(kind, document, states, revisions)),
        pods=tuple(states),
        causes=tuple(causes),
    )


def _revision_states(
    kind: Kind, document: Json, states: Sequence[PodState], revisions: Sequence[Revision]
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
                images=_images(revision.template.get("spec") or {}),
            )


def _images(spec: Json) -> tuple[str, ...]:
    return tuple(f"{one.get('name')}={one.get('image')}" for one in containers.listed(spec))


# Strategy and limits, by kind


def _settings(kind: Kind, document: Json) -> tuple[tuple[str, str], ...]:
    found = _READERS[kind.resource.kind](document)
    if kind.paused is not None and value_at(document, kind.paused, False):
        found.append(("Paused", "true"))
    if minimum := value_at(document, ("spec", "minReadySeconds"), 0):
        found.append(("Min Ready", f"{minimum}s"))
    if deadline := value_at(document, ("spec", "progressDeadlineSeconds"), 0):
        found.append(("Progress Deadline", f"{deadline}s"))
    return tuple(found)


def _cloneset(document: Json) -> list[tuple[str, str]]:
    spec = codec.convert(document["spec"], CloneSetSpec)
    limits, strategy = limits_of(spec), spec.update_strategy
    rolling = strategy.rolling_update
    policy = (rolling.pod_update_policy if rolling is not None else "") or "ReCreate"
    found = [
        ("Strategy", f"{strategy.type or 'RollingUpdate'}, {policy}"),
        ("Partition", _meant(rolling.partition if rolling is not None else None, limits.partition, "0")),
        (
            "Max Unavailable",
            _meant(rolling.max_unavailable if rolling is not None else None, limits.max_unavailable, "20%"),
        ),
        ("Max Surge", _meant(rolling.max_surge if rolling is not None else None, limits.max_surge, "0")),
    ]
    grace = rolling.in_place_update_strategy if rolling is not None else None
    if grace is not None and grace.grace_period_seconds:
        found.append(("In-Place Grace", f"{grace.grace_period_seconds}s"))
    if spec.lifecycle is not None:
        hooks = value_at(document, ("spec", "lifecycle"), {})
        found.append(("Hooks", ", ".join(sorted(hooks)) or "none"))
    return found


def _deployment(document: Json) -> list[tuple[str, str]]:
    replicas = value_at(document, ("spec", "replicas"), 1)
    strategy = value_at(document, ("spec", "strategy"), {})
    if strategy.get("type") == "Recreate":
        return [("Strategy", "Recreate")]
    rolling = strategy.get("rollingUpdate") or {}
    return [
        ("Strategy", "RollingUpdate"),
        ("Max Unavailable", _share(rolling.get("maxUnavailable", "25%"), replicas, round_up=False)),
        ("Max Surge", _share(rolling.get("maxSurge", "25%"), replicas, round_up=True)),
    ]


def _stateful_set(document: Json) -> list[tuple[str, str]]:
    strategy = value_at(document, ("spec", "updateStrategy"), {})
    rolling = strategy.get("rollingUpdate") or {}
    return [
        ("Strategy", str(strategy.get("type", "RollingUpdate"))),
        ("Partition", str(rolling.get("partition", 0))),
        ("Max Unavailable", str(rolling.get("maxUnavailable", 1))),
    ]


def _daemon_set(document: Json) -> list[tuple[str, str]]:
    strategy = value_at(document, ("spec", "updateStrategy"), {})
    rolling = strategy.get("rollingUpdate") or {}
    wanted = value_at(document, ("status", "desiredNumberScheduled"), 0)
    return [
        ("Strategy", str(strategy.get("type", "RollingUpdate"))),
        ("Max Unavailable", _share(rolling.get("maxUnavailable", 1), wanted, round_up=True)),
        ("Max Surge", _share(rolling.get("maxSurge", 0), wanted, round_up=True)),
    ]


_READERS = {
    kinds.CLONE_SET.resource.kind: _cloneset,
    kinds.DEPLOYMENT.resource.kind: _deployment,
    kinds.STATEFUL_SET.resource.kind: _stateful_set,
    kinds.DAEMON_SET.resource.kind: _daemon_set,
}


def _meant(value: Any, count: int, default: str) -> str:
    text = default if value is None else str(value)
    return text if text == str(count) else f"{text} ({count} pods)"


def _share(value: Any, total: int, *, round_up: bool) -> str:
    try:
        count = scaled(value, total, round_up=round_up)
    except IntOrPercentError:
        return str(value)
    return str(value) if str(value) == str(count) else f"{value} ({count} pods)"


# Text


def described(view: Overview, now: datetime) -> list[str]:
    """The lines of `kruise describe rollout`."""
    progress = view.progress
    head = [
        ("Name", view.name),
        ("Namespace", view.namespace),
        ("Kind", view.kind),
        ("Status", progress.phase.value),
        ("Message", progress.message),
        *view.settings,
        ("Images", ", ".join(view.images)),
        (
            "Pods",
            f"{progress.wanted} desired, {progress.total} total, {progress.updated} updated (of {progress.expected}), "
            f"{progress.ready} ready, {progress.available} available",
        ),
    ]
    width = max(len(title) for title, _ in head) + 3
    lines = [f"{title + ':':<{width}}{text}" for title, text in head]
    lines += ["", *table(("REVISION", "NAME", "ROLE", "PODS", "READY", "IMAGES"), map(_revision_row, view.revisions))]
    lines += ["", *table(POD_COLUMNS, (pod_row(pod, now) for pod in view.pods))]
    held = dict(view.causes)
    if held:
        lines += ["", *table(("HELD", "BECAUSE"), held.items())]
    return lines


def _revision_row(revision: RevisionState) -> tuple[str, ...]:
    figures = (str(revision.pods), str(revision.ready))
    return (str(revision.number), revision.name, revision.role or "-", *figures, ", ".join(revision.images))


POD_COLUMNS = ("POD", "REVISION", "STATE", "READY", "RESTARTS", "AGE", "NODE")


def pod_row(pod: PodState, now: datetime) -> tuple[str, ...]:
    return (
        pod.name,
        str(pod.revision or "?"),
        pod.state,
        pod.containers,
        str(pod.restarts),
        age(pod.created, now),
        pod.node or "<none>",
    )


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, three spaces apart."""
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def as_data(view: Overview, now: datetime) -> Mapping[str, Any]:
    """The same for programs."""
    return {
        **dataclasses.asdict(view),
        "progress": view.progress.as_data(),
        "settings": dict(view.settings),
        "pods": [pod.as_data() | {"age": age(pod.created, now)} for pod in view.pods],
        "causes": dict(view.causes),
    }
