"""CloneSet, as it is stored (`v1beta1`)."""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.shared import (
    GROUP,
    InPlaceUpdateStrategy,
    IntOrPercent,
    Lifecycle,
    MinReadySeconds,
    PodUpdatePolicy,
    Replicas,
    UpdatePriorityStrategy,
    UpdateScatterTerm,
    UpdateType,
    WorkloadCondition,
    WorkloadSpec,
    WorkloadStatus,
)
from kruise.api.meta import Condition, ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32
from kruise.machinery.codec import Raw, Struct, field


class CloneSetScaleStrategy(Struct):
    """How pods are added and removed."""

    pods_to_delete: Annotated[
        tuple[str, ...],
        About(
            "Names of pods to delete. If replicas is lowered at the same time, these pods go first; otherwise new pods "
            "take their place. Names of pods that are gone are removed from the list."
        ),
    ] = ()
    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many pods may be unavailable while pods are added: a number, or a percentage of replicas, rounded up. "
            "No limit if absent."
        ),
    ] = None
    enable_pvc_reuse: Annotated[
        bool,
        About(
            "Whether a new pod may take the name and the claims of a pod that was removed from outside. "
            "False if absent: such claims are deleted.",
            default=False,
        ),
    ] = field(default=False, name="enablePVCReuse")
    exclude_preparing_delete: Annotated[
        bool,
        About(
            "Whether pods that wait for a preDelete hook are not counted, so that their replacements come at once. "
            "False if absent."
        ),
    ] = False


class CloneSetRollout(Struct):
    """How pods go over to a new template, in both versions."""

    partition: Annotated[
        IntOrPercent | None,
        About(
            "How many pods stay at the old template: a number, or a percentage of replicas, rounded up. 0 if absent."
        ),
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many pods may be unavailable during an update: a number, or a percentage of replicas, rounded up, or "
            "down where maxSurge is set. 20% if absent."
        ),
    ] = None
    max_surge: Annotated[
        IntOrPercent | None,
        About(
            "How many pods there may be above replicas during an update or while named pods are replaced: a number, or "
            "a percentage of replicas, rounded up. Not with InPlaceOnly. 0 if absent."
        ),
    ] = None
    paused: Annotated[bool, About("Whether updates pause. Pods are still added and removed. False if absent.")] = False
    priority_strategy: Annotated[UpdatePriorityStrategy | None, About("Which pods are updated first.")] = None
    scatter_strategy: Annotated[
        tuple[UpdateScatterTerm, ...],
        About("Labels whose pods are not updated all at one time but spread over the course of the update."),
    ] = ()
    in_place_update_strategy: Annotated[InPlaceUpdateStrategy | None, About("How pods are updated in place.")] = None


class RollingUpdateCloneSetStrategy(CloneSetRollout):
    """How pods go over to a new template."""

    pod_update_policy: PodUpdatePolicy = ""


class CloneSetUpdateStrategy(Struct):
    """When and how pods go over to a new template."""

    type: UpdateType = ""
    rolling_update: Annotated[RollingUpdateCloneSetStrategy | None, About("How a rolling update proceeds.")] = None


class CloneSetBase(WorkloadSpec):
    """What is wanted, as far as both versions say it alike."""

    replicas: Replicas = None
    volume_claim_templates: Annotated[
        tuple[Raw, ...],
        About(
            "PersistentVolumeClaims that are made for each pod. A claim takes the place of a volume of the same name "
            "in the template. A change affects new pods only."
        ),
    ] = ()
    min_ready_seconds: MinReadySeconds = 0
    lifecycle: Annotated[Lifecycle | None, About("Hooks that hold pods until somebody else lets them go on.")] = None
    progress_deadline_seconds: Annotated[
        Int32 | None,
        About(
            "Seconds after which an update that is not finished is reported as stuck, in condition Progressing. "
            "Pods are updated all the same. Nothing is reported if absent."
        ),
    ] = None


class CloneSetSpec(CloneSetBase):
    """What is wanted."""

    scale_strategy: Annotated[CloneSetScaleStrategy, About("How pods are added and removed.")] = CloneSetScaleStrategy()
    update_strategy: Annotated[CloneSetUpdateStrategy, About("When and how pods go over to a new template.")] = (
        CloneSetUpdateStrategy()
    )


class CloneSetStatus(WorkloadStatus):
    """What was last seen."""

    replicas: Annotated[Int32, About("Number of pods, finished and terminating ones left out.", required=True)] = 0
    ready_replicas: Annotated[Int32, About("Number of pods that are ready.", required=True)] = 0
    available_replicas: Annotated[
        Int32,
        About("Number of pods that have been ready for minReadySeconds and that no hook holds.", required=True),
    ] = 0
    updated_replicas: Annotated[Int32, About("Number of pods at the update revision.", required=True)] = 0
    updated_ready_replicas: Annotated[
        Int32, About("Number of pods at the update revision that are ready.", required=True)
    ] = 0
    updated_available_replicas: Annotated[Int32, About("Number of pods at the update revision that are available.")] = 0
    expected_updated_replicas: Annotated[
        Int32, About("Number of pods that the partition lets go to the update revision.")
    ] = 0
    update_revision: Annotated[str, About("Name of the ControllerRevision of the present template.")] = ""
    current_revision: Annotated[str, About("Name of the ControllerRevision that all pods had last.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "FailedScale, FailedUpdate and, with progressDeadlineSeconds, Progressing.",
            shape=tuple[WorkloadCondition, ...],
        ),
    ] = ()
    label_selector: Annotated[str, About("The selector in text form, for the scale subresource.")] = ""


class CloneSet(Struct):
    """A CloneSet keeps a number of interchangeable pods, and updates them, in place where possible."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[CloneSetSpec, About("What is wanted.")] = CloneSetSpec()
    status: Annotated[CloneSetStatus, About("What was last seen. Written by the controller.")] = CloneSetStatus()


CLONE_SETS = Resource(GROUP, "v1beta1", "clonesets", "CloneSet", True, CloneSet)
