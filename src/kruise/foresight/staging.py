"""Setting the stage: the objects as they were read, the subject as it would be stored, nodes and controllers around."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kruise.api.resource import Resource
from kruise.faces.forecast import Around, ForecastFacts
from kruise.feature import Feature, Settings
from kruise.foresight import failing
from kruise.foresight.admitting import Gatekeeper
from kruise.foresight.errors import ForesightError, RefusedError
from kruise.foresight.learning import learn
from kruise.foresight.playing import Bounds, Playing
from kruise.foresight.subjects import facts_of
from kruise.foresight.watching import Watcher
from kruise.kinds import face_of
from kruise.machinery import codec
from kruise.model import podstates
from kruise.model.agent import has_agent
from kruise.model.nodes import Nodes
from kruise.model.room import EndlessRoom, NodeRoom, Room, RoomNotRead
from kruise.model.times import Times
from kruise.model.volumes import Volumes
from kruise.model.world import World
from kruise.scheduling.exclusion import Namespaces

STORAGE = frozenset((PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES))
"""Where all of these were read, pods go where their volumes are."""
_NEW_UID = "00000000-0000-4000-8000-000000000000"
_SERVER_OWNED = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything about one rollout, before and after it is played."""

    kind: ForecastFacts
    key: Key
    live: Any
    """The subject as it is; None where it is new."""
    wanted: Any
    """The subject as it would be stored."""
    world: World
    volumes: Volumes
    watcher: Watcher
    playing: Playing
    times: Times
    failures: failing.Failures
    replicas: int
    """Pods that are wanted."""
    replicas_before: int
    pods_before: tuple[Pod, ...]
    broken_before: tuple[str, ...]
    """Names of those that did not serve, and of which nothing says that they are about to."""
    available_before: int
    has_looked_for_room: bool
    """False: every pod is taken to find a node."""
    admission_warnings: tuple[str, ...]
    """What the API server would show with its answer."""
    untouched: str = ""
    """What does not happen although somebody may expect it."""

    def pods(self) -> list[Pod]:
        """The subject's pods that are there now."""
        return [pod for pod in self.world.store(PODS).list() if self.kind.owns(self.wanted, pod) and is_active(pod)]

    def down(self) -> tuple[str, ...]:
        """Names of those that do not serve."""
        return _down(self.kind, self.wanted, self.pods(), self.world.now)


def stage(
    subject: Resource[Any],
    key: Key,
    changed: Mapping[str, Any],
    objects: Mapping[Resource[Any], Sequence[Any]],
    *,
    elsewhere: Sequence[Pod] | None = (),
    features: Sequence[Feature],
    settings: Settings,
    now: datetime,
    seed: int,
    answer_hooks: bool,
    server_version: Any,
    bounds: Bounds,
) -> Stage:
    kind = facts_of(subject)
    _check_children(kind, features, settings)
    live = next((item for item in objects.get(subject, ()) if _key(item) == key), None)
    gatekeeper = Gatekeeper(features, settings)
    world = World(now)
    gatekeeper.enter(world)
    world.admit = lambda action: gatekeeper.new_object(action, world)
    for resource, items in objects.items():
        world.add(resource, [item for item in items if resource != subject or _key(item) != key])
    wanted = _wanted(kind, key, changed, live, gatekeeper, world)
    labels = {item.metadata.name: item.metadata.labels for item in objects.get(NAMESPACES, ())}
    around = Around(nodes=world.store(NODES).list(), pods=world.store(PODS).list(), namespaces=labels)
    pods = [pod for pod in around.pods if kind.owns(wanted, pod)]
    replicas = kind.wanted(wanted, around)
    watcher = Watcher(kind, wanted, replicas, now)
    for pod in pods:
        watcher.prime(pod)
    failures, times = failing.of(pods, kind.name_of), learn(pods)
    volumes = Volumes(world, are_known=objects.keys() >= STORAGE)
    room = _room(objects, elsewhere, labels, volumes)
    nodes = Nodes(world, times, failure_of=failures.reason, reports=has_agent(pods), room=room, volumes=volumes)
    playing = Playing(
        kind,
        key,
        world,
        watcher,
        features=features,
        settings=settings,
        seed=seed,
        answer_hooks=answer_hooks,
        server_version=server_version,
        bounds=bounds,
        served=frozenset(objects),
    )
    world.add(subject, (wanted,))
    nodes.begin()
    playing.begin()
    return Stage(
        kind=kind,
        key=key,
        live=live,
        wanted=wanted,
        world=world,
        volumes=volumes,
        watcher=watcher,
        playing=playing,
        times=times,
        failures=failures,
        replicas=replicas,
        replicas_before=kind.wanted(live, around) if live is not None else 0,
        pods_before=tuple(pods),
        broken_before=_broken(kind, pods, now),
        available_before=watcher.available,
        has_looked_for_room=NODES in objects,
        admission_warnings=tuple(gatekeeper.warnings),
        untouched=kind.untouched(wanted, around),
    )


