"""`migrate` between a kind of ours and Kubernetes' own one of the same sort: the pods stay, their owner changes.

At no time do two controllers work on the pods, and whatever breaks off, nothing is lost:

1. The source gets a finalizer of ours and is deleted so that its pods, claims and revisions are let go. It stays as it
   was, and its controller leaves it alone: it is the record from which the same command goes on.
2. The destination is made with `OnDelete`: it adopts, and moves nothing.
3. Pods get the name that the destination has for their revision, if both hold the same template.
4. The destination gets its strategy, and the source may go.

Every step is found from what the cluster holds.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kruise.api.apps.shared import ON_DELETE
from kruise.faces.face import Face
from kruise.faces.handover import STRATEGY, Handover, Translation
from kruise.faces.progress import Progress, is_observed
from kruise.inplace.keys import IN_PLACE_READY, REVISION_LABEL
from kruise.machinery import codec
from kruise.machinery.documents import Json, Path, is_controlled_by, name_of, namespace_of, uid_of, value_at, with_value
from kruise.machinery.revision_names import is_revision
from kruise.machinery.revisions import same_data
from kruise.machinery.wording import listed, plural
from kruise.verbs.errors import VerbError

FINALIZER = "apps.kruise.io/migration"
MARK = "apps.kruise.io/migrated-from"
"""On the destination: the uid of the source."""
_ORPHAN = "orphan"
"""The finalizer that the API server sets where what an object owns is to stay."""
# It would make the next `kubectl apply` of the source's file compare with the wrong kind.
_LEFT_BEHIND = ("kubectl.kubernetes.io/last-applied-configuration", MARK)
_GATE = {"conditionType": IN_PLACE_READY}
_STRATEGY: Path = ("spec", *STRATEGY)


@dataclasses.dataclass(frozen=True, slots=True)
class Route:
    source: Face
    destination: Face
    facts: Handover

    def translated(self, source: Json) -> Translation:
        return self.facts.translated(source["spec"], to_ours=self.destination.is_ours)


def route(source: Face, destination: Face) -> Route | None:
    """None where pods cannot be handed over from the one to the other."""
    for ours, other in ((destination, source), (source, destination)):
        if ours.counterpart == other.group_kind and (facts := ours.handover_facts()) is not None:
            return Route(source, destination, facts)
    return None


class Act(enum.Enum):
    HOLD = "hold"
    """Set the finalizer on the source."""
    LET_GO = "let go"
    """Delete the source and let what it owns stay."""
    CREATE = "create"
    RELABEL = "relabel"
    ROLL = "roll"
    """Give the destination its strategy."""
    DROP = "drop"
    """Take the finalizer from the source."""
    UNMARK = "unmark"
    WAIT = "wait"
    DONE = "done"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the cluster holds. `pods` and `revisions` are those that the selector matches."""

    source: Json | None
    destination: Json | None
    pods: Sequence[Json] = ()
    revisions: Sequence[Json] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    act: Act
    message: str
    pods: tuple[Json, ...] = ()
    """Those that get another label."""
    label: str = ""


def manifest(route: Route, source: Json) -> Json:
    """The destination as it will be."""
    metadata: Json = {"name": name_of(source), "namespace": namespace_of(source)}
    annotations = value_at(source, ("metadata", "annotations"), {})
    kept = {
        "labels": value_at(source, ("metadata", "labels"), {}),
        "annotations": {name: text for name, text in annotations.items() if name not in _LEFT_BEHIND},
    }
    resource = route.destination.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata | {name: value for name, value in kept.items() if value},
        "spec": route.translated(source).spec,
    }


def held(route: Route, source: Json) -> Json:
    """The destination as it is made: it moves no pod."""
    made = with_value(manifest(route, source), ("metadata", "annotations", MARK), uid_of(source))
    return with_value(made, _STRATEGY, {"type": ON_DELETE})


def with_strategy(route: Route, source: Json, destination: Json) -> Json:
    return with_value(destination, _STRATEGY, value_at(manifest(route, source), _STRATEGY, {}))


def with_finalizer(document: Json) -> Json:
    return with_value(document, ("metadata", "finalizers"), [*_finalizers(document), FINALIZER])


def without_finalizer(document: Json) -> Json:
    left = [name for name in _finalizers(document) if name != FINALIZER]
    return with_value(document, ("metadata", "finalizers"), left)


def without_mark(document: Json) -> Json:
    annotations = value_at(document, ("metadata", "annotations"), {})
    left = {name: text for name, text in annotations.items() if name != MARK}
    return with_value(document, ("metadata", "annotations"), left)


