"""What becomes of a workload when nodes are lost: who goes, what is left serving, where the others come up. Pure.

The nodes are gone from one moment to the next, and nobody is asked. Their pods serve nobody from then on. Kubernetes
notices after a while, waits as long as the pods tolerate it, and gives them up; from there the workload's own decisions
are played, beside the pods that are left. The Node objects are taken to be gone by then, as clouds have it: while they
are there, no pod of a StatefulSet comes up elsewhere.

Of Kubernetes' own kinds nobody decides here: each pod is taken to come again as it was.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

from kruise.api.meta import Key, controller_of
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod, condition, is_active, is_ready
from kruise.api.resource import Resource
from kruise.feature import Feature, Settings
from kruise.foresight.foreseeing import forecast_of
from kruise.foresight.learning import learn
from kruise.foresight.playing import Bounds
from kruise.foresight.removal.guards import Breach, Guards
from kruise.foresight.removal.returning import Returning, keeps_its_name
from kruise.foresight.staging import STORAGE, stage
from kruise.machinery import collection, names
from kruise.machinery.codec import evolve
from kruise.machinery.selectors import Selector
from kruise.machinery.wording import plural
from kruise.model import kubelet
from kruise.model.nodes import Nodes
from kruise.model.podstates import with_readiness
from kruise.model.room import NodeRoom
from kruise.model.volumes import Volumes
from kruise.model.world import World
from kruise.workloads.shared.causes import UNSCHEDULED

NOTICED = 50.0
"""Seconds without a heartbeat until a node counts as unreachable: the default of Kubernetes."""
TOLERATED = 300.0
"""Seconds that a pod tolerates that: what the API server writes into pods that say nothing."""
_TAINT = "node.kubernetes.io/unreachable"
_DAEMON = "DaemonSet"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A pod on one of the nodes."""

    pod: str
    node: str
    was_ready: bool
    given_up: float
    """Seconds after the loss."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """A claim that holds a pod back: no node that is left can use its volume."""

    claim: str
    volume: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A pod that comes in place of those that went."""

    pod: str
    node: str
    """Empty: it finds none."""
    serves: float | None
    """Seconds after the loss; None: it does not."""
    why: str = ""
    """Why it finds no node, in the words of the scheduler."""
    ties: tuple[Tie, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A budget that is not kept."""

    breach: Breach
    until: float | None
    """Seconds after the loss; None: it stays broken."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    target: str
    namespace: str
    selector: str
    nodes: tuple[str, ...]
    """Those that are lost."""
    nodes_left: int
    before: int
    """Pods that served."""
    at_once: int
    """Pods that still serve right after."""
    after: int
    """Pods that serve in the end."""
    seconds: float | None
    """Until as many serve as before; None: they never do."""
    serving: tuple[tuple[float, int], ...] = ()
    """When how many served, each time that it changed."""
    lost: tuple[Lost, ...] = ()
    coming: tuple[Coming, ...] = ()
    budgets: tuple[Broken, ...] = ()
    parts: tuple[str, ...] = ()
    """What each part of the workload has in the end, and why."""
    stops: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def homeless(self) -> tuple[Coming, ...]:
        return tuple(one for one in self.coming if not one.node)

    @property
    def recovers(self) -> bool:
        return self.seconds is not None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """The cluster around the workload."""

    target: str
    key: Key
    selector: Selector
    nodes: Sequence[Node]
    elsewhere: Sequence[Pod]
    """All pods that have a node."""
    guards: Guards
    now: datetime

    @property
    def gone(self) -> tuple[str, ...]:
        return tuple(sorted(node.metadata.name for node in self.nodes if self._is_lost(node)))

    @property
    def left(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if not self._is_lost(node))

    def _is_lost(self, node: Node) -> bool:
        return self.selector.matches(node.metadata.labels)


# Kinds whose decisions are played


def lose(
    around: Around,
    subject: Resource[Any],
    document: Mapping[str, Any],
    objects: Mapping[Resource[Any], Sequence[Any]],
    *,
    features: Sequence[Feature],
    settings: Settings,
    server_version: Any = None,
    bounds: Bounds | None = None,
) -> Loss:
    """`document` and `objects` as for `kruise.foresight.foresee`, with the object as it is."""
    gone = frozenset(around.gone)
    scene = stage(
        subject,
        around.key,
        document,
        {**objects, NODES: around.left},
        elsewhere=[pod for pod in around.elsewhere if pod.spec.node_name not in gone],
        features=features,
        settings=settings,
        now=around.now,
        seed=0,
        answer_hooks=True,
        server_version=server_version,
        bounds=bounds or Bounds(),
    )
    course = _Course(
        scene.world, scene.volumes, scene.pods_before, gone, lambda pod: scene.kind.owns(scene.wanted, pod)
    )
    course.begin()
    with collection.at_rest():
        scene.playing.play()
        forecast = forecast_of(scene, settings.gates)
    return course.loss(
        around,
        parts=forecast.parts,
        stops=tuple(stop.message for stop in forecast.stops if stop.is_last and stop.meaning != UNSCHEDULED),
        assumptions=forecast.assumptions,
        notes=("it is not played to its end: it takes too many steps",) if forecast.is_cut else (),
    )


# Kinds that others decide about


def lose_as_they_are(
    around: Around,
    pods: Sequence[Pod],
    namespaces: Mapping[str, Mapping[str, str]],
    objects: Mapping[Resource[Any], Sequence[Any]] = MappingProxyType({}),
    *,
    features: Sequence[Feature],
    settings: Settings,
) -> Loss:
    """Each of these pods comes again as it was; one of a DaemonSet has nowhere to come to. `objects`: claims, volumes
    and their classes, and what brings pods back to where they were, as far as it was read."""
    gone = frozenset(around.gone)
    own = {pod.metadata.uid for pod in pods}
    others = [pod for pod in around.elsewhere if pod.spec.node_name not in gone and pod.metadata.uid not in own]
    world, times = World(around.now), learn(pods)
    returning = Returning(world, features=features, settings=settings)
    for resource, items in {**objects, PODS: pods, NODES: around.left}.items():
        world.add(resource, items)
    volumes = Volumes(world, are_known=objects.keys() >= STORAGE)
    room = NodeRoom(around.left, others, namespaces=namespaces, claims_of=volumes.claims_of)
    nodes = Nodes(world, times, failure_of=lambda pod: "", reports=False, room=room, volumes=volumes)
    nodes.begin()
    again = functools.partial(_comes_again, returning)
    course = _Course(world, volumes, tuple(pods), gone, lambda pod: True, after=again)
    course.begin()
    world.settle()
    while world.next_moment is not None:
        world.now = max(world.next_moment, world.now)
        world.settle()
    told = "Kubernetes itself decides about it: each pod is taken to come again as it was"
    return course.loss(around, assumptions=(told,))


def _comes_again(returning: Returning, world: World, pod: Pod) -> None:
    if any(owner.kind == _DAEMON for owner in pod.metadata.owner_references) or not pod.metadata.owner_references:
        return
    # A pod of a StatefulSet keeps its name; others get one that nobody knows yet.
    owner = controller_of(pod) or pod.metadata.owner_references[0]
    name = pod.metadata.name
    if not keeps_its_name(pod):
        name = f"{owner.name}-{names.derived_suffix(pod.metadata.uid)}"
    metadata = evolve(
        pod.metadata,
        name=name,
        uid=f"{pod.metadata.uid}-again",
        resource_version="",
        creation_timestamp=world.now,
        deletion_timestamp=None,
        deletion_grace_period_seconds=None,
        finalizers=(),
    )
    # Who answers its readiness gates is taken to do so again.
    gates = {gate.condition_type for gate in pod.spec.readiness_gates}
    answered = tuple(item for item in pod.status.conditions if item.type in gates)
    status = evolve(type(pod.status)(), conditions=answered)
    fresh = evolve(pod, metadata=metadata, spec=evolve(pod.spec, node_name=""), status=status)
    world.add(PODS, (returning.placed(fresh),))


# What happens, and what is told of it


class _Course:
    """Takes the pods down, gives them up, and looks on."""

    def __init__(
        self,
        world: World,
        volumes: Volumes,
        pods: Sequence[Pod],
        gone: frozenset[str],
        owns: Callable[[Pod], bool],
        after: Callable[[World, Pod], None] | None = None,
    ) -> None:
        self._world = world
        self._volumes = volumes
        self._began = world.now
        self._owns = owns
        self._after = after
        self._before = {pod.metadata.uid for pod in pods}
        self._pods = [pod for pod in pods if is_active(pod) and pod.spec.node_name in gone]
        self._serving = {pod.metadata.uid for pod in pods if _serves(pod)}
        self._first = len(self._serving)
        self._since: dict[str, float] = {}
        """When pods that came since began to serve, by uid."""
        self._counts: list[tuple[float, int]] = []

    def begin(self) -> None:
        self._world.store(PODS).subscribe(self._saw)
        for pod in self._pods:
            self._world.at(self._began, functools.partial(self._down, pod))
            self._world.after(_patience(pod), functools.partial(self._give_up, pod))

    def _found(self, pod: Pod) -> Pod | None:
        found = self._world.store(PODS).get(pod.metadata.namespace, pod.metadata.name)
        return found if found is not None and found.metadata.uid == pod.metadata.uid else None

    def _down(self, pod: Pod) -> None:
        found = self._found(pod)
        if found is not None:
            containers = [container.name for container in found.spec.containers]
            stopped = evolve(found, status=kubelet.stopped(found, containers))
            self._world.put(PODS, with_readiness(stopped, self._world.now))

    def _give_up(self, pod: Pod) -> None:
        found = self._found(pod)
        if found is None:
            return
        if found.metadata.deletion_timestamp is None:
            found = self._world.delete(PODS, found, grace=0)
        if (found := self._found(found)) is not None:
            self._world.pod_ended(found)
        if self._after is not None:
            self._after(self._world, pod)

    def _saw(self, old: Pod | None, new: Pod | None) -> None:
        changed = new if new is not None else old
        if changed is None or (changed.metadata.uid not in self._before and not self._owns(changed)):
            return
        uid, at = changed.metadata.uid, self._seconds()
        if new is not None and _serves(new):
            self._serving.add(uid)
            self._since.setdefault(uid, at)
        else:
            self._serving.discard(uid)
        if self._counts and self._counts[-1][0] == at:
            self._counts.pop()
        if not self._counts or self._counts[-1][1] != len(self._serving):
            self._counts.append((at, len(self._serving)))

    def _seconds(self) -> float:
        return round((self._world.now - self._began).total_seconds(), 3)

    def loss(
        self,
        around: Around,
        *,
        parts: tuple[str, ...] = (),
        stops: tuple[str, ...] = (),
        assumptions: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
    ) -> Loss:
        counts = self._counts or [(0.0, self._first)]
        at_once = next((count for at, count in reversed(counts) if at == 0), self._first)
        gone = frozenset(around.gone)
        ours = {pod.metadata.uid for pod in self._pods}
        others = [pod for pod in around.elsewhere if pod.spec.node_name in gone and pod.metadata.uid not in ours]
        lost = [
            Lost(
                pod=pod.metadata.name,
                node=pod.spec.node_name,
                was_ready=is_ready(pod),
                given_up=_patience(pod),
            )
            for pod in sorted(self._pods, key=lambda pod: (pod.spec.node_name, pod.metadata.name))
        ]
        whole = None if at_once < self._first else 0.0
        if whole is None and counts[-1][1] >= self._first:
            whole = _reached(counts, self._first)
        return Loss(
            target=around.target,
            namespace=around.key.namespace,
            selector=str(around.selector),
            nodes=around.gone,
            nodes_left=len(around.left),
            before=self._first,
            at_once=at_once,
            after=counts[-1][1],
            seconds=whole,
            serving=tuple(counts),
            lost=tuple(lost),
            coming=self._coming(around.left),
            budgets=tuple(
                Broken(breach=breach, until=_reached(counts, at_once + breach.lacks))
                for breach in around.guards.breaches(self._pods, others)
            ),
            parts=parts,
            stops=stops,
            notes=(*_notes(others), *notes),
            assumptions=(*_assumed(self._pods), *assumptions),
        )

    def _coming(self, left: Sequence[Node]) -> tuple[Coming, ...]:
        pods = [
            pod
            for pod in self._world.store(PODS).list()
            if pod.metadata.uid not in self._before and is_active(pod) and self._owns(pod)
        ]
        return tuple(
            Coming(
                pod=pod.metadata.name,
                node=pod.spec.node_name,
                serves=self._since.get(pod.metadata.uid) if pod.metadata.uid in self._serving else None,
                why="" if pod.spec.node_name else _words(pod),
                ties=() if pod.spec.node_name else self._ties(pod, left),
            )
            for pod in sorted(pods, key=lambda pod: (not pod.spec.node_name, pod.metadata.name))
        )

    def _ties(self, pod: Pod, left: Sequence[Node]) -> tuple[Tie, ...]:
        needs = self._volumes.claims_of(pod)
        claims = needs.out_of_reach(left) if needs is not None else ()
        return tuple(Tie(claim=claim.metadata.name, volume=claim.spec.volume_name) for claim in claims)


def _serves(pod: Pod) -> bool:
    return is_active(pod) and is_ready(pod)


def _patience(pod: Pod) -> float:
    """Seconds until a pod is given up: at the latest when its Node object goes."""
    tolerated = [
        float(toleration.toleration_seconds)
        for toleration in pod.spec.tolerations
        if toleration.key == _TAINT and toleration.toleration_seconds is not None
    ]
    return NOTICED + max(min(tolerated, default=TOLERATED), 0.0)


def _reached(counts: Sequence[tuple[float, int]], wanted: int) -> float | None:
    """Since when at least so many serve for good."""
    found: float | None = None
    for at, count in reversed(counts):
        if count < wanted:
            break
        found = at
    return found


def _words(pod: Pod) -> str:
    scheduled = condition(pod, "PodScheduled")
    return scheduled.message if scheduled is not None and scheduled.message else "nobody has looked for one yet"


def _notes(others: Sequence[Pod]) -> Iterable[str]:
    count = sum(is_active(pod) and _moves(pod) for pod in others)
    if count:
        yield f"{plural(count, 'pod')} of others on these nodes look for room, too: that is not counted here"


def _moves(pod: Pod) -> bool:
    owners = pod.metadata.owner_references
    return bool(owners) and all(owner.kind != _DAEMON for owner in owners)


def _assumed(pods: Sequence[Pod]) -> Iterable[str]:
    waits = sorted({_patience(pod) - NOTICED for pod in pods})
    if waits:
        said = f"{waits[0]:.0f}s" if len(waits) == 1 else f"{waits[0]:.0f}s to {waits[-1]:.0f}s"
        yield (
            f"the nodes are missed after {NOTICED:.0f}s, and their pods given up {said} later (tolerationSeconds of"
            f" {_TAINT}), when the Node objects are gone: while these are there, pods of StatefulSets do not come again"
        )
