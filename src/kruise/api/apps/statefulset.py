"""Advanced StatefulSet, as it is stored (`v1beta1`)."""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.shared import (
    GROUP,
    InPlaceUpdateStrategy,
    IntOrPercent,
    Lifecycle,
    PodUpdatePolicy,
    Replicas,
    UpdatePriorityStrategy,
    UpdateType,
    WorkloadCondition,
    WorkloadSpec,
    WorkloadStatus,
)
from kruise.api.meta import Condition, ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32
from kruise.machinery.codec import Raw, Struct

ORDERED_READY, PARALLEL = "OrderedReady", "Parallel"
POD_MANAGEMENT_POLICIES = (ORDERED_READY, PARALLEL)
RETAIN, DELETE = "Retain", "Delete"
RETENTION_POLICIES = (RETAIN, DELETE)
ON_POD_ROLLING_UPDATE = "OnPodRollingUpdate"
"""Besides OnDelete, a type of `volumeClaimUpdateStrategy`."""


class UnorderedUpdateStrategy(Struct):
    """Updates that do not follow the ordinals."""

    priority_strategy: Annotated[UpdatePriorityStrategy | None, About("Which pods are updated first.")] = None


class RollingUpdateStatefulSetStrategy(Struct):
    """How pods go over to a new template."""

    partition: Annotated[
        Int32 | None, About("How many pods, those with the lowest ordinals, stay at the old template. 0 if absent.")
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many pods may be unavailable during an update: a number, or a percentage of replicas, rounded down "
            "but at least 1. Other than 1 only with podManagementPolicy Parallel. 1 if absent."
        ),
    ] = None
    pod_update_policy: PodUpdatePolicy = ""
    paused: Annotated[bool, About("Whether updates pause. Pods are still added and removed. False if absent.")] = False
    unordered_update: Annotated[
        UnorderedUpdateStrategy | None,
        About(
            "Lets pods be updated in another order than from the highest ordinal down. Only with podManagementPolicy "
            "Parallel."
        ),
    ] = None
    in_place_update_strategy: Annotated[InPlaceUpdateStrategy | None, About("How pods are updated in place.")] = None
    min_ready_seconds: Annotated[
        Int32 | None,
        About(
            "How many seconds, 300 at most, a pod must be ready before it counts as available and the next one may "
            "follow. 0 if absent."
        ),
    ] = None


class StatefulSetUpdateStrategy(Struct):
    """When and how pods go over to a new template."""

    type: UpdateType = ""
    rolling_update: Annotated[
        RollingUpdateStatefulSetStrategy | None, About("How a rolling update proceeds. Not with OnDelete.")
    ] = None


class VolumeClaimUpdateStrategy(Struct):
    """When the claims of pods follow their templates."""

    type: Annotated[
        str,
        About(
            "OnDelete: only claims that are made anew follow. OnPodRollingUpdate: claims grow, pod by pod, in the "
            "order of a rolling update. OnDelete if absent."
        ),
    ] = ""


class StatefulSetScaleStrategy(Struct):
    """How pods are added and removed."""

    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many pods may be unavailable while pods are added or removed: a number, or a percentage of replicas, "
            "rounded down but at least 1. Only with podManagementPolicy Parallel. No limit if absent."
        ),
    ] = None


class ClaimRetentionPolicy(Struct):
    """What becomes of claims whose pod is not wanted any more."""

    when_deleted: Annotated[
        str, About("What becomes of the claims when the StatefulSet is deleted: Retain or Delete. Retain if absent.")
    ] = ""
    when_scaled: Annotated[
        str, About("What becomes of the claims of a pod that is scaled away: Retain or Delete. Retain if absent.")
    ] = ""


class StatefulSetOrdinals(Struct):
    """Which numbers the pods have."""

    start: Annotated[Int32, About("The lowest ordinal. 0 if absent.")] = 0


