"""How a WorkloadSpread is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kruise.admission.chain import PodStep
from kruise.admission.validating_chain import PodValidationStep
from kruise.api.apps import statefulset as advanced
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.definitions.workloadspread import DEFINITION
from kruise.api.apps.shared import GROUP
from kruise.api.apps.workloadspread import UNLIMITED, WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.meta import Key, Object, controller_of, key_of
from kruise.api.native.apps import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod, condition, is_active, is_ready
from kruise.api.native.replica_sets import TEMPLATE_HASH
from kruise.api.resource import Resource
from kruise.feature import Feature, PodMutation, PodValidation, Settings
from kruise.flags import FeatureFlag, Flag, text
from kruise.machinery.selectors import parse
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, no_keys, own_key
from kruise.machinery.watched import Watched
from kruise.spread.workloadspread.admission import CONVERSION, webhooks
from kruise.spread.workloadspread.conclude import conclude, events
from kruise.spread.workloadspread.custom import Asked, asking
from kruise.spread.workloadspread.decide import decide
from kruise.spread.workloadspread.injection import plain
from kruise.spread.workloadspread.matched import mark_of
from kruise.spread.workloadspread.numbers import PathError, limit_of, sum_at
from kruise.spread.workloadspread.pod_admission import NEEDS, WATCHED_REPLICA_SETS, PodSpreading, replicas_of
from kruise.spread.workloadspread.situation import Seen, Snapshot
from kruise.spread.workloadspread.targets import (
    DEPLOYMENT,
    REPLICA_SET,
    TARGET,
    WATCHED_SPREADS,
    Workload,
    index_value,
    owner_of,
    selector_of,
    target_of,
)
from kruise.spread.workloadspread.versions import IGNORED, version_of, versioned_kinds

NAME = "workloadspread-controller"
GATE = "WorkloadSpread"
VERSIONED: FeatureFlag[str] = FeatureFlag(
    "ws-enabled-versioned-status",
    Flag(text, "deployment,replicaset", "WorkloadSpread targets whose pods are counted by version"),
)
_REVISION = "deployment.kubernetes.io/revision"
_RESOURCES: dict[tuple[str, str], Resource[Any]] = {
    ("apps", DEPLOYMENT): DEPLOYMENTS,
    ("apps", REPLICA_SET): REPLICA_SETS,
    ("apps", "StatefulSet"): STATEFUL_SETS,
    (GROUP, "StatefulSet"): advanced.STATEFUL_SETS,
    (GROUP, "CloneSet"): CLONE_SETS,
    ("batch", "Job"): JOBS,
}
_PACE_PER_POD = 100e-6
_MARKED = "workloadspread"
"""Index of the pods by the WorkloadSpread that their mark names."""


def _by_mark(pod: Pod) -> tuple[str, ...]:
    mark = mark_of(pod)
    return (f"{pod.metadata.namespace}/{mark.name}",) if mark is not None else ()


class _Reader:
    """Reads what a pass needs from the stores."""

    def __init__(self, versioned: frozenset[str]) -> None:
        self._versioned = versioned

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        spread = view.store(WORKLOAD_SPREADS).get(*key)
        if spread is None:
            return None
        seen, pods = _target(view, spread)
        pods = _filtered(spread, pods)
        rivals = {pod.metadata.name: rival for pod in pods if (rival := _rival(spread, pod, view))}
        pods = tuple(pod for pod in pods if pod.metadata.name not in rivals) if rivals else pods
        store, nodes = view.store(PODS), view.store(NODES)
        found = {}
        for pod in pods:
            mark = mark_of(pod)
            if pod.spec.node_name and (mark is None or mark.name != key.name or not mark.subset):
                node = nodes.get("", pod.spec.node_name)
                if node is not None:
                    found[pod.spec.node_name] = node
        return Snapshot(
            spread=spread,
            target=seen,
            pods=pods,
            terminating=tuple(
                pod.metadata.name
                for pod in pods
                if pod.metadata.deletion_timestamp is None and store.is_terminating(pod)
            ),
            nodes=found,
            rivals=rivals,
            versioned=tuple(sorted(self._versioned)),
            now=view.now,
        )

    def pod_keys(self, old: Pod | None, new: Pod | None, stores: Stores) -> Iterator[Key]:
        """WS-34: pods that are marked, and what about them counts. Others make nobody look (WS-34a), but for those
        that came before anybody here had heard of their WorkloadSpread: they are taken over once they have a node."""
        marks = [mark_of(pod) if pod is not None else None for pod in (old, new)]
        if marks == [None, None]:
            if old is not None and new is not None and new.spec.node_name and not _is_as_before(old, new):
                yield from (
                    key_of(spread)
                    for spread in _spreads_about(new, stores)
                    if _has_place(spread) and _filtered(spread, (new,))
                )
            return
        if old is not None and new is not None and marks[0] == marks[1] and not self._matters(old, new, stores):
            return
        namespace = (new or old).metadata.namespace  # type: ignore[union-attr]
        yield from dict.fromkeys(Key(namespace, mark.name) for mark in marks if mark is not None)

    def _matters(self, old: Pod, new: Pod, stores: Stores) -> bool:
        if is_active(old) != is_active(new) or self._version(old) != self._version(new):
            return True
        if _owner_uid(old) != _owner_uid(new):
            return True  # a workload that was made anew takes over what the former has left
        if bool(old.spec.node_name) != bool(new.spec.node_name) or _unscheduled(old) != _unscheduled(new):
            return _reschedules(new, stores)
        return is_ready(old) != is_ready(new) and _has_surplus(new, stores)

    def _version(self, pod: Pod) -> str:
        owner = controller_of(pod)
        return version_of(pod.metadata.labels, (owner.kind,) if owner is not None else (), self._versioned)


def _is_as_before(old: Pod, new: Pod) -> bool:
    """For those who take pods over: it has its node as it had, and is the same workload's."""
    return bool(old.spec.node_name) == bool(new.spec.node_name) and _owner_uid(old) == _owner_uid(new)