def with_label(pod: Json, label: str) -> Json:
    return with_value(pod, ("metadata", "labels", REVISION_LABEL), label)


def check(route: Route, seen: Seen, *, lossy: bool, gates: Mapping[str, bool]) -> None:
    """Whether a migration may begin. `lossy`: fields that the destination does not have may be left behind. `gates` are
    those of the manager."""
    source = seen.source
    assert source is not None
    name = route.source.named(name_of(source))
    if seen.destination is not None:
        other = route.destination.named(name_of(seen.destination))
        if FINALIZER in _finalizers(seen.destination):
            back = f"kruise migrate {route.source.label} --from {route.destination.label} --src-name {name_of(source)}"
            raise VerbError(f"{name} is just getting the pods of {other}. Let that end first: {back}")
        raise VerbError(f"{other} exists already and was not made from {name}: remove it first")
    owners = value_at(source, ("metadata", "ownerReferences"), ())
    if owner := next((one for one in owners if one.get("controller")), None):
        raise VerbError(f"{name} belongs to {owner['kind']} {owner['name']}, which would make it anew: migrate that")
    if others := [one for one in _finalizers(source) if one != FINALIZER]:
        raise VerbError(
            f"{name} has the finalizer {others[0]}: whoever set it clears up when it goes. Have it removed first."
        )
    if not route.destination.is_ours and _GATE in value_at(source, ("spec", "template", "spec", "readinessGates"), ()):
        raise VerbError(
            f"the template of {name} has the readiness gate {IN_PLACE_READY}, which only kinds of ours answer: "
            f"new pods would never be ready. Take it out first; that makes the pods anew."
        )
    lost = route.translated(source)
    kind = route.destination.resource.group_resource
    if lost.binding:
        raise VerbError(
            f"{_places(lost.binding)} of {name} decides which pods there are, and {kind} have no such field"
        )
    if lost.lost and not lossy:
        raise VerbError(
            f"{kind} have no {_places(lost.lost)}, which {name} uses. Remove it there, or leave it behind with --force."
        )
    if (reason := _unsettled(route.source, source, seen.pods)) is not None:
        raise VerbError(f"{name} is not settled: {reason}. Wait for it: kruise rollout status {name}")
    _check_names(route, source, seen.pods, gates)


def _check_names(route: Route, source: Json, pods: Iterable[Json], gates: Mapping[str, bool]) -> None:
    """The destination would delete pods whose names it does not want, and make others."""
    names, gate = route.facts.pod_names, route.facts.names_gate
    if names is None:
        return
    made = manifest(route, source)
    wanted = names(made, not route.destination.is_ours or gates.get(gate, False))
    there = sorted(name_of(pod) for pod in pods if is_controlled_by(pod, uid_of(source)))
    if sorted(wanted) == there:
        return
    gate_is_for = f"only with feature gate {gate} ours is like Kubernetes' own there"
    if route.destination.is_ours:
        gate_is_for += f": where the manager has it, say so with --feature-gates={gate}=true"
    raise VerbError(
        f"{route.destination.named(name_of(made))} would delete {listed(there)} and make {listed(sorted(wanted))}; "
        f"{gate_is_for}"
    )


def next_step(route: Route, seen: Seen) -> Step:
    """What to do next, wherever an earlier run stopped. A source that still lives has been checked."""
    source, made = seen.source, seen.destination
    if source is None:
        return _behind(route, made)
    name = route.source.named(name_of(source))
    owned = [pod for pod in seen.pods if is_controlled_by(pod, uid_of(source))]
    if not _is_deleted(source):
        if FINALIZER not in _finalizers(source):
            return Step(act=Act.HOLD, message=f"{name} is kept as the record of this migration")
        return Step(act=Act.LET_GO, message=f"{name} lets go of {plural(len(owned), 'pod')}")
    if FINALIZER not in _finalizers(source):
        if made is not None and _mark(made) == uid_of(source):
            return Step(act=Act.WAIT, message=f"waiting for {name} to go")
        raise VerbError(f"{name} is being deleted, and not by a migration. Wait until it is gone.")
    if _ORPHAN in _finalizers(source):
        return Step(act=Act.WAIT, message=f"waiting for {name} to let go of {plural(len(owned), 'pod')}")
    if owned:  # somebody else deleted it in another way after the finalizer was set
        return Step(act=Act.LET_GO, message=f"{name} lets go of {plural(len(owned), 'pod')}")
    if made is None:
        return Step(act=Act.CREATE, message=f"{route.destination.named(name_of(source))} is made, and adopts the pods")
    return _onward(route, source, made, seen)


