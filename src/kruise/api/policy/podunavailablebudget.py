"""PodUnavailableBudget, as it is stored (`v1beta1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kruise.api.apps.shared import IntOrPercent
from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.policy.shared import GROUP
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct, field

DELETE, UPDATE, EVICT, RESIZE = "DELETE", "UPDATE", "EVICT", "RESIZE"
OPERATIONS = (DELETE, UPDATE, EVICT, RESIZE)

PROTECT_OPERATIONS = "kruise.io/pub-protect-operations"
PROTECT_TOTAL_REPLICAS = "pub.kruise.io/protect-total-replicas"
"""Annotations of a budget in v1alpha1 that later became fields."""


class TargetReference(Struct):
    """A workload in the namespace of the budget."""

    api_version: Annotated[str, About("Group and version of the workload. The version is not compared.")] = ""
    kind: Annotated[str, About("Kind of the workload.")] = ""
    name: Annotated[str, About("Name of the workload.")] = ""


class BudgetSpecBase(Struct):
    """What is promised, as far as both versions say it alike."""

    selector: Annotated[
        LabelSelector | None,
        About("The pods that are protected, by their labels. Not together with targetRef. It cannot be changed later."),
    ] = None
    target_ref: Annotated[
        TargetReference | None,
        About("The workload whose pods are protected. Not together with selector. It cannot be changed later."),
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None,
        About(
            "How many pods may be unavailable: a number, or a percentage of those that there should be, rounded up. "
            "Not together with minAvailable."
        ),
    ] = None
    min_available: Annotated[
        IntOrPercent | None,
        About(
            "How many pods must stay available: a number, or a percentage of those that there should be, rounded up. "
            "Not together with maxUnavailable."
        ),
    ] = None


class PodUnavailableBudgetSpec(BudgetSpecBase):
    """What is promised."""

    protect_operations: Annotated[
        tuple[str, ...],
        About(
            "What the budget is asked about: DELETE, UPDATE, EVICT, RESIZE. DELETE, UPDATE and EVICT if absent.",
            shape=tuple[Literal["DELETE", "UPDATE", "EVICT", "RESIZE"], ...],
        ),
    ] = ()
    protect_total_replicas: Annotated[
        Int32 | None,
        About(
            "How many pods there should be, where the workloads of the pods do not tell, or are not to be asked.",
            minimum=1,
        ),
    ] = None
    ignored_pod_selector: Annotated[
        LabelSelector | None, About("Pods that are never refused anything, by their labels.")
    ] = None


class PodIdentity(Struct):
    """Which pod a record is about: another one may have its name."""

    uid: Annotated[str, About("Uid of the pod.")] = ""
    resource_version: Annotated[str, About("Version of the pod that was looked at.")] = ""


class PodUnavailableBudgetStatus(Struct):
    """What was last seen."""

    observed_generation: Annotated[Int64, About("Generation of the budget that the numbers are for.")] = 0
    disrupted_pods: Annotated[
        dict[str, datetime],
        About("Pods whose deletion, eviction or resize was let through, and has not been seen yet, with the time."),
    ] = field(default_factory=dict)
    unavailable_pods: Annotated[
        dict[str, datetime],
        About("Pods whose update in place was let through within the last seconds, with the time."),
    ] = field(default_factory=dict)
    identities: Annotated[
        dict[str, PodIdentity],
        About("Which pods disruptedPods and unavailablePods are about, by name: another pod may get the name."),
    ] = field(default_factory=dict)
    pods_version: Annotated[
        Int64, About("Version of the pods that the numbers are of: whoever has seen older ones only leaves them alone.")
    ] = 0
    unavailable_allowed: Annotated[Int32, About("How many more pods may be made unavailable now.", required=True)] = 0
    current_available: Annotated[Int32, About("How many pods are available now.", required=True)] = 0
    desired_available: Annotated[Int32, About("How many pods have to stay available.", required=True)] = 0
    total_replicas: Annotated[Int32, About("How many pods there should be.", required=True)] = 0


class PodUnavailableBudget(Struct):
    """A PodUnavailableBudget limits how many pods of an application are made unavailable at a time: by deletion, by
    eviction, or by an update in place."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodUnavailableBudgetSpec, About("What is promised.")] = PodUnavailableBudgetSpec()
    status: Annotated[
        PodUnavailableBudgetStatus,
        About("What was last seen. Written by the controller, and by whoever takes from the budget."),
    ] = PodUnavailableBudgetStatus()


POD_UNAVAILABLE_BUDGETS = Resource(
    GROUP, "v1beta1", "podunavailablebudgets", "PodUnavailableBudget", True, PodUnavailableBudget
)
