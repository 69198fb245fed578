"""Pods, as far as controllers read them."""

from __future__ import annotations

from datetime import datetime

from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field


class ObjectFieldSelector(Struct):
    field_path: str = ""


class ConfigMapKeySelector(Struct):
    name: str = ""
    key: str = ""
    optional: bool = False


class EnvVarSource(Struct):
    field_ref: ObjectFieldSelector | None = None
    config_map_key_ref: ConfigMapKeySelector | None = None


class EnvVar(Struct):
    name: str = ""
    value: str = ""
    value_from: EnvVarSource | None = None


class ContainerPort(Struct):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    name: str = ""
    protocol: str = ""


class ResourceRequirements(Struct):
    limits: dict[str, str | int | float] = field(default_factory=dict)
    requests: dict[str, str | int | float] = field(default_factory=dict)


class ResizePolicy(Struct):
    resource_name: str = ""
    restart_policy: str = ""


class Container(Struct):
    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    restart_policy: str = ""
    env: tuple[EnvVar, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ResizePolicy, ...] = ()


class EphemeralContainer(Struct):
    name: str = ""
    image: str = ""
    env: tuple[EnvVar, ...] = ()
    target_container_name: str = ""


class PodReadinessGate(Struct):
    condition_type: str = ""


class PersistentVolumeClaimVolumeSource(Struct):
    claim_name: str = ""


class Volume(Struct):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None


class LocalObjectReference(Struct):
    name: str = ""


class Toleration(Struct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(Struct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct):
    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredSchedulingTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    topology_key: str = ""


class WeightedPodAffinityTerm(Struct):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAntiAffinity(Struct):
    """The same for affinity."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[WeightedPodAffinityTerm, ...] = field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct):
    """The parts that decide where a pod may run at all, and which nodes it prefers."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAntiAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class TopologySpreadConstraint(Struct):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""


class PodSpec(Struct):
    node_name: str = ""
    scheduler_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = ""
    service_account_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    host_network: bool = False
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    scheduling_gates: tuple[LocalObjectReference, ...] = ()
    volumes: tuple[Volume, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    overhead: dict[str, str | int | float] = field(default_factory=dict)
    resources: ResourceRequirements | None = None


class ContainerStateWaiting(Struct):
    reason: str = ""
    message: str = ""


class ContainerStateRunning(Struct):
    started_at: datetime | None = None


class ContainerStateTerminated(Struct):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    container_id: str = field(default="", name="containerID")


class ContainerState(Struct):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Struct):
    name: str = ""
    image: str = ""
    image_id: str = field(default="", name="imageID")
    container_id: str = field(default="", name="containerID")
    ready: bool = False
    started: bool | None = None
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    resources: ResourceRequirements | None = None


class PodStatus(Struct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(default="", name="podIP")
    host_ip: str = field(default="", name="hostIP")
    nominated_node_name: str = ""
    start_time: datetime | None = None
    observed_generation: int = 0
    resize: str = ""
    """What became of a resize, before Kubernetes 1.33."""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(Struct, dict=True, gc=True):
    """With room for what was found out about it (`kruise.machinery.remembered`)."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


PODS = Resource("", "v1", "pods", "Pod", True, Pod)


def condition(pod: Pod, kind: str) -> Condition | None:
    for item in pod.status.conditions:
        if item.type == kind:
            return item
    return None


def is_ready(pod: Pod) -> bool:
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def ready_since(pod: Pod) -> tuple[bool, datetime | None]:
    """Whether it is ready, and since when. One that is not has no time; nor has one whose time nobody wrote."""
    ready = condition(pod, "Ready")
    if ready is None or ready.status != "True":
        return False, None
    return True, ready.last_transition_time


def finds_no_node(pod: Pod) -> bool:
    """The scheduler says that no node suits it."""
    scheduled = condition(pod, "PodScheduled")
    return scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable")


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted."""
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None
