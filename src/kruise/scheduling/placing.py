"""Where a pod goes: filters, then scores (pure).

`Cluster` is a working copy: nodes with what is free on them, as pods come and go. Pods of one kind (the same needs,
labels and owner) are looked at together: what labels and taints say about the nodes is worked out once, and only what
changes from pod to pod is asked again. `place` is the same for a single pod.

Scores follow kube-scheduler's weights: taints to avoid (3), preferred affinity to nodes and to pods (2 each), an even
spread as constraints ask for, or else of an owner's pods over zones and nodes (2), free CPU and memory (1). Equal nodes
are taken by name, so a decision is the same each time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kruise.api.meta import controller_of
from kruise.api.native.node_selection import selected
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.api.native.taints import NO_EXECUTE, NO_SCHEDULE, untolerated
from kruise.machinery.codec import canonical
from kruise.scheduling import messages
from kruise.scheduling import nodes as rules
from kruise.scheduling.company import Company, Wish, has_wishes, wishes_of
from kruise.scheduling.exclusion import Exclusions, Namespaces, Term, terms_of
from kruise.scheduling.messages import Tally, Unschedulable
from kruise.scheduling.requests import (
    CPU,
    MEMORY,
    PODS,
    Amounts,
    HostPort,
    amounts,
    host_ports,
    ports_conflict,
    requests,
    weight,
)

ZONE = "topology.kubernetes.io/zone"
_TAINTS, _AFFINITY, _SPREAD = 3, 2, 2


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
    node: str
    waiting: tuple[str, ...] = ()
    """Names of the claims that must be bound for this node before the pod can be."""


class Claims(Protocol):
    """What the claims of one pod mean for its place. Volumes are the business of whoever knows them."""

    @property
    def problem(self) -> str:
        """Why the pod can go nowhere at all; empty: it can."""

    @property
    def waiting_names(self) -> tuple[str, ...]:
        """Claims that must be bound for the chosen node before the pod can be."""

    @property
    def chosen_node(self) -> str:
        """Where they are being bound already."""

    def refusal(self, node: Node) -> str:
        """Why the claims cannot be used on a node; empty where they can."""


ClaimsOf = Callable[[Pod], Claims | None]


def no_claims(pod: Pod) -> None:
    """Claims are not looked at."""


@dataclasses.dataclass(frozen=True, slots=True)
class Load:
    """What a pod takes on its node."""

    amounts: Amounts
    cpu: int
    memory: int
    ports: tuple[HostPort, ...]

    @classmethod
    def of(cls, pod: Pod) -> Load:
        return cls(requests(pod), *weight(pod), host_ports(pod))


class Space:
    """A node and what is left of it."""

    __slots__ = (
        "allocatable",
        "count",
        "cpu",
        "free",
        "labels",
        "limit",
        "memory",
        "name",
        "node",
        "ports",
        "stamp",
        "zone",
    )

    def __init__(self, node: Node) -> None:
        self.node = node
        self.name = node.metadata.name
        self.labels = node.metadata.labels
        self.zone = self.labels.get(ZONE, "")
        self.allocatable = amounts(node.status.allocatable or node.status.capacity)
        self.free = dict(self.allocatable)
        self.limit = self.allocatable.get(PODS, 0)
        self.count = 0
        self.cpu = 0
        self.memory = 0
        self.ports: list[HostPort] = []
        self.stamp = 0
        """Another one after each change."""

    def take(self, load: Load) -> None:
        free = self.free
        for name, amount in load.amounts.items():
            free[name] = free.get(name, 0) - amount
        self.count += 1
        self.cpu += load.cpu
        self.memory += load.memory
        self.ports += load.ports
        self.stamp += 1

    def give_back(self, load: Load) -> None:
        free = self.free
        for name, amount in load.amounts.items():
            free[name] = free.get(name, 0) + amount
        self.count -= 1
        self.cpu -= load.cpu
        self.memory -= load.memory
        for port in load.ports:
            self.ports.remove(port)
        self.stamp += 1


@dataclasses.dataclass(slots=True)
class _Spread:
    """The pods of one owner, by node and by zone."""

    by_node: dict[str, int] = dataclasses.field(default_factory=dict)
    by_zone: dict[str, int] = dataclasses.field(default_factory=dict)

    def add(self, space: Space) -> None:
        self.by_node[space.name] = self.by_node.get(space.name, 0) + 1
        self.by_zone[space.zone] = self.by_zone.get(space.zone, 0) + 1

    def remove(self, space: Space) -> None:
        self.by_node[space.name] -= 1
        self.by_zone[space.zone] -= 1


@dataclasses.dataclass(slots=True)
class _Kind:
    """Pods that are alike, and what is known about the nodes for them."""

    load: Load
    exclusions: Exclusions
    candidates: list[tuple[Space, int]]
    """Nodes that labels and taints allow, with the part of the score that does not change."""
    tally: Tally
    """Why the others are out."""
    spread: _Spread
    company: Company | None = None
    """What they ask of the pods around them; None: nothing."""
    scores: list[float | None] = dataclasses.field(init=False)
    """For each candidate its score but for the spread, None where the pod does not fit: as of the space's stamp."""
    stamps: list[int] = dataclasses.field(init=False)
    refused: Unschedulable | None = None
    """Once one of them fits nowhere, no other does, until a pod leaves: placements only make it worse, unless they ask
    for company."""

    def __post_init__(self) -> None:
        self.scores = [None] * len(self.candidates)
        self.stamps = [-1] * len(self.candidates)