def _owner_uid(pod: Object) -> str:
    owner = controller_of(pod)
    return owner.uid if owner is not None else ""


def _unscheduled(pod: Pod) -> tuple[str, str]:
    scheduled = condition(pod, "PodScheduled")
    return (scheduled.status, scheduled.reason) if scheduled is not None else ("", "")


def _spread_of(pod: Pod, stores: Stores) -> WorkloadSpread | None:
    mark = mark_of(pod)
    return stores.store(WORKLOAD_SPREADS).get(pod.metadata.namespace, mark.name) if mark is not None else None


def _spread_keys(old: WorkloadSpread | None, new: WorkloadSpread | None, stores: Stores) -> Iterable[Key]:
    """Itself; and where it is no more about pods that bear its mark, the others that are: these are theirs then."""
    yield from own_key(old, new, stores)
    if old is None or not (new is None or _is_leaving(new) > _is_leaving(old) or selector_of(new) != selector_of(old)):
        return
    marked = stores.store(PODS).by_index(_MARKED, f"{old.metadata.namespace}/{old.metadata.name}")
    yield from dict.fromkeys(key_of(spread) for pod in marked for spread in _spreads_about(pod, stores))


def _is_leaving(spread: WorkloadSpread) -> bool:
    return spread.metadata.deletion_timestamp is not None


def _rival(spread: WorkloadSpread, pod: Pod, view: View) -> str:
    """Another WorkloadSpread that is about the pod, too, and whose mark it bears: one of its ReplicaSet, say, beside
    one of its Deployment. Were it taken over, the other one would take it back, for ever."""
    mark = mark_of(pod)
    if mark is None or mark.name == spread.metadata.name or not mark.subset:
        return ""
    other = view.store(WORKLOAD_SPREADS).get(pod.metadata.namespace, mark.name)
    if other is None or _is_leaving(other) or not _filtered(other, (pod,)):
        return ""
    # Of kinds that nobody here watches, it cannot be told whose pods are whose.
    is_about = not target_of(other).is_supported or other in _spreads_about(pod, view)
    return mark.name if is_about else ""


def _spreads_about(pod: Pod, stores: Stores | View) -> Iterator[WorkloadSpread]:
    """Of the pod's workload, whether it bears their mark or not."""
    owner = controller_of(pod)
    if owner is None:
        return
    namespace, store = pod.metadata.namespace, stores.store(WORKLOAD_SPREADS)
    workload = owner_of(owner, namespace)
    yield from store.by_index(TARGET, index_value(workload))
    if (workload.group, workload.kind) != ("apps", REPLICA_SET):
        return
    replica_set = stores.store(REPLICA_SETS).get(namespace, workload.name)
    parent = controller_of(replica_set) if replica_set is not None else None
    if parent is not None:
        yield from store.by_index(TARGET, index_value(owner_of(parent, namespace)))