class StatefulSetBase(WorkloadSpec):
    """What is wanted, as far as both versions say it alike."""

    replicas: Replicas = None
    volume_claim_templates: Annotated[
        tuple[Raw, ...],
        About(
            "PersistentVolumeClaims that are made for each ordinal and outlive its pods. A claim takes the place of a "
            "volume of the same name in the template."
        ),
    ] = ()
    service_name: Annotated[
        str,
        About(
            "Name of the headless Service that gives each pod a host name in DNS. The Service need not exist yet. "
            "It cannot be changed later."
        ),
    ] = ""
    pod_management_policy: Annotated[
        str,
        About(
            "OrderedReady: pods are made and removed one after the other, each when its predecessors are ready. "
            "Parallel: all at once. It cannot be changed later. OrderedReady if absent."
        ),
    ] = ""
    update_strategy: Annotated[StatefulSetUpdateStrategy, About("When and how pods go over to a new template.")] = (
        StatefulSetUpdateStrategy()
    )


class StatefulSetSpec(StatefulSetBase):
    """What is wanted."""

    reserve_ordinals: Annotated[
        tuple[IntOrPercent, ...],
        About(
            'Ordinals that no pod has: numbers, or ranges such as "2-5" with both ends. A pod that has one is removed, '
            "and the next free ordinal is taken in its place."
        ),
    ] = ()
    lifecycle: Annotated[Lifecycle | None, About("Hooks that hold pods until somebody else lets them go on.")] = None
    scale_strategy: Annotated[StatefulSetScaleStrategy | None, About("How pods are added and removed.")] = None
    persistent_volume_claim_retention_policy: Annotated[
        ClaimRetentionPolicy | None, About("What becomes of claims whose pod is not wanted any more.")
    ] = None
    ordinals: Annotated[
        StatefulSetOrdinals | None,
        About("Which numbers the pods have. It takes effect with gate StatefulSetStartOrdinal."),
    ] = None
    volume_claim_update_strategy: Annotated[
        VolumeClaimUpdateStrategy,
        About("When claims follow their templates. It takes effect with gate StatefulSetAutoResizePVCGate."),
    ] = VolumeClaimUpdateStrategy()


class VolumeClaimStatus(Struct):
    """How many claims follow a template."""

    volume_claim_name: Annotated[str, About("Name of the template.", required=True)] = ""
    compatible_replicas: Annotated[Int32, About("Number of claims that are as the template wants.", required=True)] = 0
    compatible_ready_replicas: Annotated[
        Int32, About("Number of those whose volume has the size, too.", required=True)
    ] = 0


class StatefulSetStatus(WorkloadStatus):
    """What was last seen."""

    replicas: Annotated[Int32, About("Number of pods that exist.", required=True)] = 0
    ready_replicas: Annotated[Int32, About("Number of pods that are ready.", required=True)] = 0
    available_replicas: Annotated[
        Int32, About("Number of pods that have been ready for minReadySeconds.", required=True)
    ] = 0
    current_replicas: Annotated[Int32, About("Number of pods at the current revision.", required=True)] = 0
    updated_replicas: Annotated[Int32, About("Number of pods at the update revision.", required=True)] = 0
    updated_ready_replicas: Annotated[Int32, About("Number of pods at the update revision that are ready.")] = 0
    updated_available_replicas: Annotated[Int32, About("Number of pods at the update revision that are available.")] = 0
    current_revision: Annotated[str, About("Name of the ControllerRevision that all pods had last.")] = ""
    update_revision: Annotated[str, About("Name of the ControllerRevision of the present template.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "FailedCreatePod and FailedUpdatePod, and Waiting where something holds the pods up.",
            shape=tuple[WorkloadCondition, ...],
        ),
    ] = ()
    label_selector: Annotated[str, About("The selector in text form, for the scale subresource.")] = ""
    volume_claims: Annotated[
        tuple[VolumeClaimStatus, ...], About("For each of volumeClaimTemplates, how many claims follow it.")
    ] = ()


class StatefulSet(Struct):
    """An advanced StatefulSet keeps pods with a fixed name and claims of their own, and updates them, in place where
    possible."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[StatefulSetSpec, About("What is wanted.")] = StatefulSetSpec()
    status: Annotated[StatefulSetStatus, About("What was last seen. Written by the controller.")] = StatefulSetStatus()


STATEFUL_SETS = Resource(GROUP, "v1beta1", "statefulsets", "StatefulSet", True, StatefulSet)
