"""How a drain of a node gets through: who goes when, who stays, and what stops it. Pure.

The drain is played as `kubectl drain` does it: the node takes no new pods, every pod is evicted at once, and those that
a budget refuses are tried again every five seconds. A pod that goes is replaced elsewhere, where there is room; when
the new one is ready, its budgets have one more to give. So have they when a pod is ready that is starting just now.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Iterable, Mapping, Sequence

from kruise.api.meta import controller_of
from kruise.api.native.container_reasons import GOING_WELL
from kruise.api.native.daemon_pods import target_node
from kruise.api.native.nodes import Node
from kruise.api.native.pod import ContainerStatus, Pod, is_active, is_ready
from kruise.foresight.removal.guards import FINISHED, Guard, Guards
from kruise.inplace.barriers import waits_for_turn
from kruise.machinery.codec import evolve
from kruise.machinery.wording import listed
from kruise.model.times import Times
from kruise.scheduling.placing import Cluster, Placement

RETRY = 5.0
"""Seconds between two tries of `kubectl drain`."""
_MIRROR = "kubernetes.io/config.mirror"
_DAEMON = "DaemonSet"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A pod that leaves the node."""

    pod: str
    namespace: str
    owner: str
    at: float
    to: str
    """The node of its successor; empty: it has none."""
    budgets: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Staying:
    """A pod that stays on the node."""

    pod: str
    namespace: str
    why: str
    budgets: tuple[str, ...] = ()
    remedy: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    node: str
    waves: tuple[tuple[Gone, ...], ...] = ()
    untouched: tuple[Staying, ...] = ()
    """Pods that a drain leaves alone."""
    stuck: tuple[Staying, ...] = ()
    """Pods that it tries again and again to evict."""
    seconds: float = 0.0
    """Until the last pod is gone that goes."""
    flags: tuple[str, ...] = ()
    """Of kubectl, that it takes."""
    notes: tuple[str, ...] = ()

    @property
    def ends(self) -> bool:
        return not self.stuck


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is known about the cluster."""

    node: str
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    """All that run anywhere."""
    guards: Guards
    times: Times = dataclasses.field(default_factory=Times)
    local_data: frozenset[str] = frozenset()
    """Uids of pods with an emptyDir."""
    daemon_sets: frozenset[tuple[str, str]] | None = None
    """Namespace and name of Kubernetes' own; None: nobody could look."""


def drain(scene: Scene) -> Drain:
    return _Playing(scene).result()


