"""WorkloadSpread, as `v1alpha1` says it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kruise.api.apps import workloadspread as stored
from kruise.api.apps.workloadspread import NodeSelectorTerm, PreferredSchedulingTerm, SpreadBase, SubsetBase
from kruise.api.meta import Condition, ObjectMeta
from kruise.api.native import pod
from kruise.api.schema import About, Int64
from kruise.machinery.codec import Struct, field


class Subset(SubsetBase):
    """A part of the pods. Subsets are filled in their order, and drained in the reverse one."""

    required_node_selector_term: Annotated[
        pod.NodeSelectorTerm | None,
        About("Nodes that pods of the subset must run on.", shape=NodeSelectorTerm, is_atomic=True),
    ] = None
    preferred_node_selector_terms: Annotated[
        tuple[pod.PreferredSchedulingTerm, ...],
        About("Nodes that pods of the subset prefer.", shape=tuple[PreferredSchedulingTerm, ...]),
    ] = ()


class WorkloadSpreadSpec(SpreadBase):
    """What is wanted."""

    subsets: Annotated[
        tuple[Subset, ...], About("The subsets, in the order in which they are filled. At least one.", required=True)
    ] = ()


class SubsetCondition(Struct):
    """A fact about a subset."""

    type: Annotated[str, About("Which fact: Schedulable.", required=True)] = ""
    status: Annotated[str, About("True, False or Unknown.", required=True)] = ""
    last_transition_time: Annotated[datetime | None, About("When the status last changed.")] = None
    reason: Annotated[str, About("Why, in one word: Sufficient or PodUnschedulable.")] = ""
    message: Annotated[str, About("Why, in words.")] = ""


class SubsetStatus(stored.SubsetCounts):
    """How full a subset is."""

    conditions: Annotated[
        tuple[Condition, ...],
        About(
            "Schedulable: whether the subset gets pods. Only while pods are rescheduled.",
            shape=tuple[SubsetCondition, ...],
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
