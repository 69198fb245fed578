"""ReplicaSets, Deployments, StatefulSets, DaemonSets and Jobs with every field that their own controllers read.

The slim structs of `kruise.api.native.apps` name only what features touch. All stores of a cache share one struct per
kind, so the controllers here run on a cache of their own.
"""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.native.claim_retention import RetentionPolicy
from kruise.api.resource import Resource
from kruise.machinery.codec import Raw, Struct, field
from kruise.machinery.intorpercent import IntOrPercent


class ReplicaSetSpec(Struct):
    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT


class ReplicaSetStatus(Struct):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()


class ReplicaSet(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class RollingUpdate(Struct):
    max_unavailable: IntOrPercent | None = None
    max_surge: IntOrPercent | None = None


class Strategy(Struct):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(Struct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT
    strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class DeploymentStatus(Struct):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[Condition, ...] = ()
    collision_count: int | None = None


class Deployment(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class Ordinals(Struct):
    start: int = 0


class OrderedUpdate(Struct):
    partition: int = 0
    max_unavailable: IntOrPercent | None = None


class OrderedStrategy(Struct):
    type: str = "RollingUpdate"
    rolling_update: OrderedUpdate | None = None


class ClaimTemplateMeta(Struct):
    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class ClaimTemplate(Struct):
    metadata: ClaimTemplateMeta = ClaimTemplateMeta()
    spec: Raw = EMPTY_OBJECT


class StatefulSetSpec(Struct):
    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT
    volume_claim_templates: tuple[ClaimTemplate, ...] = ()
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: OrderedStrategy = OrderedStrategy()
    revision_history_limit: int | None = None
    min_ready_seconds: int = 0
    persistent_volume_claim_retention_policy: RetentionPolicy = RetentionPolicy()
    ordinals: Ordinals = Ordinals()


class StatefulSetStatus(Struct):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: int | None = None


class StatefulSet(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Struct):
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT
    update_strategy: Strategy = Strategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class DaemonSetStatus(Struct):
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0
    observed_generation: int = 0
    updated_number_scheduled: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    collision_count: int | None = None


class DaemonSet(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(Struct):
    parallelism: int | None = None
    completions: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    selector: LabelSelector | None = None
    template: Raw = EMPTY_OBJECT
    ttl_seconds_after_finished: int | None = None
    completion_mode: str = ""
    suspend: bool = False
    pod_replacement_policy: str = ""
    managed_by: str = ""


class UncountedPods(Struct):
    succeeded: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobStatus(Struct):
    conditions: tuple[Condition, ...] = ()
    start_time: datetime | None = None
    completion_time: datetime | None = None
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int | None = None
    completed_indexes: str = ""
    uncounted_terminated_pods: UncountedPods = UncountedPods()
    ready: int | None = None


class Job(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobTemplateMeta(Struct):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class CronJobTemplate(Struct):
    metadata: CronJobTemplateMeta = CronJobTemplateMeta()
    spec: Raw = EMPTY_OBJECT


class CronJobSpec(Struct):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool = False
    job_template: CronJobTemplate = CronJobTemplate()
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class ActiveJob(Struct):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CronJobStatus(Struct):
    active: tuple[ActiveJob, ...] = ()
    last_schedule_time: datetime | None = None
    last_successful_time: datetime | None = None


class CronJob(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", True, ReplicaSet)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True, Deployment)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", True, StatefulSet)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True, DaemonSet)
JOBS = Resource("batch", "v1", "jobs", "Job", True, Job)
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", True, CronJob)