def _has_place(spread: WorkloadSpread) -> bool:
    """Whether some subset takes another pod, by what was counted last."""
    missing = {element.name: element.missing_replicas for element in spread.status.subset_statuses}
    return any(missing.get(subset.name, UNLIMITED) != 0 for subset in spread.spec.subsets)


def _reschedules(pod: Pod, stores: Stores) -> bool:
    spread = _spread_of(pod, stores)
    return spread is not None and spread.spec.schedule_strategy.critical_seconds > 0


def _has_surplus(pod: Pod, stores: Stores) -> bool:
    """Which pods of a subset are surplus depends on who is ready. Without surplus, nothing does."""
    spread, mark = _spread_of(pod, stores), mark_of(pod)
    if spread is None or mark is None:
        return False
    counts = {element.name: element.replicas for element in spread.status.subset_statuses}
    subset = next((item for item in spread.spec.subsets if item.name == mark.subset), None)
    limit = limit_of(subset, sum(counts.values())) if subset is not None else None
    return limit is not None and counts.get(mark.subset, 0) > limit


# The workload


def _target(view: View, spread: WorkloadSpread) -> tuple[Seen, tuple[Pod, ...]]:
    """WS-38, WS-39."""
    target = target_of(spread)
    resource = _RESOURCES.get((target.group, target.kind))
    if resource is None:
        return _custom(view, spread, target)
    store = view.store(resource)
    found = store.get(target.namespace, target.name)
    if found is None or store.is_terminating(found):
        return Seen(latest_version="", replicas=0), ()
    replicas = replicas_of(found)
    paths = spread.spec.target_filter.replicas_path_list if spread.spec.target_filter is not None else ()
    problem = ""
    if paths:
        try:
            replicas = sum_at(plain(found), paths)
        except PathError as error:
            problem = f"spec.targetFilter.replicasPathList: {error}"
    seen = Seen(exists=True, replicas=replicas, latest_version=_latest(view, target, found), problem=problem)
    return seen, _pods_of(view, target, found)


def _custom(view: View, spread: WorkloadSpread, target: Workload) -> tuple[Seen, tuple[Pod, ...]]:
    """A workload that was asked. Those who look from outside cannot ask: then its pods are those that bear the mark."""
    store = view.store(PODS)
    marked = store.by_index(_MARKED, f"{target.namespace}/{spread.metadata.name}")
    asked = view.outside
    if not isinstance(asked, Asked) or asked.problem:
        return Seen(exists=True, problem=asked.problem if isinstance(asked, Asked) else ""), marked
    if not asked.uid:
        return Seen(latest_version="", replicas=0), ()
    pods = store.by_index(OWNER, asked.uid)
    if not pods and asked.selector:
        selector = parse(asked.selector)
        pods = tuple(pod for pod in store.list(target.namespace) if selector.matches(pod.metadata.labels))
    known = {pod.metadata.uid for pod in pods}
    # Between a workload and its pods there may be others: who was let in for it is its own.
    pods = (*pods, *(pod for pod in marked if pod.metadata.uid not in known))
    return Seen(exists=True, replicas=asked.replicas), pods


def _pods_of(view: View, target: Workload, workload: Any) -> tuple[Pod, ...]:
    pods = view.store(PODS)
    if target.kind != DEPLOYMENT:
        return pods.by_index(OWNER, workload.metadata.uid)
    return tuple(
        pod for replica_set in _replica_sets(view, workload) for pod in pods.by_index(OWNER, replica_set.metadata.uid)
    )


def _replica_sets(view: View, deployment: Any) -> list[Any]:
    found = view.store(REPLICA_SETS).by_index(OWNER, deployment.metadata.uid)
    return [item for item in found if item.metadata.deletion_timestamp is None]


