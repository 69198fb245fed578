"""The four kinds of workloads that a subset may be, and a child as far as decisions read it (UD-49, UD-56)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.shared import ON_DELETE
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED_STATEFUL_SETS
from kruise.api.apps.statefulset import StatefulSet
from kruise.api.meta import controller_of
from kruise.api.native.apps import DEPLOYMENTS, STATEFUL_SETS, Workload
from kruise.api.native.pod import Pod, is_active, is_ready
from kruise.api.native.replica_sets import deployment_of
from kruise.api.resource import Resource
from kruise.machinery import codec, intorpercent
from kruise.machinery.documents import value_at
from kruise.machinery.plan import Target
from kruise.spread.uniteddeployment import keys

Json = dict[str, Any]
ChildObject = Workload | CloneSet | StatefulSet

_ROLLING_TYPES = ("", "RollingUpdate")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ChildKind:
    """What is special about one of the kinds."""

    member: str
    """Of `spec.template`."""
    resource: Resource[Any]
    word: str
    """In events."""
    partition: Callable[[Any, tuple[Pod, ...], str], int]
    """How many pods a child keeps at an old template; its pods, and its revision."""
    put_partition: Callable[[Json, int], None]
    """Into the spec of a child."""
    strategy: tuple[str, ...] = ()
    """Where the spec has maxUnavailable, of kinds whose stuck pods may be kept."""
    max_unavailable: str = ""
    """What it is where nobody says it."""
    max_surge: str = ""
    """The same of maxSurge."""
    rounds_up: bool = False
    """A percentage of maxUnavailable, where there is no surge."""
    rolls_in_order: bool = False
    """Its controller waits for a pod that does not get ready (UD-82)."""

    def __str__(self) -> str:
        return self.word

    def unavailable(self, spec: Json, pods: int) -> int:
        """How many of so many pods a spec lets an update take down."""
        rolling = value_at(spec, self.strategy[:-1], {})
        surge = _amount(rolling.get("maxSurge", self.max_surge), pods, round_up=True)
        allowed = rolling.get(self.strategy[-1], self.max_unavailable)
        return max(_amount(allowed, pods, round_up=self.rounds_up and not surge), 0 if surge else 1)


def _amount(given: Any, pods: int, *, round_up: bool) -> int:
    try:
        return max(intorpercent.scaled(given, pods, round_up=round_up), 0)
    except intorpercent.IntOrPercentError:
        return 0


def _stateful(child: Any, pods: tuple[Pod, ...], revision: str) -> int:
    strategy = child.spec.update_strategy
    if strategy.type == ON_DELETE:
        return sum(pod.metadata.labels.get(keys.REVISION) != revision for pod in pods)
    rolling = strategy.rolling_update
    return (rolling.partition if rolling is not None else None) or 0


def _cloned(child: CloneSet, pods: tuple[Pod, ...], revision: str) -> int:
    rolling = child.spec.update_strategy.rolling_update
    if rolling is None or rolling.partition is None:
        return 0
    try:
        return intorpercent.scaled(rolling.partition, size_of(child), round_up=True)
    except intorpercent.IntOrPercentError:
        return 0


def _put_stateful(spec: Json, partition: int) -> None:
    strategy = dict(spec.get("updateStrategy") or {})
    if strategy.get("type", "") not in _ROLLING_TYPES:
        return
    strategy["type"] = "RollingUpdate"
    strategy["rollingUpdate"] = {**(strategy.get("rollingUpdate") or {}), "partition": partition}
    spec["updateStrategy"] = strategy


def _put_cloned(spec: Json, partition: int) -> None:
    strategy = dict(spec.get("updateStrategy") or {})
    strategy["rollingUpdate"] = {**(strategy.get("rollingUpdate") or {}), "partition": partition}
    spec["updateStrategy"] = strategy


STATEFUL = ChildKind(
    member="statefulSetTemplate",
    resource=STATEFUL_SETS,
    word="StatefulSet",
    partition=_stateful,
    put_partition=_put_stateful,
    rolls_in_order=True,
)
ADVANCED = ChildKind(
    member="advancedStatefulSetTemplate",
    resource=ADVANCED_STATEFUL_SETS,
    word="AdvancedStatefulSet",
    partition=_stateful,
    put_partition=_put_stateful,
)
CLONES = ChildKind(
    member="cloneSetTemplate",
    resource=CLONE_SETS,
    word="CloneSet",
    partition=_cloned,
    put_partition=_put_cloned,
    strategy=("updateStrategy", "rollingUpdate", "maxUnavailable"),
    max_unavailable="20%",
    max_surge="0%",
    rounds_up=True,
)
DEPLOYED = ChildKind(
    member="deploymentTemplate",
    resource=DEPLOYMENTS,
    word="Deployment",
    partition=lambda child, pods, revision: 0,
    put_partition=lambda spec, partition: None,
    strategy=("strategy", "rollingUpdate", "maxUnavailable"),
    max_unavailable="25%",
    max_surge="25%",
)
KINDS = (STATEFUL, ADVANCED, CLONES, DEPLOYED)


def kind_of(template: Mapping[str, Any]) -> ChildKind | None:
    """The kind that a template is of; None where it names none, or several."""
    found = [kind for kind in KINDS if isinstance(template.get(kind.member), dict)]
    return found[0] if len(found) == 1 else None


def size_of(child: Any) -> int:
    replicas = child.spec.replicas
    return 1 if replicas is None else replicas


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """The workload of a subset."""

    kind: ChildKind
    object: Any
    pods: tuple[Pod, ...] = ()
    """Those that are active."""
    revision: str = ""
    """Of the present template of the UnitedDeployment."""

    @property
    def name(self) -> str:
        return str(self.object.metadata.name)

    @property
    def target(self) -> Target:
        return Target.of(self.kind.resource, self.object)

    @property
    def subset(self) -> str:
        """By its selector, which nobody can change: a label that was edited by hand must not cost it its pods. What was
        adopted may have only the label (UD-48)."""
        selector = self.object.spec.selector
        selected = selector.match_labels.get(keys.SUBSET) if selector is not None else None
        return selected or self.label

    @property
    def label(self) -> str:
        return str(self.object.metadata.labels.get(keys.SUBSET, ""))

    @property
    def worn_revision(self) -> str:
        return str(self.object.metadata.labels.get(keys.REVISION, ""))

    @property
    def size(self) -> int:
        return size_of(self.object)

    @property
    def replicas(self) -> int:
        return int(self.object.status.replicas)

    @property
    def ready(self) -> int:
        return int(self.object.status.ready_replicas)

    @property
    def partition(self) -> int:
        return self.kind.partition(self.object, self.pods, self.worn_revision)

    @property
    def patch(self) -> str | None:
        found: str | None = self.object.metadata.annotations.get(keys.PATCH)
        return found

    @property
    def is_leaving(self) -> bool:
        return self.object.metadata.deletion_timestamp is not None

    @property
    def updated(self) -> int:
        return sum(is_new(pod, self.revision) for pod in self.pods)

    @property
    def updated_ready(self) -> int:
        return sum(is_new(pod, self.revision) and is_ready(pod) for pod in self.pods)

    def spec(self) -> Json:
        """As far as it is read: of Kubernetes' own kinds that is not everything."""
        found: Json = codec.decode(codec.encode(self.object.spec), dict[str, Any])
        return found


def is_new(pod: Pod, revision: str) -> bool:
    return pod.metadata.labels.get(keys.REVISION) == revision


def active(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if is_active(pod))


def child_of(pod: Pod) -> tuple[str, str] | None:
    """Kind and name of the child that a pod of a subset belongs to; None: it is of no subset."""
    if keys.SUBSET not in pod.metadata.labels:
        return None
    owner = controller_of(pod)
    if owner is None:
        return None
    group = owner.api_version.rpartition("/")[0]
    if (group, owner.kind) != ("apps", "ReplicaSet"):
        return f"{group}/{owner.kind}", owner.name
    deployment = deployment_of(pod)
    return ("apps/Deployment", deployment) if deployment else None


def index_value(namespace: str, kind: ChildKind, name: str) -> str:
    return f"{namespace}/{kind.resource.group}/{kind.resource.kind}/{name}"


def by_child(pod: Pod) -> tuple[str, ...]:
    """Index of the pods of subsets, by their child."""
    found = child_of(pod)
    return (f"{pod.metadata.namespace}/{found[0]}/{found[1]}",) if found is not None else ()