def _behind(route: Route, made: Json | None) -> Step:
    assert made is not None
    progress = _progress(route.destination, made)
    message = f"{route.destination.named(name_of(made))} has {plural(progress.total, 'pod')}"
    if _mark(made):
        return Step(act=Act.UNMARK, message=message)
    return Step(act=Act.DONE, message=message)


def _onward(route: Route, source: Json, made: Json, seen: Seen) -> Step:
    """The destination exists, the source has let go."""
    kind, name = route.destination, route.destination.named(name_of(made))
    if _mark(made) != uid_of(source):
        raise VerbError(
            f"{name} was made by somebody else while {route.source.named(name_of(source))} was let go. "
            f"If it is right, end the migration by removing the finalizer {FINALIZER} from the other one."
        )
    gone = f"{route.source.named(name_of(source))} may go"
    if value_at(made, (*_STRATEGY, "type")) != ON_DELETE:
        return Step(act=Act.DROP, message=gone)
    update = _update_revision(made, seen.revisions) if is_observed(made) else None
    if update is None:
        return Step(act=Act.WAIT, message=f"waiting for {name} to be looked at by its controller")
    label = route.facts.pod_label(update)
    own = [pod for pod in seen.pods if is_controlled_by(pod, uid_of(made)) and not _is_deleted(pod)]
    stale = tuple(pod for pod in own if _label(pod) != label)
    for pod in stale:
        if not _has_same_template(pod, update, seen.revisions):
            raise VerbError(
                f"pod {name_of(pod)} has another template than {name}, and would be restarted. Delete it when that "
                f"suits you, and run this again. Until then {name} updates nothing (OnDelete)."
            )
    if stale:
        message = f"{plural(len(stale), 'pod')} named after revision {name_of(update)}, which has the same template"
        return Step(act=Act.RELABEL, message=message, pods=stale, label=label)
    progress = _progress(kind, made)
    if min(progress.updated, progress.total) < progress.wanted:
        return Step(act=Act.WAIT, message=f"waiting for {name}: {progress.updated} of {progress.wanted} pods adopted")
    if value_at(with_strategy(route, source, made), (*_STRATEGY, "type")) == ON_DELETE:
        return Step(act=Act.DROP, message=gone)
    return Step(act=Act.ROLL, message=f"{name} has adopted {plural(progress.total, 'pod')} and gets its strategy")


def _unsettled(kind: Face, document: Json, pods: Iterable[Json]) -> str | None:
    progress = _progress(kind, document)
    if not is_observed(document):
        return "its controller has not seen the newest spec"
    if progress.updated < progress.wanted:
        return f"{progress.updated} of {progress.wanted} pods have the newest template"
    if progress.total != progress.wanted:
        return f"it has {progress.total} pods instead of {progress.wanted}"
    if progress.ready < progress.wanted:
        return f"{progress.ready} of {progress.wanted} pods are ready"
    going = [name_of(pod) for pod in pods if _is_deleted(pod) and is_controlled_by(pod, uid_of(document))]
    return f"pod {going[0]} is being deleted" if going else None


def _progress(kind: Face, document: Json) -> Progress:
    assert kind.progress is not None
    return kind.progress(document)


def _update_revision(document: Json, revisions: Sequence[Json]) -> Json | None:
    """The one that the status names; where a kind names none, its newest."""
    if named := value_at(document, ("status", "updateRevision"), ""):
        return next((one for one in revisions if is_revision(named, name_of(one))), None)
    own = [one for one in revisions if is_controlled_by(one, uid_of(document))]
    return max(own, key=lambda one: (int(one.get("revision", 0)), name_of(one)), default=None)


def _has_same_template(pod: Json, update: Json, revisions: Iterable[Json]) -> bool:
    data = _data(update)
    return any(is_revision(_label(pod), name_of(one)) and same_data(_data(one), data) for one in revisions)


def _data(revision: Json) -> bytes:
    return codec.encode(revision.get("data"))


def _label(pod: Json) -> str:
    return str(value_at(pod, ("metadata", "labels", REVISION_LABEL), ""))


def _mark(document: Json) -> str:
    return str(value_at(document, ("metadata", "annotations", MARK), ""))


def _is_deleted(document: Mapping[str, Any]) -> bool:
    return value_at(document, ("metadata", "deletionTimestamp")) is not None


def _finalizers(document: Json) -> list[str]:
    return list(value_at(document, ("metadata", "finalizers"), ()))


def _places(paths: Iterable[Path]) -> str:
    return ", ".join(".".join(("spec", *path)) for path in paths)
