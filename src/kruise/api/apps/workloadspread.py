"""WorkloadSpread, as it is stored (`v1beta1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kruise.api.apps.placing import NodeSelectorRequirement, Toleration
from kruise.api.apps.shared import GROUP, IntOrPercent
from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.native import pod
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct, field

ADAPTIVE, FIXED = "Adaptive", "Fixed"
SCHEDULE_TYPES = (ADAPTIVE, FIXED, "")
SCHEDULABLE = "Schedulable"
CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
CONDITION_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
UNLIMITED = -1
"""`missingReplicas` of a subset without a limit."""


# How the parts of pods are described that a subset takes over


class NodeSelectorTerm(Struct):
    """Nodes, by their labels and fields."""

    match_expressions: Annotated[
        tuple[NodeSelectorRequirement, ...], About("Requirements on labels of nodes. All must hold.", is_atomic=True)
    ] = ()
    match_fields: Annotated[
        tuple[NodeSelectorRequirement, ...], About("Requirements on fields of nodes. All must hold.", is_atomic=True)
    ] = ()


class PreferredSchedulingTerm(Struct):
    """Nodes that are preferred, and how much."""

    weight: Annotated[Int32, About("How much these nodes are preferred, from 1 to 100.", required=True)] = 0
    preference: Annotated[NodeSelectorTerm, About("The nodes.", required=True, is_atomic=True)] = NodeSelectorTerm()


# The spec


class TargetReference(Struct):
    """A workload of the same namespace."""

    api_version: Annotated[str, About("Group and version of the workload.", required=True)] = ""
    kind: Annotated[str, About("Kind of the workload.", required=True)] = ""
    name: Annotated[str, About("Name of the workload.", required=True)] = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]


class TargetFilter(Struct):
    """Which part of a workload's pods is spread."""

    selector: Annotated[
        LabelSelector | None, About("Labels of the pods that are spread. All pods of the target if absent.")
    ] = None
    replicas_path_list: Annotated[
        tuple[str, ...],
        About(
            "Paths in the target, such as spec.groups.1.replicas, whose numbers add up to the replicas that "
            "percentages are taken of. The target's own replicas if absent."
        ),
    ] = ()


class SubsetBase(Struct):
    """A part of the pods, as far as both versions say it alike."""

    name: Annotated[str, About("Name of the subset, which no other subset of this object has.", required=True)] = ""
    tolerations: Annotated[
        tuple[pod.Toleration, ...],
        About("Tolerations that pods of the subset get beside their own.", shape=tuple[Toleration, ...]),
    ] = ()
    max_replicas: Annotated[
        IntOrPercent | None,
        About(
            "How many pods the subset takes at most: a number, or a percentage of the target's replicas, rounded up. "
            "All subsets use numbers, or all use percentages. No limit if absent."
        ),
    ] = None
    patch: Annotated[
        Raw,
        About("A strategic merge patch on the pods of the subset when they are created: metadata and spec."),
    ] = Raw()


class Subset(SubsetBase):
    """A part of the pods. Subsets are filled in their order, and drained in the reverse one."""

    required_node_selector: Annotated[
        pod.NodeSelectorTerm | None,
        About("Nodes that pods of the subset must run on.", shape=NodeSelectorTerm, is_atomic=True),
    ] = None
    preferred_node_selector: Annotated[
        tuple[pod.PreferredSchedulingTerm, ...],
        About("Nodes that pods of the subset prefer.", shape=tuple[PreferredSchedulingTerm, ...]),
    ] = ()


class AdaptiveStrategy(Struct):
    """What is done about pods that find no node."""

    disable_simulation_schedule: Annotated[bool, About("Accepted, and without effect.")] = False
    reschedule_critical_seconds: Annotated[
        Int32 | None,
        About(
            "How many seconds a pod may wait for a node. Then it is deleted, and its subset gets no pods for five "
            "minutes. Pods wait for ever if absent or 0."
        ),
    ] = None


