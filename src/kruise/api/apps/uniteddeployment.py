"""UnitedDeployment, as it is stored (`v1beta1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kruise.api.apps.cloneset import CloneSetSpec
from kruise.api.apps.placing import NodeSelectorRequirement, Toleration
from kruise.api.apps.shared import GROUP, IntOrPercent
from kruise.api.apps.statefulset import StatefulSetSpec
from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct, field

MANUAL = "Manual"
ADAPTIVE, FIXED = "Adaptive", "Fixed"
SCHEDULE_TYPES = (ADAPTIVE, FIXED, "")
DEFAULT_CRITICAL_SECONDS = 30
DEFAULT_UNSCHEDULABLE_SECONDS = 300

_CHILD_METADATA = "Labels and annotations of the children. The labels must match the selector of the UnitedDeployment."


class NodeSelectorTerm(Struct):
    """Nodes, by their labels."""

    match_expressions: Annotated[
        tuple[NodeSelectorRequirement, ...], About("Requirements on labels of nodes. All must hold.", is_atomic=True)
    ] = ()
    match_fields: Annotated[
        tuple[NodeSelectorRequirement, ...], About("Requirements on fields of nodes. They are ignored.", is_atomic=True)
    ] = ()


class Subset(Struct):
    """A part of the pods, made by a workload of its own."""

    name: Annotated[
        str, About("Name of the subset, a DNS label that no other subset of this object has.", required=True)
    ] = ""
    node_selector_term: Annotated[
        NodeSelectorTerm,
        About(
            "The nodes of the subset, added to the required node affinity of its pods. It cannot be changed later.",
            is_atomic=True,
        ),
    ] = NodeSelectorTerm()
    tolerations: Annotated[
        tuple[Toleration, ...],
        About("Tolerations that pods of the subset have beside those of the template. They cannot be changed later."),
    ] = ()
    replicas: Annotated[
        IntOrPercent | None,
        About(
            "How many pods the subset has: a number, or a percentage of replicas, rounded to the nearest number. "
            "Not together with minReplicas or maxReplicas of any subset. An even share of the rest if absent."
        ),
    ] = None
    min_replicas: Annotated[
        IntOrPercent | None,
        About(
            "How many pods the subset has at least, as long as there are so many: a number, or a percentage of "
            "replicas, rounded to the nearest number. 0 if absent."
        ),
    ] = None
    max_replicas: Annotated[
        IntOrPercent | None,
        About(
            "How many pods the subset has at most: a number, or a percentage of replicas, rounded to the nearest "
            "number. No limit if absent; one subset must have none."
        ),
    ] = None
    patch: Annotated[
        Raw,
        About(
            "A strategic merge patch on the pod template of the subset: metadata and spec. It is applied last, so it "
            "wins over everything else."
        ),
    ] = Raw()


class AdaptiveStrategy(Struct):
    """How pods that find no node move to other subsets."""

    reschedule_critical_seconds: Annotated[
        Int32 | None, About("How many seconds a pod may wait for a node before it counts as stuck. 30 if absent.")
    ] = None
    unschedulable_duration: Annotated[
        Int32 | None,
        About(
            "How many seconds a subset with stuck pods gets no more pods than it has running. With "
            "reserveUnschedulablePods: how long a pod that was stuck must be ready before it counts again. "
            "300 if absent."
        ),
    ] = None
    reserve_unschedulable_pods: Annotated[
        bool,
        About(
            "Whether stuck pods stay where they are, beside replacements in other subsets, until they run. "
            "Only with deploymentTemplate and cloneSetTemplate. False if absent."
        ),
    ] = False


class ScheduleStrategy(Struct):
    """What is done about pods that find no node."""

    type: Annotated[
        str,
        About(
            "Fixed: nothing. Adaptive: pods that find no node move on to other subsets. Fixed if absent.",
            shape=Literal["Adaptive", "Fixed", ""],
        ),
    ] = ""
    adaptive: Annotated[AdaptiveStrategy | None, About("How Adaptive proceeds.")] = None


class Topology(Struct):
    """The parts that pods are spread over."""

    subsets: Annotated[
        tuple[Subset, ...],
        About("The subsets. With minReplicas and maxReplicas their order says which of them are filled first."),
    ] = ()
    schedule_strategy: Annotated[ScheduleStrategy, About("What is done about pods that find no node.")] = (
        ScheduleStrategy()
    )


class ManualUpdate(Struct):
    """How far each subset may go."""

    partitions: Annotated[
        dict[str, Int32],
        About("For each subset, how many of its pods stay at the old template. 0 for subsets that are not named."),
    ] = field(default_factory=dict)


class UnitedUpdateStrategy(Struct):
    """How the subsets go over to a new template."""

    type: Annotated[
        str,
        About(
            "Manual: all subsets at once, each as far as its partition allows. Manual if absent.",
            shape=Literal["Manual", ""],
        ),
    ] = ""
    manual_update: Annotated[ManualUpdate | None, About("How far each subset may go.")] = None


class StatefulSetTemplate(Struct):
    """StatefulSets of Kubernetes as children."""

    metadata: Annotated[Raw, About(_CHILD_METADATA)] = Raw()
    spec: Annotated[
        Raw,
        About(
            "The spec of a StatefulSet of apps/v1, without replicas, selector and partition, which each child gets "
            "from its subset.",
            required=True,
        ),
    ] = EMPTY_OBJECT


class AdvancedStatefulSetTemplate(Struct):
    """Advanced StatefulSets as children."""

    metadata: Annotated[Raw, About(_CHILD_METADATA)] = Raw()
    spec: Annotated[
        StatefulSetSpec,
        About(
            "The spec of an advanced StatefulSet of v1beta1; replicas, selector and partition of each child come from "
            "its subset.",
            required=True,
        ),
    ] = StatefulSetSpec()


class CloneSetTemplate(Struct):
    """CloneSets as children."""

    metadata: Annotated[Raw, About(_CHILD_METADATA)] = Raw()
    spec: Annotated[
        CloneSetSpec,
        About(
            "The spec of a CloneSet of v1beta1; replicas, selector and partition of each child come from its subset.",
            required=True,
        ),
    ] = CloneSetSpec()


class DeploymentTemplate(Struct):
    """Deployments of Kubernetes as children."""

    metadata: Annotated[Raw, About(_CHILD_METADATA)] = Raw()
    spec: Annotated[
        Raw,
        About(
            "The spec of a Deployment of apps/v1, without replicas and selector, which each child gets from its "
            "subset.",
            required=True,
        ),
    ] = EMPTY_OBJECT


class SubsetTemplate(Struct):
    """The children: exactly one of four kinds."""

    stateful_set_template: Annotated[
        StatefulSetTemplate | None, About("Each subset is a StatefulSet of Kubernetes.")
    ] = None
    advanced_stateful_set_template: Annotated[
        AdvancedStatefulSetTemplate | None, About("Each subset is an advanced StatefulSet.")
    ] = None
    clone_set_template: Annotated[CloneSetTemplate | None, About("Each subset is a CloneSet.")] = None
    deployment_template: Annotated[DeploymentTemplate | None, About("Each subset is a Deployment of Kubernetes.")] = (
        None
    )


class UnitedDeploymentSpec(Struct):
    """What is wanted."""

    replicas: Annotated[
        Int32 | None,
        About("How many pods all subsets have together. The sum of the subsets' replicas if absent."),
    ] = None
    selector: Annotated[
        LabelSelector,
        About(
            "The labels by which the children and their pods are known. The template must carry them.", required=True
        ),
    ] = LabelSelector()
    template: Annotated[Raw, About("The workload that each subset is made by.", shape=SubsetTemplate)] = EMPTY_OBJECT
    topology: Annotated[Topology, About("The subsets, and how pods are spread over them.")] = Topology()
    update_strategy: Annotated[UnitedUpdateStrategy, About("How the subsets go over to a new template.")] = (
        UnitedUpdateStrategy()
    )
    revision_history_limit: Annotated[
        Int32 | None, About("How many revisions are kept that no subset uses any more. 10 if absent.")
    ] = None


class SubsetCondition(Struct):
    """Something that is worth knowing of a subset."""

    type: Annotated[str, About("What the condition is about: Schedulable.", required=True)] = ""
    status: Annotated[str, About("Whether it holds: True, False or Unknown.", required=True)] = ""
    last_transition_time: Annotated[datetime | None, About("When it last changed.")] = None
    reason: Annotated[str, About("Why, in one word for programs.")] = ""
    message: Annotated[str, About("Why, in words for people.")] = ""


class UnitedCondition(Struct):
    """Something that is worth knowing of the whole."""

    type: Annotated[str, About("What the condition is about.")] = ""
    status: Annotated[str, About("Whether it holds: True, False or Unknown.")] = ""
    last_transition_time: Annotated[datetime | None, About("When the status last changed.")] = None
    reason: Annotated[str, About("Why, in one word for programs.")] = ""
    message: Annotated[str, About("Why, in words for people.")] = ""


class SubsetStatus(Struct):
    """What was last seen of a subset."""

    name: Annotated[str, About("Name of the subset.")] = ""
    replicas: Annotated[Int32, About("Number of its pods, as its workload tells it.")] = 0
    allocated_replicas: Annotated[
        Int32 | None, About("Number of pods that it is to have. As many as replicas if absent.")
    ] = None
    ready_replicas: Annotated[Int32, About("Number of its pods that are ready.")] = 0
    partition: Annotated[Int32, About("How many of its pods stay at the old template.")] = 0
    reserved_pods: Annotated[Int32, About("Number of its pods that are stuck, and replaced in other subsets.")] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        About("Schedulable, once a pod of the subset was stuck.", shape=tuple[SubsetCondition, ...]),
    ] = ()

    @property
    def allocated(self) -> int:
        return self.replicas if self.allocated_replicas is None else self.allocated_replicas


class UnitedCounts(Struct):
    """What was last seen, as far as both versions say it alike."""

    observed_generation: Annotated[Int64, About("The generation of the object that this status belongs to.")] = 0
    replicas: Annotated[Int32, About("Number of pods of all subsets, without reserved ones.", required=True)] = 0
    ready_replicas: Annotated[Int32, About("Number of those that are ready.")] = 0
    updated_replicas: Annotated[Int32, About("Number of pods at the present template.", required=True)] = 0
    updated_ready_replicas: Annotated[Int32, About("Number of pods at the present template that are ready.")] = 0
    reserved_pods: Annotated[Int32, About("Number of pods that are stuck, and replaced in other subsets.")] = 0
    collision_count: Annotated[
        Int32 | None, About("How often the name of a new revision was taken by another; it goes into the next name.")
    ] = None
    current_revision: Annotated[str, About("Name of the ControllerRevision that all pods had last.", required=True)] = (
        ""
    )
    label_selector: Annotated[str, About("The selector in text form, for the scale subresource.")] = ""
    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "UnitedDeploymentUpdated, SubsetProvisioned, SubsetUpdated and, where something holds the subsets up, "
            "Waiting.",
            shape=tuple[UnitedCondition, ...],
        ),
    ] = ()
    subset_statuses: Annotated[tuple[SubsetStatus, ...], About("What was last seen of each subset.")] = ()


class UnitedDeploymentStatus(UnitedCounts):
    """What was last seen."""

    updated_revision: Annotated[str, About("Name of the ControllerRevision of the present template.")] = ""


class UnitedDeployment(Struct):
    """A UnitedDeployment spreads the pods of one application over subsets, each made by a workload of its own."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[UnitedDeploymentSpec, About("What is wanted.")] = UnitedDeploymentSpec()
    status: Annotated[UnitedDeploymentStatus, About("What was last seen. Written by the controller.")] = (
        UnitedDeploymentStatus()
    )


UNITED_DEPLOYMENTS = Resource(GROUP, "v1beta1", "uniteddeployments", "UnitedDeployment", True, UnitedDeployment)