def _check_children(kind: ForecastFacts, features: Sequence[Feature], settings: Settings) -> None:
    """Those of Kubernetes' own kinds are played by whom the caller brings: without, nothing would come of them."""
    decided = {spec.subject for feature in features for spec in feature.controllers(settings)}
    for child in kind.children:
        face = face_of(child.group, child.kind)
        if child not in decided and not (face is not None and face.is_ours):
            raise ForesightError(f"no forecast can be made: nobody here decides about {child}")


def _room(
    objects: Mapping[Resource[Any], Sequence[Any]],
    elsewhere: Sequence[Pod] | None,
    namespaces: Namespaces,
    volumes: Volumes,
) -> Room:
    if NODES not in objects:
        return EndlessRoom()
    if elsewhere is None:
        return RoomNotRead()
    read = {pod.metadata.uid for pod in objects.get(PODS, ())}
    others = (pod for pod in elsewhere if pod.metadata.uid not in read)
    return NodeRoom(objects[NODES], others, namespaces=namespaces, claims_of=volumes.claims_of)


def _key(obj: Any) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)


def _down(kind: ForecastFacts, subject: Any, pods: Sequence[Pod], now: datetime) -> tuple[str, ...]:
    seconds = kind.min_ready_seconds(subject)
    return tuple(kind.name_of(pod) for pod in pods if is_active(pod) and not kind.serves(pod, seconds, now))


def _broken(kind: ForecastFacts, pods: Sequence[Pod], now: datetime) -> tuple[str, ...]:
    """Who is ready and waits for minReadySeconds is well, and who began lately may be."""
    return tuple(
        kind.name_of(pod)
        for pod in pods
        if is_active(pod) and not kind.serves(pod, 0, now) and not podstates.is_hopeful(pod, now)
    )


def _wanted(
    kind: ForecastFacts, key: Key, changed: Mapping[str, Any], live: Any, gatekeeper: Gatekeeper, world: World
) -> Any:
    """The subject as it would be stored: through admission, with what only the server writes."""
    resource = kind.resource
    metadata = {**(changed.get("metadata") or {}), "name": key.name}
    if resource.namespaced:
        metadata["namespace"] = key.namespace
    stored: dict[str, Any] | None = None
    if live is not None:
        stored = codec.decode(codec.encode(live), dict[str, Any])
        stored |= {"apiVersion": resource.api_version, "kind": resource.kind}
        metadata |= {name: stored["metadata"][name] for name in _SERVER_OWNED if name in stored["metadata"]}
    document = {"apiVersion": resource.api_version, "kind": resource.kind, **changed, "metadata": metadata}
    document.pop("status", None)
    admitted = gatekeeper.admitted(resource, key, document, stored, world=world)
    try:
        found = codec.decode(codec.encode(admitted), resource.type)
    except codec.DecodeError as error:
        raise RefusedError(f"{resource.kind} {key}: {error}", code=400) from error
    if live is None:
        created = world.now.replace(microsecond=0)
        own = codec.evolve(found.metadata, uid=_NEW_UID, generation=1, creation_timestamp=created)
        return codec.evolve(found, metadata=own)
    kept: ObjectMeta = live.metadata
    own = codec.evolve(
        found.metadata,
        uid=kept.uid,
        resource_version=kept.resource_version,
        generation=kept.generation + (not _same(found.spec, live.spec)),
        creation_timestamp=kept.creation_timestamp,
        deletion_timestamp=kept.deletion_timestamp,
    )
    return codec.evolve(found, metadata=own, status=live.status)


def _same(one: Any, other: Any) -> bool:
    """By what they say: a template may be written in another order."""
    return codec.canonical(codec.to_builtins(one)) == codec.canonical(codec.to_builtins(other))
