"""SidecarSet, as it is stored (`v1beta1`).

Containers, init containers and volumes stay raw JSON: they hold whatever a container of a pod may hold. The structs of
their own fields are the source of the schema, and what decisions read.
"""

from __future__ import annotations

from typing import Annotated, Literal

from kruise.api.apps.shared import (
    GROUP,
    FailureBudgetStatus,
    IntOrPercent,
    UpdatePriorityStrategy,
    UpdateScatterTerm,
    WorkloadCondition,
)
from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.native.pod import LocalObjectReference
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct, field

BEFORE_APP, AFTER_APP = "BeforeAppContainer", "AfterAppContainer"
POD_INJECT_POLICIES = (BEFORE_APP, AFTER_APP)
COLD_UPGRADE, HOT_UPGRADE = "ColdUpgrade", "HotUpgrade"
ENABLED, DISABLED = "enabled", "disabled"
SHARE_POLICIES = (ENABLED, DISABLED)
NOT_UPDATE, ROLLING_UPDATE = "NotUpdate", "RollingUpdate"
ALWAYS, PARTIAL = "Always", "Partial"
REVISION_POLICIES = (ALWAYS, PARTIAL)
RETAIN, OVERWRITE, MERGE_PATCH_JSON = "Retain", "Overwrite", "MergePatchJson"
PATCH_POLICIES = (RETAIN, OVERWRITE, MERGE_PATCH_JSON)


class SidecarUpgradeStrategy(Struct):
    """How a running sidecar gets a new image."""

    upgrade_type: Annotated[
        str,
        About(
            "ColdUpgrade: the container restarts with the new image. HotUpgrade: the pod has the container twice; the "
            "idle one starts with the new image and takes over before the other one rests. ColdUpgrade if absent."
        ),
    ] = ""
    hot_upgrade_empty_image: Annotated[
        str, About("The image of the idle one of the two containers of a HotUpgrade. It must do nothing and be ready.")
    ] = ""


class ShareVolumePolicy(Struct):
    """Whether volumes of the other containers of the pod are mounted as well."""

    type: Annotated[str, About("enabled or disabled. disabled if absent.")] = ""


class SourceFieldRef(Struct):
    """A label or an annotation of the pod."""

    api_version: Annotated[str, About("Version of the pod's schema. v1 if absent.")] = ""
    field_path: Annotated[str, About("metadata.labels['<key>'] or metadata.annotations['<key>'].", required=True)] = ""


class SourceContainerNameSource(Struct):
    """Where the name of a container is found."""

    field_ref: Annotated[
        SourceFieldRef | None,
        About("A label or an annotation of the pod that holds the name of the container.", is_atomic=True),
    ] = None


class TransferEnvVar(Struct):
    """Environment variables that the sidecar gets from another container of the pod."""

    source_container_name: Annotated[str, About("The container that has the variables.")] = ""
    source_container_name_from: Annotated[
        SourceContainerNameSource | None,
        About("Where the pod itself tells the name of the container. It counts before sourceContainerName."),
    ] = None
    env_name: Annotated[str, About("A variable.")] = ""
    env_names: Annotated[tuple[str, ...], About("More variables.")] = ()


class ResourceExpressions(Struct):
    """Amounts worked out from those of other containers."""

    cpu: Annotated[
        str, About("An expression with the variable cpu, such as max(cpu*50%, 50m). Nothing is set if absent.")
    ] = ""
    memory: Annotated[
        str, About("An expression with the variable memory, such as 20%*memory + 100Mi. Nothing is set if absent.")
    ] = ""


class ResourcesExpr(Struct):
    """Limits and requests as expressions."""

    limits: Annotated[ResourceExpressions | None, About("The limits. One that is unlimited stays so.")] = None
    requests: Annotated[ResourceExpressions | None, About("The requests.")] = None


