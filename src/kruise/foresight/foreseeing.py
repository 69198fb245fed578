"""The door: what a change of one object will do, from the objects as they were read."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.faces.forecast import ForecastFacts
from kruise.feature import Feature, Settings
from kruise.foresight import assumptions, telling, warnings
from kruise.foresight.changes import changes_between
from kruise.foresight.forecast import Forecast, Staying, Stop, Wave
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import Stage, stage
from kruise.foresight.waves import waves_of
from kruise.machinery import collection
from kruise.machinery.revision_names import short_hash

_BOUNDS = Bounds()
_PACE_WAVES = 6
"""The latest waves tell how fast the rest goes."""


def foresee(
    subject: Resource[Any],
    key: Key,
    changed: Mapping[str, Any],
    objects: Mapping[Resource[Any], Sequence[Any]],
    *,
    elsewhere: Sequence[Pod] | None = (),
    features: Sequence[Feature],
    settings: Settings,
    now: datetime,
    seed: int = 0,
    answer_hooks: bool = True,
    server_version: Any = None,
    bounds: Bounds = _BOUNDS,
) -> Forecast:
    """What becomes of the pods if `changed` is written. The same arguments give the same forecast.

    `changed` is the whole object as it would be sent, in any served version of its kind. `objects` are what
    `kruise.foresight.needs.needed` names, and under `subject` the object as it is now; without it, it is a new one.
    Pods find nodes, and get more of them, where `objects` has Nodes, beside the pods that are `elsewhere` in the
    cluster. Without Nodes, room is not looked at.

    Raises RefusedError where admission would refuse the change, UnknownKindError where the kind is not described.
    Where `elsewhere` is None: RoomNotReadError as soon as a pod needs a node, or more of its own. Most updates in place
    need neither, and so nobody has to read all pods of a cluster for them.
    """
    scene = stage(
        subject,
        key,
        changed,
        objects,
        elsewhere=elsewhere,
        features=features,
        settings=settings,
        now=now,
        seed=seed,
        answer_hooks=answer_hooks,
        server_version=server_version,
        bounds=bounds,
    )
    with collection.at_rest():
        scene.playing.play()
        return forecast_of(scene, settings.gates)


def forecast_of(scene: Stage, gates: Mapping[str, bool]) -> Forecast:
    """The forecast of a rollout that was played."""
    kind, playing, watcher, live = scene.kind, scene.playing, scene.watcher, scene.live
    after = playing.subject if playing.subject is not None else scene.wanted
    target = kind.update_revision(after)
    pods = scene.pods()
    revision_of = functools.partial(_revision, kind, after, target)
    words = telling.Words(kind, after, playing.revisions, gates)
    waves = waves_of(watcher, words.move_of)
    behind: tuple[Staying, ...] = ()
    last: tuple[Stop, ...] = ()
    if not playing.is_cut:
        behind = telling.staying(playing.plan, pods, frozenset(scene.down()), target, revision_of, kind.called)
        last = telling.last_stops(playing.plan, pods, watcher.last_change, playing.failures, kind.called)
    limits, replicas, replicas_before = kind.limits(scene.wanted), scene.replicas, scene.replicas_before
    unavailable, surge = limits.unavailable, limits.surge
    forecast = Forecast(
        kind=kind.resource.kind,
        namespace=scene.key.namespace,
        name=scene.key.name,
        changes=changes_between(live, scene.wanted, kind.computed),
        from_revision=kind.update_revision(live) if live is not None else "",
        to_revision=target,
        waves=waves,
        stops=(*telling.hook_stops(playing.hooks), *last),
        staying=behind,
        warnings=(),
        assumptions=_assumptions(scene),
        replicas=replicas,
        available_before=scene.available_before,
        fewest_available=watcher.fewest_available,
        fewest_allowed=None if unavailable is None else max(0, min(replicas, replicas_before) - unavailable.pods),
        most_pods=watcher.most_pods,
        most_allowed=max(replicas, replicas_before) + (surge.pods if surge is not None else 0),
        available_after=watcher.available,
        by_revision=telling.by_revision(pods, playing.revisions, revision_of),
        seconds=_extrapolated(waves, map(revision_of, pods), target)
        if playing.is_cut
        else round(watcher.last_change, 3),
        is_complete=not (playing.is_cut or behind or last)
        and len(pods) == replicas
        and all(short_hash(revision_of(pod)) == short_hash(target) for pod in pods),
        parts=kind.parts(playing.plan),
        part=kind.part,
        is_cut=playing.is_cut,
    )
    return warnings.with_warnings(
        forecast,
        warnings.Facts(
            kind=kind,
            before=live,
            after=scene.wanted,
            replicas=replicas,
            broken=scene.broken_before,
            refusals=frozenset(words.refusals),
            dropped=tuple(playing.dropped),
            admission=scene.admission_warnings,
            untouched=scene.untouched,
        ),
    )


def _revision(kind: ForecastFacts, after: Any, target: str, pod: Pod) -> str:
    """A pod that has what the newest revision would change in it is where that one leads."""
    if kind.is_current is not None and kind.is_current(after, pod):
        return target
    return kind.revision_of(after, pod)


def _assumptions(scene: Stage) -> tuple[str, ...]:
    playing = scene.playing
    return assumptions.of(
        scene.times,
        scene.failures,
        has_looked_for_room=scene.has_looked_for_room,
        hooks=bool(playing.hooks),
        is_cut=playing.is_cut,
    )


def _extrapolated(waves: Sequence[Wave], revisions: Iterable[str], target: str) -> float | None:
    """How long the whole takes if it goes on as it did so far; None where nobody can tell."""
    if len(waves) < 3:
        return None
    rest = sum(short_hash(one) != short_hash(target) for one in revisions)
    latest = waves[-_PACE_WAVES:-1]
    pace = (waves[-1].begins - latest[0].begins) / sum(len(wave.moves) for wave in latest)
    return round(waves[-1].begins + math.ceil(pace * (rest + len(waves[-1].moves))), 3)