class ScheduleStrategy(Struct):
    """Whether pods that find no node move to other subsets."""

    type: Annotated[
        str,
        About(
            "Fixed: pods stay in the subset that they were given. Adaptive: those that find no node are made again in "
            "another subset. Fixed if absent.",
            shape=Literal["Adaptive", "Fixed", ""],
        ),
    ] = ""
    adaptive: Annotated[AdaptiveStrategy | None, About("What is done about pods that find no node.")] = None

    @property
    def critical_seconds(self) -> int:
        """How long pods may wait for a node; 0: for ever (WS-8, WS-13)."""
        if self.type != ADAPTIVE or self.adaptive is None:
            return 0
        return self.adaptive.reschedule_critical_seconds or 0


class SpreadBase(Struct):
    """What is wanted, as far as both versions say it alike."""

    target_ref: Annotated[
        TargetReference, About("The workload whose pods are spread. It cannot be changed later.", required=True)
    ] = TargetReference()
    target_filter: Annotated[
        TargetFilter | None, About("Which part of the target's pods is spread. All if absent.")
    ] = None
    schedule_strategy: Annotated[ScheduleStrategy, About("Whether pods that find no node move to other subsets.")] = (
        ScheduleStrategy()
    )


class WorkloadSpreadSpec(SpreadBase):
    """What is wanted."""

    subsets: Annotated[
        tuple[Subset, ...], About("The subsets, in the order in which they are filled. At least one.", required=True)
    ] = ()


# The status


class StandardCondition(Struct):
    """A fact about a subset."""

    type: Annotated[str, About("Which fact: Schedulable.", required=True, pattern=CONDITION_TYPE)] = ""
    status: Annotated[
        str, About("True, False or Unknown.", required=True, shape=Literal["True", "False", "Unknown"])
    ] = ""
    observed_generation: Annotated[Int64, About("The generation that the fact is about.", minimum=0)] = 0
    last_transition_time: Annotated[datetime | None, About("When the status last changed.", required=True)] = None
    reason: Annotated[
        str,
        About(
            "Why, in one word: Sufficient or PodUnschedulable.",
            required=True,
            pattern=CONDITION_REASON,
            min_length=1,
        ),
    ] = ""
    message: Annotated[str, About("Why, in words.", required=True)] = ""


class SubsetCounts(Struct):
    """How full a subset is, as far as both versions say it alike."""

    name: Annotated[str, About("Name of the subset.", required=True)] = ""
    replicas: Annotated[Int32, About("Number of active pods in the subset.", required=True)] = 0
    missing_replicas: Annotated[Int32, About("How many more pods the subset takes. -1: any number.", required=True)] = 0
    creating_pods: Annotated[
        dict[str, datetime],
        About("Pods whose creation was admitted, by name or by the uid in their annotation, until they are seen."),
    ] = field(default_factory=dict)
    deleting_pods: Annotated[
        dict[str, datetime], About("Pods whose deletion was admitted, by name, until they are seen to go.")
    ] = field(default_factory=dict)


class SubsetStatus(SubsetCounts):
    """How full a subset is."""

    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "Schedulable: whether the subset gets pods. Only while pods are rescheduled.",
            shape=tuple[StandardCondition, ...],
            keyed_by="type",
        ),
    ] = ()


class WorkloadSpreadStatus(Struct):
    """What was last seen."""

    observed_generation: Annotated[Int64, About("The generation that was last looked at.")] = 0
    subset_statuses: Annotated[
        tuple[SubsetStatus, ...], About("How full the subsets are, with pods of every version.")
    ] = ()
    versioned_subset_statuses: Annotated[
        dict[str, tuple[SubsetStatus, ...]],
        About("How full the subsets are, by the version of the pods. New pods are admitted by this list."),
    ] = field(default_factory=dict)


class WorkloadSpread(Struct):
    """A WorkloadSpread spreads the pods of a workload over subsets of nodes, without a change of the workload."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[WorkloadSpreadSpec, About("What is wanted.")] = WorkloadSpreadSpec()
    status: Annotated[
        WorkloadSpreadStatus, About("What was last seen. Written by the controller and by admission.")
    ] = WorkloadSpreadStatus()


WORKLOAD_SPREADS = Resource(GROUP, "v1beta1", "workloadspreads", "WorkloadSpread", True, WorkloadSpread)
