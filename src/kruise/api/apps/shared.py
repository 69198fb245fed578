"""Types that the workloads of `apps.kruise.io` share."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kruise.api.meta import LabelSelector
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct, field

GROUP = "apps.kruise.io"

RE_CREATE, IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY = "ReCreate", "InPlaceIfPossible", "InPlaceOnly"
POD_UPDATE_POLICIES = (RE_CREATE, IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY)
IN_PLACE_POLICIES = (IN_PLACE_IF_POSSIBLE, IN_PLACE_ONLY)
ROLLING_UPDATE, ON_DELETE = "RollingUpdate", "OnDelete"
UPDATE_STRATEGIES = (ROLLING_UPDATE, ON_DELETE)

PREDOWNLOAD_PARALLELISM = "apps.kruise.io/image-predownload-parallelism"
PREDOWNLOAD_TIMEOUT = "apps.kruise.io/image-predownload-timeout-seconds"
PREDOWNLOAD_MIN_READY = "apps.kruise.io/image-predownload-min-updated-ready-pods"
"""Annotations of workloads in v1alpha1 that later became fields of `InPlaceUpdateStrategy`."""

IntOrPercent = int | str

Replicas = Annotated[Int32 | None, About("How many pods are wanted. 1 if absent.")]
MinReadySeconds = Annotated[
    Int32, About("How many seconds a pod must be ready before it counts as available. 0 if absent.")
]
PodUpdatePolicy = Annotated[
    str,
    About(
        "How a pod is updated. ReCreate: it is deleted and a new one is made. InPlaceIfPossible: its containers "
        "are changed where that suffices, else it is recreated. InPlaceOnly: it is never recreated, and a change "
        "that would need it is an error. ReCreate if absent."
    ),
]
UpdateType = Annotated[
    str,
    About(
        "RollingUpdate: pods are updated step by step. OnDelete: only pods that are made anew, after somebody has "
        "deleted their predecessors, get the new template. RollingUpdate if absent."
    ),
]


class WorkloadSpec(Struct):
    """What every workload says of its pods."""

    selector: Annotated[
        LabelSelector,
        About(
            "The labels by which the workload knows its pods. They must be among the labels of the template, and the "
            "selector cannot be changed later.",
            required=True,
        ),
    ] = LabelSelector()
    template: Annotated[
        Raw, About("The pods to make: metadata and spec as in a Deployment's template.", required=True)
    ] = EMPTY_OBJECT
    revision_history_limit: Annotated[
        Int32 | None, About("How many revisions are kept that no pod uses any more. 10 if absent.")
    ] = None


class LifecycleHook(Struct):
    """A point in the life of a pod at which somebody else has a say, through labels and finalizers of the pod."""

    labels_handler: Annotated[
        dict[str, str],
        About(
            "Labels that make up the hook. A pod that has one of them, with exactly this value, is held by the hook."
        ),
    ] = field(default_factory=dict)
    finalizers_handler: Annotated[
        tuple[str, ...],
        About("Finalizers that make up the hook. A pod that has one of them is held by the hook."),
    ] = ()
    mark_pod_not_ready: Annotated[
        bool,
        About(
            "Whether a pod counts as not ready while the hook holds it, so that it gets no traffic. "
            "It works for inPlaceUpdate and preDelete. False if absent."
        ),
    ] = False


class Lifecycle(Struct):
    """Hooks of the pods' lives."""

    pre_normal: Annotated[
        LifecycleHook | None,
        About(
            "Holds a new pod before it counts as available, until it has all labels and finalizers of the hook. "
            "Here somebody adds them; the other two hooks end when they are removed."
        ),
    ] = None
    in_place_update: Annotated[
        LifecycleHook | None,
        About(
            "Holds a pod before it is updated in place, until the labels and finalizers of the hook are gone, and "
            "after the update, until they are back."
        ),
    ] = None
    pre_delete: Annotated[
        LifecycleHook | None,
        About("Holds a pod before the workload deletes it, until the labels and finalizers of the hook are gone."),
    ] = None


