"""The native workloads' fields that features touch. Pod templates stay raw JSON."""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Raw, Struct

EMPTY_OBJECT = Raw(b"{}")


class ControllerRevision(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    data: Raw = EMPTY_OBJECT
    revision: int = 0


class RollingUpdate(Struct):
    partition: int | None = None
    max_unavailable: int | str | None = None


class UpdateStrategy(Struct):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class Ordinals(Struct):
    start: int = 0


class WorkloadSpec(Struct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT
    min_ready_seconds: int = 0
    paused: bool = False
    revision_history_limit: int | None = None
    strategy: UpdateStrategy = UpdateStrategy()
    """Of a Deployment."""
    update_strategy: UpdateStrategy = UpdateStrategy()
    """Of a StatefulSet."""
    ordinals: Ordinals | None = None


class WorkloadStatus(Struct):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: tuple[Condition, ...] = ()


class Workload(Struct):
    """Deployment, ReplicaSet and StatefulSet: the fields they share."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class DaemonSetStatus(Struct):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    updated_number_scheduled: int = 0
    number_ready: int = 0
    number_available: int = 0


class DaemonSet(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(Struct):
    parallelism: int | None = None
    completions: int | None = None
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT
    suspend: bool = False


class JobStatus(Struct):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[Condition, ...] = ()
    start_time: datetime | None = None
    completion_time: datetime | None = None


class Job(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", True, ControllerRevision)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True, Workload)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", True, Workload)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", True, Workload)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True, DaemonSet)
JOBS = Resource("batch", "v1", "jobs", "Job", True, Job)
