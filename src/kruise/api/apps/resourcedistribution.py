"""ResourceDistribution, as it is stored (`v1beta1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kruise.api.apps.shared import GROUP
from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct

Embedded = Annotated[
    Raw,
    About(
        "The Secret or ConfigMap to copy, as a whole. Its namespace does not count.", required=True, is_embedded=True
    ),
]


class DistributionNamespace(Struct):
    """A namespace by its name."""

    name: Annotated[str, About("Name of the namespace.")] = ""


class NamespaceList(Struct):
    """Namespaces by their names."""

    list: Annotated[tuple[DistributionNamespace, ...], About("The namespaces.")] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.list)


class TargetsBase(Struct):
    """Which namespaces get a copy, as far as both versions say it alike."""

    all_namespaces: Annotated[
        bool, About("Every namespace, whatever the selector says; kube-system and kube-public only if listed.")
    ] = False
    excluded_namespaces: Annotated[NamespaceList, About("Namespaces that get none, whatever else is said.")] = (
        NamespaceList()
    )
    included_namespaces: Annotated[
        NamespaceList,
        About("Namespaces that get one, existing yet or not; kube-system and kube-public only so."),
    ] = NamespaceList()


class Targets(TargetsBase):
    """Which namespaces get a copy: those that the list or the selector names."""

    namespace_selector: Annotated[
        LabelSelector, About("Namespaces that get one, by their labels. An empty one selects none.")
    ] = LabelSelector()


class ResourceDistributionSpec(Struct):
    """What is wanted."""

    resource: Embedded = EMPTY_OBJECT
    targets: Annotated[Targets, About("Which namespaces get a copy.", required=True)] = Targets()


class ConditionBase(Struct):
    type: Annotated[str, About("What may have gone wrong.", required=True)] = ""
    status: Annotated[str, About("True: it did.", required=True)] = ""
    last_transition_time: Annotated[datetime | None, About("When the status changed last.")] = None
    reason: Annotated[str, About("The text of an error, or Succeeded.")] = ""


class DistributionCondition(ConditionBase):
    """One thing that may go wrong, and where it did."""

    failed_namespaces: Annotated[tuple[str, ...], About("The namespaces in which it went wrong.")] = ()


class StatusBase(Struct):
    """What was last seen, as far as both versions say it alike."""

    desired: Annotated[Int32, About("Number of namespaces that should have a copy.")] = 0
    succeeded: Annotated[Int32, About("Number of those that have it as it should be.")] = 0
    failed: Annotated[Int32, About("Number of those that do not.")] = 0
    observed_generation: Annotated[Int64, About("The generation of the spec that this is about.")] = 0


class ResourceDistributionStatus(StatusBase):
    """What was last seen."""

    conditions: Annotated[tuple[DistributionCondition, ...], About("What may have gone wrong: always all six.")] = ()


class ResourceDistribution(Struct):
    """A ResourceDistribution keeps copies of one Secret or ConfigMap in many namespaces."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ResourceDistributionSpec, About("What is wanted.")] = ResourceDistributionSpec()
    status: Annotated[ResourceDistributionStatus, About("What was last seen. Written by the controller.")] = (
        ResourceDistributionStatus()
    )


RESOURCE_DISTRIBUTIONS = Resource(
    GROUP, "v1beta1", "resourcedistributions", "ResourceDistribution", False, ResourceDistribution
)