def _latest(view: View, target: Workload, workload: Any) -> str:
    """WS-46. The ReplicaSet that a Deployment has last turned to is that of its highest revision."""
    if target.kind == REPLICA_SET:
        return workload.metadata.labels.get(TEMPLATE_HASH) or IGNORED
    if target.kind != DEPLOYMENT:
        return IGNORED
    newest = max(_replica_sets(view, workload), key=_revision, default=None)
    return (newest.metadata.labels.get(TEMPLATE_HASH) or IGNORED) if newest is not None else ""


def _revision(replica_set: Object) -> tuple[int, str]:
    value = replica_set.metadata.annotations.get(_REVISION, "")
    return int(value) if value.isdecimal() else 0, replica_set.metadata.name


def _filtered(spread: WorkloadSpread, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    selector = selector_of(spread)
    return pods if selector.is_empty else tuple(pod for pod in pods if selector.matches(pod.metadata.labels))


def _workload_keys(resource: Resource[Any]) -> Any:
    """The spreads of a workload that came, went, or wants another number of pods."""

    def keys(old: Any, new: Any, stores: Stores) -> Iterable[Key]:
        if old is not None and new is not None and not _is_other(old, new):
            return ()
        changed = new if new is not None else old
        namespace = changed.metadata.namespace
        workloads = [Workload(namespace, resource.group, resource.kind, changed.metadata.name)]
        owner = controller_of(changed)
        if owner is not None and resource == REPLICA_SETS:
            workloads.append(owner_of(owner, namespace))
        store = stores.store(WORKLOAD_SPREADS)
        return dict.fromkeys(
            key_of(item) for workload in workloads for item in store.by_index(TARGET, index_value(workload))
        )

    return keys


def _is_other(old: Any, new: Any) -> bool:
    if replicas_of(old) != replicas_of(new) or old.metadata.uid != new.metadata.uid:
        return True
    if old.metadata.annotations.get(_REVISION) != new.metadata.annotations.get(_REVISION):
        return True
    if _owner_uid(old) != _owner_uid(new):
        return True  # a ReplicaSet, with its pods
    before, after = (_revisions(item) for item in (old, new))
    return before != after and after[0] != after[1]


def _revisions(workload: Any) -> tuple[str, str]:
    status = workload.status
    return getattr(status, "current_revision", ""), getattr(status, "update_revision", "")


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not settings.gates.get(GATE, True):
        return ()
    reader = _Reader(versioned_kinds(settings.flag(VERSIONED)))
    sources: tuple[Source[Any], ...] = (
        Source(WATCHED_SPREADS, _spread_keys),
        Source(Watched(PODS, indexes={**OWNER_INDEX, _MARKED: _by_mark}), reader.pod_keys),
        Source(DEPLOYMENTS, _workload_keys(DEPLOYMENTS)),
        Source(WATCHED_REPLICA_SETS, _workload_keys(REPLICA_SETS)),
        Source(CLONE_SETS, _workload_keys(CLONE_SETS)),
        Source(JOBS, _workload_keys(JOBS)),
        Source(STATEFUL_SETS, no_keys),
        Source(advanced.STATEFUL_SETS, no_keys),
        Source(NODES, no_keys),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=WORKLOAD_SPREADS,
            sources=sources,
            snapshot=reader.snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            events=events,
            workers=settings.workers_of("workloadspread"),
            outside=asking(settings.own_namespace),
            pace=lambda snapshot: len(snapshot.pods) * _PACE_PER_POD,
        ),
    )


def _mutations(settings: Settings) -> tuple[PodMutation, ...]:
    if not settings.gates.get(GATE, True):
        return ()
    spreading = PodSpreading(versioned_kinds(settings.flag(VERSIONED)), settings.own_namespace)
    return (PodMutation(PodStep.WORKLOAD_SPREAD, spreading.mutate, NEEDS),)


def _validations(settings: Settings) -> tuple[PodValidation, ...]:
    if not settings.gates.get(GATE, True):
        return ()
    spreading = PodSpreading(versioned_kinds(settings.flag(VERSIONED)), settings.own_namespace)
    return (PodValidation(PodValidationStep.WORKLOAD_SPREAD, spreading.judge, (WATCHED_SPREADS,)),)


FEATURE = Feature(
    name="workloadspread",
    flags=(VERSIONED,),
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=webhooks,
    pod_mutations=_mutations,
    pod_validations=_validations,
    conversions=(CONVERSION,),
)