class _Playing:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        # Finished pods are evicted as well; those on their way out are only waited for.
        here = [
            pod for pod in scene.pods if pod.spec.node_name == scene.node and pod.metadata.deletion_timestamp is None
        ]
        self._untouched = [stay for pod in here if (stay := _left_alone(pod, scene)) is not None]
        self._waited = [
            pod
            for pod in scene.pods
            if pod.spec.node_name == scene.node and pod.metadata.deletion_timestamp is not None
        ]
        alone = {(stay.namespace, stay.pod) for stay in self._untouched}
        self._left = sorted(
            (pod for pod in here if (pod.metadata.namespace, pod.metadata.name) not in alone),
            key=lambda pod: (pod.metadata.namespace, pod.metadata.name),
        )
        self._strange = sorted({_owner(pod) for pod in self._left if _is_strange_daemon(pod)})
        self._flags = tuple(_flags(self._left, self._untouched, scene))
        self._space = Cluster(
            [node for node in scene.nodes if node.metadata.name != scene.node and not node.spec.unschedulable],
            _by_node(scene.pods),
        )
        self._waves: list[tuple[Gone, ...]] = []
        self._coming: list[tuple[float, int, tuple[Guard, ...]]] = []
        self._count = 0
        starting = [pod for pod in scene.pods if pod.spec.node_name != scene.node and _is_starting(pod, scene)]
        for pod in starting:
            self._comes(scene.times.start + scene.times.ready, scene.guards.over(pod))
        self._starting = sorted(pod.metadata.name for pod in starting if scene.guards.over(pod))
        self._unplaced: dict[str, str] = {}
        """Why successors found no node, by pod."""
        self._tied: set[str] = set()
        """Owners that make each pod for one node, as jobs on each node do."""
        self._end = 0.0

    def _comes(self, moment: float, guards: Iterable[Guard]) -> None:
        """A pod is available then."""
        self._count += 1
        heapq.heappush(self._coming, (moment, self._count, tuple(guards)))

    def result(self) -> Drain:
        scene, moment = self._scene, 0.0
        while self._left:
            wave = [gone for pod in list(self._left) if (gone := self._evict(pod, moment)) is not None]
            if wave:
                self._waves.append(tuple(wave))
            if not self._left or not self._coming:
                break
            ready, _, guards = heapq.heappop(self._coming)
            for guard in guards:
                guard.allowed += 1
            while self._coming and self._coming[0][0] <= _next_try(ready):
                for guard in heapq.heappop(self._coming)[2]:
                    guard.allowed += 1
            moment = max(moment, _next_try(ready))
        notes = [f"{name}: no node takes its successor ({why})" for name, why in sorted(self._unplaced.items())]
        notes += [f"the pod of {owner} is made for this node, and comes to no other" for owner in sorted(self._tied)]
        notes += [
            f"the pod of {owner} is evicted like any other, and the next one comes to the node at once; versions of "
            "kubectl that take it for one of Kubernetes' own do not find that, and want --force"
            for owner in self._strange
        ]
        if self._starting:
            notes.append(f"counts on pods that are starting now to become ready: {listed(self._starting)}")
        if self._waited:
            names = listed([pod.metadata.name for pod in self._waited])
            notes.append(f"on the way out already, and waited for: {names}")
        return Drain(
            node=scene.node,
            waves=tuple(self._waves),
            untouched=tuple(self._untouched),
            stuck=tuple(self._stuck(pod) for pod in self._left),
            seconds=self._end,
            flags=self._flags,
            notes=tuple(notes),
        )

    def _evict(self, pod: Pod, moment: float) -> Gone | None:
        guards = tuple(self._scene.guards.against(pod))
        if any(guard.allowed <= 0 for guard in guards) or _too_many(guards):
            return None
        for guard in guards:
            guard.allowed -= 1
        self._left.remove(pod)
        times, metadata = self._scene.times, pod.metadata
        grace = pod.spec.termination_grace_period_seconds
        stop = min(times.stop, float(grace)) if grace is not None else times.stop
        self._end = max(self._end, moment + stop)
        to = self._successor(pod, guards)
        if to:
            # The successor of a pod that was down is one more than there were.
            gains = guards if is_ready(pod) else self._scene.guards.over(pod)
            self._comes(moment + times.schedule + times.start + times.ready, gains)
        return Gone(
            pod=metadata.name,
            namespace=metadata.namespace,
            owner=_owner(pod),
            at=moment,
            to=to,
            budgets=tuple(guard.name for guard in guards),
        )

    def _successor(self, pod: Pod, guards: Sequence[Guard]) -> str:
        if controller_of(pod) is None or pod.status.phase in FINISHED:
            return ""
        if _is_strange_daemon(pod):
            return self._scene.node
        if _is_forlorn(pod, self._scene):
            return ""
        if target_node(evolve(pod, spec=evolve(pod.spec, node_name=""))) == self._scene.node:
            self._tied.add(_owner(pod))
            return ""
        uid = f"successor of {pod.metadata.uid}"
        fresh = evolve(pod, metadata=evolve(pod.metadata, uid=uid), spec=evolve(pod.spec, node_name=""))
        found = self._space.place(fresh)
        if not isinstance(found, Placement):
            self._unplaced[f"pod {pod.metadata.name}"] = found.problem or ", ".join(found.reasons) or "no other node"
            return ""
        self._space.assume(fresh, found.node)
        return found.node

    def _stuck(self, pod: Pod) -> Staying:
        guards = self._scene.guards.against(pod)
        closed = [guard for guard in guards if guard.allowed <= 0]
        if _too_many(guards):
            why = "more than one PodDisruptionBudget is over it, and evictions support only one"
            remedy = "let only one of them select the pod"
        else:
            why = "; ".join(f"{guard.name} has nothing left: {guard.needs}" for guard in closed)
            remedy = "make more pods available first (add replicas, repair those that are down), or raise the budget"
        return Staying(
            pod=pod.metadata.name,
            namespace=pod.metadata.namespace,
            why=why,
            budgets=tuple(guard.name for guard in closed),
            remedy=remedy,
        )