class InPlaceUpdateStrategy(Struct):
    """How pods are updated in place."""

    grace_period_seconds: Annotated[
        Int32,
        About(
            "Seconds between marking a pod as not ready and changing its containers, so that traffic can move away. "
            "0 if absent."
        ),
    ] = 0
    image_pre_download_parallelism: Annotated[
        IntOrPercent | None,
        About(
            "On how many nodes at once the new images are pulled ahead of the update. 1 if absent. In v1alpha1 the "
            "annotation apps.kruise.io/image-predownload-parallelism counts, not this field."
        ),
    ] = None
    image_pre_download_timeout_seconds: Annotated[
        Int32 | None,
        About(
            "Seconds that one pull of an image may take ahead of the update. 300 if absent. In v1alpha1 the annotation "
            "apps.kruise.io/image-predownload-timeout-seconds counts, not this field."
        ),
    ] = None
    image_pre_download_min_updated_ready_pods: Annotated[
        Int32 | None,
        About(
            "How many pods must be updated and ready before images are pulled ahead. 0 if absent. In v1alpha1 the "
            "annotation apps.kruise.io/image-predownload-min-updated-ready-pods counts, not this field."
        ),
    ] = None


class UpdatePriorityWeightTerm(Struct):
    """A weight for pods with certain labels."""

    weight: Annotated[
        Int32, About("What the pods gain, from 0 to 100. The weights of all matching terms add up.", required=True)
    ] = 0
    match_selector: Annotated[LabelSelector, About("The pods that gain the weight.", required=True)] = LabelSelector()


class UpdatePriorityOrderTerm(Struct):
    """A label by whose number pods are ordered."""

    ordered_key: Annotated[
        str,
        About(
            "The label. Pods are ordered by the digits at the end of its value, the largest number first.",
            required=True,
        ),
    ] = ""


class UpdatePriorityStrategy(Struct):
    """Which pods are updated first: by weight or by order, not both."""

    weight_priority: Annotated[
        tuple[UpdatePriorityWeightTerm, ...],
        About("Pods with a higher sum of weights are updated first."),
    ] = ()
    order_priority: Annotated[
        tuple[UpdatePriorityOrderTerm, ...],
        About("Pods are ordered by the number in the first of these labels that they have."),
    ] = ()


class UpdateScatterTerm(Struct):
    """A label whose pods are spread over the course of an update."""

    key: Annotated[str, About("The label.", required=True)] = ""
    value: Annotated[str, About("Its value.", required=True)] = ""


class WorkloadCondition(Struct):
    """Something that is worth knowing of the workload as a whole."""

    type: Annotated[str, About("What the condition is about.", required=True)] = ""
    status: Annotated[str, About("Whether it holds: True, False or Unknown.", required=True)] = ""
    reason: Annotated[str, About("Why, in one word for programs.")] = ""
    message: Annotated[str, About("Why, in words for people.")] = ""
    last_transition_time: Annotated[datetime | None, About("When the status last changed.")] = None
    last_update_time: Annotated[datetime | None, About("When the status or the reason last changed.")] = None


class FailedPod(Struct):
    """A pod that failed at the revision that is rolled out."""

    name: Annotated[str, About("Name of the pod.")] = ""
    failure: Annotated[str, About("What it failed of, in a few words.")] = ""


class FailureBudgetStatus(Struct):
    """A rollout that stopped because more pods failed than its budget allows; without failed pods: the first one, while
    it is watched."""

    revision: Annotated[str, About("Name of the ControllerRevision that was rolled out.")] = ""
    failed: Annotated[Int32, About("The most pods that were seen to have failed at it.")] = 0
    budget: Annotated[str, About("The number or percentage of pods that may fail, as the annotation had it.")] = ""
    pods: Annotated[tuple[FailedPod, ...], About("The first of the pods that failed.")] = ()


class WorkloadStatus(Struct):
    """What every workload tells of itself."""

    observed_generation: Annotated[Int64, About("The generation of the object that this status belongs to.")] = 0
    collision_count: Annotated[
        Int32 | None, About("How often the name of a new revision was taken by another; it goes into the next name.")
    ] = None
    failure_budget: Annotated[
        FailureBudgetStatus | None,
        About("What is remembered of a rollout that stopped because of its failure budget. Absent where none has."),
    ] = None
