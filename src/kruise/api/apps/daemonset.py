"""Advanced DaemonSet, as it is stored (`v1beta1`)."""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.shared import (
    GROUP,
    IN_PLACE_IF_POSSIBLE,
    IntOrPercent,
    Lifecycle,
    MinReadySeconds,
    UpdateType,
    WorkloadCondition,
    WorkloadSpec,
    WorkloadStatus,
)
from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32
from kruise.machinery.codec import Struct

STANDARD = "Standard"
ROLLING_UPDATE_TYPES = (STANDARD, IN_PLACE_IF_POSSIBLE)
"""Of `rollingUpdateType`."""


class DaemonSetRollout(Struct):
    """How pods go over to a new template, in both versions."""

    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "On how many nodes the pod may be unavailable during an update: a number, or a percentage of the nodes "
            "that should have one, rounded up. 1 if maxSurge is absent too, otherwise 0."
        ),
    ] = None
    max_surge: Annotated[
        IntOrPercent | None,
        About(
            "On how many nodes a new pod may run beside the old one during an update: a number, or a percentage of the "
            "nodes that should have one, rounded up. Not together with maxUnavailable. 0 if absent."
        ),
    ] = None
    selector: Annotated[
        LabelSelector | None, About("The nodes whose pods are updated, by their labels. All nodes if absent.")
    ] = None
    partition: Annotated[
        IntOrPercent | None,
        About(
            "How many pods stay at old templates: a number, or a percentage of the nodes that should have one, rounded "
            "down. 0 if absent."
        ),
    ] = None
    paused: Annotated[
        bool | None, About("Whether updates pause. Pods are still added and removed. False if absent.")
    ] = None


class RollingUpdateDaemonSet(DaemonSetRollout):
    """How pods go over to a new template."""

    rolling_update_type: Annotated[
        str,
        About(
            "How a pod is updated. Standard: it is deleted and a new one is made, or made first, with maxSurge. "
            "InPlaceIfPossible: its containers are changed where that suffices, else it is recreated. "
            "Standard if absent."
        ),
    ] = ""


class DaemonSetUpdateStrategy(Struct):
    """When and how pods go over to a new template."""

    type: UpdateType = ""
    rolling_update: Annotated[RollingUpdateDaemonSet | None, About("How a rolling update proceeds.")] = None


class DaemonSetScaleStrategy(Struct):
    """How pods are added."""

    partitioned_scaling: Annotated[
        bool,
        About(
            "Whether the partition holds back the creation of pods as well, so that they come to new nodes step by "
            "step. False if absent."
        ),
    ] = False


class DaemonSetBase(WorkloadSpec):
    """What is wanted, as far as both versions say it alike."""

    min_ready_seconds: MinReadySeconds = 0
    burst_replicas: Annotated[
        IntOrPercent | None,
        About(
            "How many pods are at most created, deleted or updated in place at once: a number, or a percentage of the "
            "nodes that should have one. 250 if absent."
        ),
    ] = None
    lifecycle: Annotated[
        Lifecycle | None,
        About(
            "Hooks that hold pods until somebody else lets them go on. Of a DaemonSet preDelete alone has an effect; "
            "inPlaceUpdate is refused."
        ),
    ] = None


class DaemonSetSpec(DaemonSetBase):
    """What is wanted."""

    update_strategy: Annotated[DaemonSetUpdateStrategy, About("When and how pods go over to a new template.")] = (
        DaemonSetUpdateStrategy()
    )
    scale_strategy: Annotated[DaemonSetScaleStrategy | None, About("How pods are added.")] = None


class DaemonSetCounts(WorkloadStatus):
    """What was last seen, as far as both versions say it alike."""

    desired_number_scheduled: Annotated[Int32, About("Number of nodes that should have a pod.", required=True)] = 0
    current_number_scheduled: Annotated[
        Int32, About("Number of nodes that should have a pod and have one.", required=True)
    ] = 0
    number_misscheduled: Annotated[
        Int32, About("Number of nodes that have a pod and should not have one.", required=True)
    ] = 0
    number_ready: Annotated[Int32, About("Number of nodes whose pod is ready.", required=True)] = 0
    number_available: Annotated[Int32, About("Number of nodes whose pod has been ready for minReadySeconds.")] = 0
    number_unavailable: Annotated[
        Int32, About("Number of nodes that should have a pod and have none that is available.")
    ] = 0
    updated_number_scheduled: Annotated[
        Int32, About("Number of nodes whose pod is at the present template.", required=True)
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        About("Waiting, where something holds the pods up.", shape=tuple[WorkloadCondition, ...]),
    ] = ()


class DaemonSetStatus(DaemonSetCounts):
    """What was last seen."""

    update_revision: Annotated[
        str, About("Hash of the present template, as pods at it have it in label controller-revision-hash.")
    ] = ""


class DaemonSet(Struct):
    """An advanced DaemonSet keeps a pod on each node that suits it, and updates them, in place where possible."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[DaemonSetSpec, About("What is wanted.")] = DaemonSetSpec()
    status: Annotated[DaemonSetStatus, About("What was last seen. Written by the controller.")] = DaemonSetStatus()


DAEMON_SETS = Resource(GROUP, "v1beta1", "daemonsets", "DaemonSet", True, DaemonSet)