_FIRST_START = 60.0
"""Seconds, beyond the usual, after which a pod that is not ready does not look as if it only needed time."""


def _is_starting(pod: Pod, scene: Scene) -> bool:
    """It needs nothing but time until it is ready, as far as can be told."""
    if not is_active(pod) or is_ready(pod) or not pod.spec.node_name:
        return False
    made = pod.metadata.creation_timestamp
    times = scene.times
    if made is None or (scene.guards.now - made).total_seconds() > _FIRST_START + times.start + times.ready:
        return False
    return not any(status.restart_count or _is_failing(pod, status) for status in pod.status.container_statuses)


def _is_failing(pod: Pod, status: ContainerStatus) -> bool:
    waiting = status.state.waiting
    return waiting is not None and waiting.reason not in GOING_WELL and not waits_for_turn(pod, status)


def _too_many(guards: Iterable[Guard]) -> bool:
    return sum(guard.name.startswith("poddisruptionbudget/") for guard in guards) > 1


def _next_try(moment: float) -> float:
    return math.ceil(moment / RETRY) * RETRY


def _by_node(pods: Iterable[Pod]) -> Mapping[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name and is_active(pod):
            found.setdefault(pod.spec.node_name, []).append(pod)
    return found


def _owner(pod: Pod) -> str:
    owner = controller_of(pod)
    return f"{owner.kind}/{owner.name}" if owner is not None else ""


def _left_alone(pod: Pod, scene: Scene) -> Staying | None:
    owner = controller_of(pod)
    why = ""
    if _MIRROR in pod.metadata.annotations:
        why = "a static pod of the node"
    elif pod.status.phase in FINISHED:
        why = ""
    elif owner is not None and owner.kind == _DAEMON and not _is_strange_daemon(pod) and not _is_forlorn(pod, scene):
        why = f"of DaemonSet {owner.name}: it would come back at once"
    return Staying(pod=pod.metadata.name, namespace=pod.metadata.namespace, why=why) if why else None


def _is_strange_daemon(pod: Pod) -> bool:
    """Of a DaemonSet of another group than Kubernetes' own: kubectl evicts it like any other pod."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == _DAEMON and not owner.api_version.startswith("apps/")


def _is_forlorn(pod: Pod, scene: Scene) -> bool:
    """Of a DaemonSet of Kubernetes that is gone: kubectl evicts it by force only."""
    owner = controller_of(pod)
    if owner is None or owner.kind != _DAEMON or _is_strange_daemon(pod) or scene.daemon_sets is None:
        return False
    return (pod.metadata.namespace, owner.name) not in scene.daemon_sets


def _flags(going: Iterable[Pod], untouched: Sequence[Staying], scene: Scene) -> Iterable[str]:
    """Finished pods need none."""
    if any(stay.why.startswith("of DaemonSet") for stay in untouched):
        yield "--ignore-daemonsets"
    active = [pod for pod in going if pod.status.phase not in FINISHED]
    if any(pod.metadata.uid in scene.local_data for pod in active):
        yield "--delete-emptydir-data"
    if any(controller_of(pod) is None or _is_forlorn(pod, scene) for pod in active):
        yield "--force"
