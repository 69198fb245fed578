"""How the controllers of ReplicaSets, Deployments and Jobs are wired: what is in their snapshots, which changes matter.

Each spec's name is the component of its events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature
from kruise.local.workloads import cronjob, deployment, job, replicaset, rollout
from kruise.local.workloads.objects import CRON_JOBS, DEPLOYMENTS, JOBS, REPLICA_SETS, Deployment, Job, ReplicaSet
from kruise.local.workloads.pods import (
    FINISHED,
    active_pods,
    concerns_owner,
    matcher,
    owner_of,
    restarts,
)
from kruise.local.workloads.set_controllers import daemon_set_spec, stateful_set_spec
from kruise.local.workloads.sources import pods_of
from kruise.machinery.spec import OWNER, OWNER_INDEX, ControllerSpec, Source, Stores, View, own_key, owner_keys
from kruise.machinery.watched import Watched
from kruise.machinery.zones import local_zone
from kruise.workloads.shared.adoption import ADOPTERS, ORPHAN_INDEX, ORPHANS, wanting

REPLICA_SET_CONTROLLER = "replicaset-controller"
DEPLOYMENT_CONTROLLER = "deployment-controller"
JOB_CONTROLLER = "job-controller"
CRON_JOB_CONTROLLER = "cronjob-controller"

JOB_PODS = "job-pods"
"""Index of the pods that Jobs still have to count, by namespace and name of the Job, which may be gone."""


def specs() -> tuple[ControllerSpec[Any], ...]:
    """The controllers of all native workloads."""
    return (replica_set_spec(), deployment_spec(), stateful_set_spec(), daemon_set_spec(), job_spec(), cron_job_spec())


CHILDREN = Feature(
    name="native workloads",
    controllers=lambda settings: (deployment_spec(), replica_set_spec(), stateful_set_spec()),
)
"""For forecasts: those that other workloads are made of."""


# ReplicaSets


def replica_set_spec() -> ControllerSpec[replicaset.Snapshot]:
    return ControllerSpec(
        name=REPLICA_SET_CONTROLLER,
        subject=REPLICA_SETS,
        sources=(
            Source(Watched(REPLICA_SETS, indexes=OWNER_INDEX, selectors=ADOPTERS), _spec_keys),
            Source(Watched(PODS, indexes={**OWNER_INDEX, **ORPHAN_INDEX}), pods_of(REPLICA_SETS)),
        ),
        snapshot=_replica_set_snapshot,
        decide=replicaset.decide,
        conclude=replicaset.conclude,
        snapshot_type=replicaset.Snapshot,
        workers=5,
    )


def _spec_keys(old: ReplicaSet | None, new: ReplicaSet | None, stores: Stores) -> Iterable[Key]:
    """A ReplicaSet's own status is no news to it."""
    if old is not None and new is not None:
        before, after = old.metadata, new.metadata
        if before.generation == after.generation and before.deletion_timestamp == after.deletion_timestamp:
            return ()
    return own_key(old, new, stores)


def _replica_set_snapshot(view: View, key: Key) -> replicaset.Snapshot | None:
    replica_set = view.store(REPLICA_SETS).get(*key)
    if replica_set is None:
        return None
    store = view.store(PODS)
    pods = active_pods(store, store.by_index(OWNER, replica_set.metadata.uid))
    matches = matcher(replica_set.spec.selector)
    orphans = [pod for pod in store.by_index(ORPHANS, key.namespace) if matches(pod.metadata.labels)]
    has_surplus = len(pods) + len(orphans) > replicaset.size(replica_set)
    return replicaset.Snapshot(
        replica_set=replica_set,
        pods=pods,
        orphans=active_pods(store, orphans),
        beside=_related_by_node(view, replica_set) if has_surplus else {},
        now=view.now,
        seed=view.seed,
    )


def _related_by_node(view: View, replica_set: ReplicaSet) -> dict[str, int]:
    owner = controller_of(replica_set)
    family: Iterable[ReplicaSet] = (replica_set,)
    if owner is not None:
        family = view.store(REPLICA_SETS).by_index(OWNER, owner.uid)
    store = view.store(PODS)
    counts: dict[str, int] = {}
    for member in family:
        for pod in active_pods(store, store.by_index(OWNER, member.metadata.uid)):
            counts[pod.spec.node_name] = counts.get(pod.spec.node_name, 0) + 1
    return counts


# Deployments


