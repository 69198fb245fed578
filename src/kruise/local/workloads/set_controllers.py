"""How the controllers of StatefulSets and DaemonSets are wired: what is in their snapshots, which changes matter.

Each spec's name is the component of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kruise.api.meta import Key, key_of
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.daemon_pods import LONGEST_DELAY, Verdict, verdict_on
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.ordinals import ordinal_of, parent_and_ordinal
from kruise.api.native.pod import PODS, Pod
from kruise.local.storage_binding.objects import CLAIMS, Claim
from kruise.local.workloads import daemonset, stateful_claims, stateful_members, statefulset
from kruise.local.workloads.objects import DAEMON_SETS, STATEFUL_SETS, DaemonSet, StatefulSet
from kruise.local.workloads.pods import matcher
from kruise.local.workloads.sources import pods_of
from kruise.machinery.delays import KeptDelays
from kruise.machinery.plan import Conclusion, Outcomes, Plan
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, no_keys, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.workloads.shared.adoption import ADOPTERS, ORPHAN_INDEX, ORPHANS, wanting
from kruise.workloads.shared.node_keys import node_keys

STATEFUL_SET_CONTROLLER = "statefulset-controller"
DAEMON_SET_CONTROLLER = "daemonset-controller"


# StatefulSets


def stateful_set_spec() -> ControllerSpec[statefulset.Snapshot]:
    return ControllerSpec(
        name=STATEFUL_SET_CONTROLLER,
        subject=STATEFUL_SETS,
        sources=(
            Source(Watched(STATEFUL_SETS, selectors=ADOPTERS), own_key),
            Source(Watched(PODS, indexes={**OWNER_INDEX, **ORPHAN_INDEX}), pods_of(STATEFUL_SETS)),
            Source(CONTROLLER_REVISIONS, no_keys),
            Source(CLAIMS, _claim_keys),
        ),
        snapshot=_stateful_set_snapshot,
        decide=statefulset.decide,
        conclude=statefulset.conclude,
        snapshot_type=statefulset.Snapshot,
        workers=5,
    )


def _claim_keys(old: Claim | None, new: Claim | None, stores: Stores) -> Iterable[Key]:
    """Only a claim that is gone matters: its pod may be made now, or waits for another one."""
    if old is None or new is not None:
        return
    stem, _ = parent_and_ordinal(old.metadata.name)
    for found in stores.store(STATEFUL_SETS).list(old.metadata.namespace):
        if any(f"{item.metadata.name}-{found.metadata.name}" == stem for item in found.spec.volume_claim_templates):
            yield key_of(found)


def _stateful_set_snapshot(view: View, key: Key) -> statefulset.Snapshot | None:
    found: StatefulSet | None = view.store(STATEFUL_SETS).get(*key)
    if found is None:
        return None
    pods, orphans, deleted = _pods_of(view, found)
    return statefulset.Snapshot(
        stateful_set=found,
        pods=pods,
        orphans=orphans,
        revisions=view.store(CONTROLLER_REVISIONS).list(key.namespace),
        claims=_claims(view, found, (*pods, *orphans)),
        deleted=deleted,
        now=view.now,
    )


def _pods_of(view: View, workload: StatefulSet | DaemonSet) -> tuple[tuple[Pod, ...], tuple[Pod, ...], tuple[str, ...]]:
    """Its pods, those that it may adopt, and the uids of the former that are being deleted."""
    store = view.store(PODS)
    pods = store.by_index(OWNER, workload.metadata.uid)
    matches = matcher(workload.spec.selector)
    orphans = (pod for pod in store.by_index(ORPHANS, workload.metadata.namespace) if matches(pod.metadata.labels))
    return pods, tuple(orphans), tuple(pod.metadata.uid for pod in pods if store.is_terminating(pod))


def _claims(view: View, stateful_set: StatefulSet, pods: Iterable[Pod]) -> tuple[Claim, ...]:
    if not stateful_set.spec.volume_claim_templates:
        return ()
    there = {ordinal for pod in pods if (ordinal := ordinal_of(pod.metadata.name)) is not None}
    store, namespace = view.store(CLAIMS), stateful_set.metadata.namespace
    wanted = sorted(there.union(stateful_members.ordinals(stateful_set)))
    names = (name for ordinal in wanted for name in stateful_claims.names(stateful_set, ordinal))
    return tuple(claim for name in names if (claim := store.get(namespace, name)) is not None)


# DaemonSets


def _generation(daemon_set: DaemonSet) -> tuple[str, int]:
    return daemon_set.metadata.uid, daemon_set.status.observed_generation


def daemon_set_spec() -> ControllerSpec[daemonset.Snapshot]:
    failures = KeptDelays(LONGEST_DELAY)

    def snapshot(view: View, key: Key) -> daemonset.Snapshot | None:
        found: DaemonSet | None = view.store(DAEMON_SETS).get(*key)
        if found is None:
            return None
        pods, orphans, deleted = _pods_of(view, found)
        return daemonset.Snapshot(
            daemon_set=found,
            pods=pods,
            orphans=orphans,
            nodes=view.store(NODES).list(),
            revisions=view.store(CONTROLLER_REVISIONS).list(key.namespace),
            deleted=deleted,
            delays=failures.of(_generation(found)),
            now=view.now,
            seed=view.seed,
        )

    def conclude(seen: daemonset.Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if plan.memo is not None:
            failures.note(_generation(seen.daemon_set), plan.memo_as(daemonset.Memo).delays, seen.now)
        return daemonset.conclude(seen, plan, outcomes)

    return ControllerSpec(
        name=DAEMON_SET_CONTROLLER,
        subject=DAEMON_SETS,
        sources=(
            Source(Watched(DAEMON_SETS, selectors=ADOPTERS), own_key),
            Source(Watched(PODS, indexes={**OWNER_INDEX, **ORPHAN_INDEX}), pods_of(DAEMON_SETS)),
            Source(CONTROLLER_REVISIONS, _revision_keys()),
            Source(NODES, node_keys(DAEMON_SETS, _meaning)),
        ),
        snapshot=snapshot,
        decide=daemonset.decide,
        conclude=conclude,
        snapshot_type=daemonset.Snapshot,
        workers=5,
    )


def _revision_keys() -> Callable[[ControllerRevision | None, ControllerRevision | None, Stores], Iterable[Key]]:
    of_owner, wanted_by = owner_keys(DAEMON_SETS), wanting(DAEMON_SETS)

    def keys(old: ControllerRevision | None, new: ControllerRevision | None, stores: Stores) -> Iterable[Key]:
        yield from of_owner(old, new, stores)
        yield from wanted_by(new, stores)

    return keys


def _meaning(daemon_set: DaemonSet, node: Node | None) -> Verdict | None:
    return verdict_on(daemon_set.spec.template, node) if node is not None else None