class Cluster:
    def __init__(
        self,
        nodes: Iterable[Node],
        pods_by_node: Mapping[str, Sequence[Pod]],
        *,
        claims_of: ClaimsOf = no_claims,
        namespaces: Namespaces | None = None,
        load_of: Callable[[Pod], Load] = Load.of,
    ) -> None:
        self.spaces = sorted((Space(node) for node in nodes), key=lambda space: space.name)
        self._by_name = {space.name: space for space in self.spaces}
        self._claims_of = claims_of
        self._namespaces = namespaces or {}
        self._load_of = load_of
        self._placed: dict[str, tuple[Pod, Space]] = {}
        """By uid."""
        self._strict: dict[str, tuple[Term, ...]] = {}
        """The terms of pods with anti-affinity of their own, by uid."""
        self._wishing: dict[str, tuple[Wish, ...]] = {}
        """The preferred terms of pods that are there, by uid."""
        self._asked_labels: dict[str, None] = {}
        """The labels that the terms of pods with anti-affinity name."""
        self._kinds: dict[bytes, _Kind] = {}
        self._choices: dict[bytes, tuple[list[tuple[Space, int]], Tally]] = {}
        self._spreads: dict[str, _Spread] = {}
        for space in self.spaces:
            for pod in pods_by_node.get(space.name, ()):
                self._put(pod, space)

    def _put(self, pod: Pod, space: Space) -> tuple[Term, ...]:
        space.take(self._load_of(pod))
        self._placed[pod.metadata.uid] = (pod, space)
        owner = _owner(pod)
        if owner:
            self._spread(owner).add(space)
        if pod.spec.affinity is None:
            return ()
        terms = terms_of(pod, self._namespaces)
        if terms:
            self._strict[pod.metadata.uid] = terms
            self._ask_for({item.key for term in terms for item in term.selector.requirements})
        if wishes := wishes_of(pod, self._namespaces):
            if not self._wishing:
                self._kinds.clear()  # nobody has asked for company so far
            self._wishing[pod.metadata.uid] = wishes
            self._ask_for({item.key for wish in wishes for item in wish.term.selector.requirements})
        return terms

    def _ask_for(self, labels: set[str]) -> None:
        if not labels <= self._asked_labels.keys():
            self._asked_labels |= dict.fromkeys(sorted(labels))
            self._kinds.clear()  # what was alike may differ now

    def assume(self, pod: Pod, node: str) -> None:
        """Count the pod as being on the node."""
        space = self._by_name[node]
        terms = self._put(pod, space)
        wishes = self._wishing.get(pod.metadata.uid, ())
        for kind in self._kinds.values():
            if terms or kind.exclusions.has_terms:
                kind.exclusions.note(pod, terms, space.labels)
            if kind.company is not None:
                kind.company.note(pod, wishes, space.name, space.labels)
                kind.refused = None

    def leave(self, uid: str) -> None:
        """The pod is on its node no more. One that is not known took nothing."""
        pod, space = self._placed.pop(uid, (None, None))
        if pod is None or space is None:
            return
        space.give_back(self._load_of(pod))
        owner = _owner(pod)
        if owner:
            self._spread(owner).remove(space)
        terms, wishes = self._strict.pop(uid, ()), self._wishing.pop(uid, ())
        for kind in self._kinds.values():
            kind.refused = None
            if terms or kind.exclusions.has_terms:
                kind.exclusions.forget(pod, terms, space.labels)
            if kind.company is not None:
                kind.company.note(pod, wishes, space.name, space.labels, -1)

    def _spread(self, owner: str) -> _Spread:
        found = self._spreads.get(owner)
        if found is None:
            found = self._spreads[owner] = _Spread()
        return found

    def place(self, pod: Pod) -> Placement | Unschedulable:
        if not self.spaces:
            return Unschedulable(nodes=0)
        claims = self._claims_of(pod)
        kind = self._kind(pod)
        never = pod.spec.preemption_policy == "Never"
        if claims is not None and claims.problem:
            return Unschedulable(nodes=len(self.spaces), problem=claims.problem, never_preempts=never)
        if claims is None and kind.refused is not None:
            return kind.refused
        space = self._best(kind, claims)
        if space is not None:
            return Placement(space.name, claims.waiting_names if claims is not None else ())
        tally = self._reasons(kind, claims)
        refused = Unschedulable(
            nodes=len(self.spaces),
            reasons=tally.reasons,
            resolvable=tally.resolvable,
            never_preempts=never,
        )
        if claims is None:
            kind.refused = refused
        return refused

    def refusals(self, pod: Pod, node: str) -> list[str] | None:
        """Why a pod that names its node itself does not fit there: what its kubelet asks, which no scheduler has asked
        before. None: there is no such node."""
        space = self._by_name.get(node)
        if space is None:
            return None
        load = self._load_of(pod)
        found = [] if selected(pod.spec, space.node) else [messages.NOT_SELECTED]
        if load.ports and ports_conflict(load.ports, space.ports):
            found.append(messages.PORTS_TAKEN)
        return found + self._shortages(load, space)

    # Kinds of pods

    def _kind(self, pod: Pod) -> _Kind:
        key = self._likeness(pod)
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = self._new_kind(pod)
        return found

    def _likeness(self, pod: Pod) -> bytes:
        """Equal for pods that the scheduler need not tell apart: of the labels only those count that anti-affinity asks
        for. Pods of one owner may each have a label of their own."""
        spec, labels = pod.spec, pod.metadata.labels
        return canonical(
            (
                pod.metadata.namespace,
                _owner(pod),
                labels if has_wishes(pod) else [labels.get(name) for name in self._asked_labels],
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                spec.preemption_policy,
                spec.topology_spread_constraints,
            )
        )

    def _new_kind(self, pod: Pod) -> _Kind:
        exclusions = Exclusions(pod, terms_of(pod, self._namespaces))
        concerned = self._placed if exclusions.has_terms else self._strict
        for uid in concerned:
            other, space = self._placed[uid]
            exclusions.note(other, self._strict.get(uid, ()), space.labels)
        spec = pod.spec
        key = canonical((spec.node_selector, spec.affinity, spec.tolerations))
        if key not in self._choices:
            self._choices[key] = self._allowed(pod)
        owner = _owner(pod)
        # Those that say themselves how to be spread are not spread by default.
        is_default = owner and not spec.topology_spread_constraints
        spread = self._spread(owner) if is_default else _Spread()
        return _Kind(self._load_of(pod), exclusions, *self._choices[key], spread, self._company(pod))

    def _company(self, pod: Pod) -> Company | None:
        if not has_wishes(pod) and not self._wishing:
            return None
        company = Company(pod, self._namespaces, [space.node for space in self.spaces])
        for uid, (other, space) in self._placed.items():
            company.note(other, self._wishing.get(uid, ()), space.name, space.labels)
        return company

    def _allowed(self, pod: Pod) -> tuple[list[tuple[Space, int]], Tally]:
        spec, tally = pod.spec, Tally()
        named = rules.named_only(pod)
        ignores_cordon = rules.accepts_cordon(spec)
        allowed: list[Space] = []
        for space in self.spaces:
            node = space.node
            if named is not None and space.name not in named:
                tally.add(messages.NOT_NAMED)
            elif node.spec.unschedulable and not ignores_cordon:
                tally.add(messages.CORDONED)
            elif untolerated(node.spec.taints, spec.tolerations, (NO_SCHEDULE, NO_EXECUTE)):
                tally.add(messages.TAINTED)
            elif not selected(spec, node):
                tally.add(messages.NOT_SELECTED)
            else:
                allowed.append(space)
        wishes = [rules.preference(spec, space.node) for space in allowed]
        doubts = [rules.unloved_taints(spec, space.node) for space in allowed]
        most_wished, most_doubted = max(wishes, default=0) or 1, max(doubts, default=0) or 1
        scored = [
            (space, _AFFINITY * (100 * wish // most_wished) - _TAINTS * (100 * doubt // most_doubted))
            for space, wish, doubt in zip(allowed, wishes, doubts, strict=True)
        ]
        return scored, tally

    # One pod

    def _best(self, kind: _Kind, claims: Claims | None) -> Space | None:
        load, exclusions = kind.load, kind.exclusions
        wanted = [(name, amount) for name, amount in load.amounts.items() if amount > 0]
        excluded = bool(exclusions.own or exclusions.theirs)
        by_node, by_zone = kind.spread.by_node, kind.spread.by_zone
        per_node = 100 * _SPREAD / (2 * (1 + max(by_node.values(), default=0)))
        per_zone = 100 * _SPREAD / (2 * (1 + max(by_zone.values(), default=0)))
        chosen_already = claims.chosen_node if claims is not None else ""
        best: Space | None = None
        best_score = 0.0
        scores, stamps = kind.scores, kind.stamps
        company = kind.company
        wished = company.scores([space.labels for space, _ in kind.candidates]) if company is not None else None
        for index, (space, fixed) in enumerate(kind.candidates):
            if stamps[index] != space.stamp:
                stamps[index] = space.stamp
                scores[index] = fixed + _idle(space, load) if _fits(space, load, wanted) else None
            score = scores[index]
            if score is None:
                continue
            if excluded and (exclusions.closed_by_own(space.labels) or exclusions.closed_by_theirs(space.labels)):
                continue
            if company is not None and wished is not None:
                if company.refusal(space.labels)[0]:
                    continue
                score += wished[index]
            if claims is not None and claims.refusal(space.node):
                continue
            if space.name == chosen_already:
                return space
            if by_node:
                score -= per_node * by_node.get(space.name, 0) + per_zone * by_zone.get(space.zone, 0)
            if best is None or score > best_score:
                best, best_score = space, score
        return best

    def _reasons(self, kind: _Kind, claims: Claims | None) -> Tally:
        """What rules out each node, in the order in which kube-scheduler asks."""
        tally = Tally()
        tally.reasons.update(kind.tally.reasons)
        for space, _ in kind.candidates:
            if kind.load.ports and ports_conflict(kind.load.ports, space.ports):
                tally.add(messages.PORTS_TAKEN, resolvable=True)
                continue
            short = self._shortages(kind.load, space)
            if short:
                hopeless = any(amount > space.allocatable.get(name, 0) for name, amount in kind.load.amounts.items())
                tally.add(*short, resolvable=not hopeless)
                continue
            because = claims.refusal(space.node) if claims is not None else ""
            alone, helps = kind.company.refusal(space.labels) if kind.company is not None else ("", True)
            if because:
                tally.add(because)
            elif alone:
                tally.add(alone, resolvable=helps)
            elif kind.exclusions.closed_by_own(space.labels):
                tally.add(messages.OWN_ANTI_AFFINITY, resolvable=True)
            elif kind.exclusions.closed_by_theirs(space.labels):
                tally.add(messages.THEIR_ANTI_AFFINITY, resolvable=True)
        return tally

    def _shortages(self, load: Load, space: Space) -> list[str]:
        short = [messages.TOO_MANY_PODS] if space.count >= space.limit else []
        return short + [
            messages.insufficient(name)
            for name, amount in load.amounts.items()
            if amount > 0 and amount > space.free.get(name, 0)
        ]


def _fits(space: Space, load: Load, wanted: Sequence[tuple[str, int]]) -> bool:
    if space.count >= space.limit:
        return False
    free = space.free
    for name, amount in wanted:
        if amount > free.get(name, 0):
            return False
    return not (load.ports and ports_conflict(load.ports, space.ports))


def _idle(space: Space, load: Load) -> float:
    """How free the node is with the pod on it: the mean of CPU and memory, in percent."""
    total_cpu, total_memory = space.allocatable.get(CPU, 0), space.allocatable.get(MEMORY, 0)
    cpu = max(0, total_cpu - space.cpu - load.cpu) * 100 / total_cpu if total_cpu else 0
    memory = max(0, total_memory - space.memory - load.memory) * 100 / total_memory if total_memory else 0
    return (cpu + memory) / 2


def _owner(pod: Pod) -> str:
    reference = controller_of(pod)
    return reference.uid if reference is not None else ""


def place(
    pod: Pod,
    nodes: Iterable[Node],
    pods_by_node: Mapping[str, Sequence[Pod]],
    *,
    claims_of: ClaimsOf = no_claims,
    namespaces: Namespaces | None = None,
) -> Placement | Unschedulable:
    """The node for one pod, or why there is none."""
    return Cluster(nodes, pods_by_node, claims_of=claims_of, namespaces=namespaces).place(pod)