class ResourcesPolicy(Struct):
    """Resources of a sidecar that follow those of the containers beside it, worked out when the pod is made."""

    target_containers_mode: Annotated[
        str,
        About(
            "sum: the variables are the sums over the target containers. max: they are the greatest amounts.",
            required=True,
            shape=Literal["sum", "max"],
        ),
    ] = ""
    target_containers_name_regex: Annotated[
        str, About("The containers that count, by a regular expression that is searched in their names.", default=".*")
    ] = ""
    resources_expr: Annotated[ResourcesExpr, About("The amounts.", required=True)] = ResourcesExpr()


class SidecarContainer(Struct):
    """A container of a pod, with all its fields, and how it gets into pods and is upgraded there."""

    name: Annotated[str, About("Name of the container, unlike that of any other in the pod.", required=True)] = ""
    pod_inject_policy: Annotated[
        str,
        About(
            "BeforeAppContainer: it goes in front of the pod's own containers. AfterAppContainer: behind them. "
            "BeforeAppContainer if absent, AfterAppContainer for init containers."
        ),
    ] = ""
    upgrade_strategy: Annotated[SidecarUpgradeStrategy | None, About("How a running container gets a new image.")] = (
        None
    )
    share_volume_policy: Annotated[
        ShareVolumePolicy | None, About("Whether the volume mounts of the pod's own containers are copied.")
    ] = None
    share_volume_device_policy: Annotated[
        ShareVolumePolicy | None, About("Whether the block devices of the pod's own containers are copied.")
    ] = None
    transfer_env: Annotated[
        tuple[TransferEnvVar, ...], About("Environment variables that are copied from other containers of the pod.")
    ] = ()
    resources_policy: Annotated[
        ResourcesPolicy | None, About("Resources that follow those of other containers of the pod.")
    ] = None


class PatchPodMetadata(Struct):
    """Annotations that pods get along with the sidecars."""

    annotations: Annotated[dict[str, str], About("The annotations.")] = field(default_factory=dict)
    patch_policy: Annotated[
        str,
        About(
            "What becomes of an annotation that the pod has already. Retain: it stays. Overwrite: it is replaced. "
            "MergePatchJson: both are JSON, and are merged. Retain if absent."
        ),
    ] = ""


class InjectRevision(Struct):
    """An earlier content that new pods get."""

    revision_name: Annotated[str | None, About("Name of a ControllerRevision of this SidecarSet.")] = None
    custom_version: Annotated[str | None, About("The version tag of a revision; of several, the newest counts.")] = None
    policy: Annotated[
        str,
        About(
            "Always: every new pod gets it. Partial: new pods get it in the share that the partition of the update "
            "strategy says, or where the selector of the update strategy does not select them. Always if absent.",
            default=ALWAYS,
            shape=Literal["Always", "Partial"],
        ),
    ] = ""


class InjectionStrategy(Struct):
    """What new pods get."""

    paused: Annotated[
        bool, About("Whether new pods get nothing. Pods that have the sidecars stay managed. False if absent.")
    ] = False
    revision: Annotated[InjectRevision | None, About("An earlier content that new pods get.")] = None


class SidecarSetUpdateStrategy(Struct):
    """When and how running sidecars get a new image."""

    type: Annotated[
        str,
        About(
            "RollingUpdate: pods are updated in place, step by step. NotUpdate: only new pods get new sidecars. "
            "RollingUpdate if absent."
        ),
    ] = ""
    paused: Annotated[bool, About("Whether updates pause. New pods get the sidecars nonetheless. False if absent.")] = (
        False
    )
    selector: Annotated[LabelSelector | None, About("Only pods that it selects are updated. All pods if absent.")] = (
        None
    )
    partition: Annotated[
        IntOrPercent | None,
        About(
            "How many pods keep the old content: a number, or a percentage of the matched pods, rounded up. 0 if "
            "absent."
        ),
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many updated pods may be unavailable at once: a number, or a percentage of the matched pods, rounded "
            "up. 1 if absent."
        ),
    ] = None
    priority_strategy: Annotated[UpdatePriorityStrategy | None, About("Which pods are updated first.")] = None
    scatter_strategy: Annotated[
        tuple[UpdateScatterTerm, ...],
        About("Labels whose pods are spread over the course of the update. * stands for every value of a label."),
    ] = ()