def deployment_spec() -> ControllerSpec[deployment.Snapshot]:
    wanted_by = wanting(DEPLOYMENTS)
    of_owner = owner_keys(DEPLOYMENTS)

    def replica_set_keys(old: ReplicaSet | None, new: ReplicaSet | None, stores: Stores) -> Iterable[Key]:
        yield from of_owner(old, new, stores)
        yield from wanted_by(new, stores)

    def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        """Only a pod that has ended can matter here: a Recreate waits for the last of the old."""
        if old is None or (new is not None and new.status.phase not in FINISHED):
            return
        reference = owner_of(old, REPLICA_SETS)
        replica_set = stores.store(REPLICA_SETS).get(*reference) if reference is not None else None
        owner = controller_of(replica_set) if replica_set is not None else None
        if owner is None:
            return
        found = stores.store(DEPLOYMENTS).get(old.metadata.namespace, owner.name)
        if found is not None and not rollout.is_rolling(found):
            yield key_of(found)

    return ControllerSpec(
        name=DEPLOYMENT_CONTROLLER,
        subject=DEPLOYMENTS,
        sources=(
            Source(Watched(DEPLOYMENTS, selectors=ADOPTERS), own_key),
            Source(
                Watched(REPLICA_SETS, indexes={**OWNER_INDEX, **ORPHAN_INDEX}),
                replica_set_keys,
            ),
            Source(Watched(PODS, indexes=OWNER_INDEX), pod_keys),
        ),
        snapshot=_deployment_snapshot,
        decide=deployment.decide,
        conclude=deployment.conclude,
        snapshot_type=deployment.Snapshot,
        workers=5,
    )


def _deployment_snapshot(view: View, key: Key) -> deployment.Snapshot | None:
    found: Deployment | None = view.store(DEPLOYMENTS).get(*key)
    if found is None:
        return None
    store = view.store(REPLICA_SETS)
    owned = store.by_index(OWNER, found.metadata.uid)
    matches = matcher(found.spec.selector)
    orphans = store.by_index(ORPHANS, key.namespace)
    return deployment.Snapshot(
        deployment=found,
        replica_sets=owned,
        orphans=tuple(item for item in orphans if matches(item.metadata.labels)),
        busy=() if rollout.is_rolling(found) else _busy(view, owned),
        now=view.now,
    )


def _busy(view: View, replica_sets: Iterable[ReplicaSet]) -> tuple[str, ...]:
    pods = view.store(PODS)
    uids = (item.metadata.uid for item in replica_sets)
    return tuple(uid for uid in uids if any(pod.status.phase not in FINISHED for pod in pods.by_index(OWNER, uid)))


# Jobs


_JOB_BATCH = 1.0


def job_spec() -> ControllerSpec[job.Snapshot]:
    def matters(old: Pod | None, new: Pod | None) -> bool:
        if concerns_owner(old, new):
            return True
        return old is not None and new is not None and restarts(old) != restarts(new)

    return ControllerSpec(
        name=JOB_CONTROLLER,
        subject=JOBS,
        sources=(
            Source(Watched(JOBS, selectors=ADOPTERS), own_key),
            Source(
                Watched(PODS, indexes={**OWNER_INDEX, **ORPHAN_INDEX, JOB_PODS: _uncounted}),
                pods_of(JOBS, matters=matters),
            ),
        ),
        snapshot=_job_snapshot,
        decide=job.decide,
        conclude=job.conclude,
        snapshot_type=job.Snapshot,
        workers=5,
        # As kube-controller-manager does: pods that end within a second are made up for together.
        pace=lambda snapshot: _JOB_BATCH,
    )


def _uncounted(pod: Pod) -> tuple[str, ...]:
    if job.FINALIZER not in pod.metadata.finalizers:
        return ()
    key = owner_of(pod, JOBS)
    return (str(key),) if key is not None else ()


def _job_snapshot(view: View, key: Key) -> job.Snapshot | None:
    found: Job | None = view.store(JOBS).get(*key)
    store = view.store(PODS)
    uid = found.metadata.uid if found is not None else ""
    uncounted = store.by_index(JOB_PODS, str(key))
    lost = tuple(pod for pod in uncounted if (owner := controller_of(pod)) is not None and owner.uid != uid)
    if found is None:
        return job.Snapshot(job=None, pods=(), orphans=(), lost=lost, now=view.now, seed=view.seed) if lost else None
    matches = matcher(found.spec.selector)
    orphans = [pod for pod in store.by_index(ORPHANS, key.namespace) if matches(pod.metadata.labels)]
    pods = store.by_index(OWNER, uid)
    return job.Snapshot(
        job=found,
        pods=pods,
        orphans=active_pods(store, orphans),
        lost=lost,
        deleted=tuple(pod.metadata.uid for pod in pods if store.is_terminating(pod)),
        now=view.now,
        seed=view.seed,
    )


# CronJobs


def cron_job_spec() -> ControllerSpec[cronjob.Snapshot]:
    return ControllerSpec(
        name=CRON_JOB_CONTROLLER,
        subject=CRON_JOBS,
        sources=(
            Source(CRON_JOBS, own_key),
            Source(Watched(JOBS, indexes=OWNER_INDEX), owner_keys(CRON_JOBS)),
        ),
        snapshot=_cron_job_snapshot,
        decide=cronjob.decide,
        conclude=cronjob.conclude,
        snapshot_type=cronjob.Snapshot,
        workers=5,
    )


def _cron_job_snapshot(view: View, key: Key) -> cronjob.Snapshot | None:
    found = view.store(CRON_JOBS).get(*key)
    if found is None:
        return None
    jobs = view.store(JOBS).by_index(OWNER, found.metadata.uid)
    return cronjob.Snapshot(cron_job=found, jobs=jobs, local_zone=local_zone(), now=view.now)
