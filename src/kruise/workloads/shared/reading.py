"""What a snapshot of a workload is read from the stores with, whatever its kind."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.meta import Object, controller_of
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.feature import Settings
from kruise.machinery.codec import evolve
from kruise.machinery.spec import OWNER, OWNER_INDEX, Source, View, owner_keys
from kruise.machinery.watched import Watched
from kruise.protection.podunavailablebudget.indexes import GUARDED_INDEX
from kruise.protection.podunavailablebudget.permits import budget_sources, budgets_of
from kruise.workloads.shared.adoption import ORPHAN_INDEX, ORPHANS

TASKS_PER_WORKER = 10
"""A worker here is a task that mostly waits for the API server, not a thread. With three of them, two hundred workloads
would stand in line while the server has nothing to do."""
PRE_DOWNLOAD_GATE = "PreDownloadImageForInPlaceUpdate"

_PACE_PER_POD = 40e-6
_PACE_OF_FEW_PODS = 160e-6
_LONG_ENOUGH = 0.08
"""Seconds in which a pass over some hundred pods gathers enough changes to be worth its while."""
_BY_NAME = "owner-name"


def _by_owner_name(revision: ControllerRevision) -> tuple[str, ...]:
    """Revisions of another owner of the same name, of whatever kind, may hold a name that ours would have."""
    reference = controller_of(revision)
    return (f"{revision.metadata.namespace}/{reference.name}",) if reference is not None else ()


WATCHED_PODS = Watched(PODS, indexes={**OWNER_INDEX, **GUARDED_INDEX})
WATCHED_REVISIONS = Watched(CONTROLLER_REVISIONS, indexes={_BY_NAME: _by_owner_name, **ORPHAN_INDEX})


def pods_of(view: View, uid: str) -> tuple[Pod, ...]:
    """The pods of an owner; one whose deletion was answered but not yet seen is shown as what it is."""
    store = view.store(PODS)
    return tuple(
        _terminating(pod, view.now) if store.is_terminating(pod) else pod for pod in store.by_index(OWNER, uid)
    )


def _terminating(pod: Pod, now: datetime) -> Pod:
    if pod.metadata.deletion_timestamp is not None:
        return pod
    return evolve(pod, metadata=evolve(pod.metadata, deletion_timestamp=now))


def revisions_near(view: View, owner: Object) -> tuple[ControllerRevision, ...]:
    """The revisions that an owner may use or collide with: those of its name, and those of nobody."""
    store, namespace = view.store(CONTROLLER_REVISIONS), owner.metadata.namespace
    named = store.by_index(_BY_NAME, f"{namespace}/{owner.metadata.name}")
    return (*named, *store.by_index(ORPHANS, namespace))


def common_to_snapshots(view: View, workload: Object, *, pulls_images: bool) -> dict[str, Any]:
    """The fields of a `WorkloadSnapshot`."""
    uid = workload.metadata.uid
    pods = pods_of(view, uid)
    jobs = view.store(IMAGE_PULL_JOBS) if pulls_images else None
    return {
        "pods": pods,
        "revisions": revisions_near(view, workload),
        "pull_jobs": jobs.by_index(OWNER, uid) if jobs is not None and jobs.synced else (),
        "pull_jobs_served": jobs is not None and jobs.synced,
        "gates": dict(view.gates),
        "resize_subresource": has_resize_subresource(view),
        "pending": view.pending(PODS),
        "budgets": budgets_of(view, pods),
        "now": view.now,
        "seed": view.seed,
    }


def pull_job_sources(settings: Settings, workloads: Resource[Any], gate: str) -> tuple[Source[Any], ...]:
    """Nobody who pulls no images ahead needs them."""
    if not settings.gates.get(gate, False):
        return ()
    return (Source(Watched(IMAGE_PULL_JOBS, indexes=OWNER_INDEX, optional=True), owner_keys(workloads)),)


def common_sources(settings: Settings, workloads: Resource[Any], gate: str) -> tuple[Source[Any], ...]:
    """What every workload looks at besides its own: pull jobs, where it pulls images ahead, and budgets."""
    return (*pull_job_sources(settings, workloads, gate), *budget_sources(settings, workloads))


def tasks_of(settings: Settings, kind: str) -> int:
    return settings.workers_of(kind) * TASKS_PER_WORKER


def has_resize_subresource(view: View) -> bool:
    return view.server_version is None or view.server_version.at_least(1, 32)


def pace_of(pods: int) -> float:
    """Several times what deciding takes, so that most of a core is left for writing. A pod that became ready still
    makes room for the next one within a quarter of a second."""
    return max(min(pods * _PACE_OF_FEW_PODS, _LONG_ENOUGH), pods * _PACE_PER_POD)