class ImagePullSecret(Struct):
    """A Secret of the pod's namespace."""

    name: Annotated[str, About("Name of the Secret.", default="")] = ""


class SidecarSetBase(Struct):
    """What is wanted, as far as both versions say it alike."""

    selector: Annotated[
        LabelSelector | None, About("The pods that get the sidecars. It must name at least one label.")
    ] = None
    namespace_selector: Annotated[
        LabelSelector | None, About("The namespaces of these pods, by their labels. All namespaces if absent.")
    ] = None
    init_containers: Annotated[
        tuple[Raw, ...],
        About(
            "Init containers that new pods get, in the order of their names.",
            keyed_by="name",
            shape=tuple[SidecarContainer, ...],
        ),
    ] = ()
    containers: Annotated[
        tuple[Raw, ...],
        About(
            "Containers that new pods get, and whose images are updated in place.",
            keyed_by="name",
            shape=tuple[SidecarContainer, ...],
        ),
    ] = ()
    volumes: Annotated[tuple[Raw, ...], About("Volumes that the sidecars mount. Pods get those that are used.")] = ()
    image_pull_secrets: Annotated[
        tuple[LocalObjectReference, ...],
        About(
            "Secrets that new pods get to pull images with.", shape=tuple[ImagePullSecret, ...], has_atomic_items=True
        ),
    ] = ()
    update_strategy: Annotated[SidecarSetUpdateStrategy, About("When and how running sidecars get a new image.")] = (
        SidecarSetUpdateStrategy()
    )
    injection_strategy: Annotated[InjectionStrategy, About("What new pods get.")] = InjectionStrategy()
    revision_history_limit: Annotated[
        Int32 | None, About("How many revisions are kept, at least one. 10 if absent.")
    ] = None
    patch_pod_metadata: Annotated[
        tuple[PatchPodMetadata, ...], About("Annotations that pods get along with the sidecars.")
    ] = ()


class SidecarSetSpec(SidecarSetBase):
    """What is wanted."""

    custom_version: Annotated[
        str, About("A version tag of the content, by which injectionStrategy.revision can name it later.")
    ] = ""


class SidecarSetStatus(Struct):
    """What was last seen."""

    observed_generation: Annotated[Int64, About("The generation of the object that this status belongs to.")] = 0
    matched_pods: Annotated[Int32, About("Number of pods that have the sidecars.", required=True)] = 0
    updated_pods: Annotated[Int32, About("Number of these that have the present content.", required=True)] = 0
    ready_pods: Annotated[Int32, About("Number of these that are ready.", required=True)] = 0
    updated_ready_pods: Annotated[Int32, About("Number of updated pods that are ready.")] = 0
    not_selected_pods: Annotated[
        Int32, About("Number of pods with an older content that updateStrategy.selector leaves out.")
    ] = 0
    not_upgradable_pods: Annotated[
        Int32,
        About("Number of pods with an older content that cannot be updated in place: more than images changed."),
    ] = 0
    latest_revision: Annotated[str, About("Name of the ControllerRevision with the present content.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "Reconciling or Stalled, while pods do not have the present content.", shape=tuple[WorkloadCondition, ...]
        ),
    ] = ()
    collision_count: Annotated[
        Int32 | None, About("How often the name of a new revision was taken by another; it goes into the next name.")
    ] = None
    failure_budget: Annotated[
        FailureBudgetStatus | None,
        About("What is remembered of a rollout that stopped because of its failure budget. Absent where none has."),
    ] = None


class SidecarSet(Struct, dict=True, gc=True):
    """A SidecarSet puts containers into the pods that it selects, and updates them there in place."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[SidecarSetSpec, About("What is wanted.")] = SidecarSetSpec()
    status: Annotated[SidecarSetStatus, About("What was last seen. Written by the controller.")] = SidecarSetStatus()


SIDECAR_SETS = Resource(GROUP, "v1beta1", "sidecarsets", "SidecarSet", False, SidecarSet)
