"""ResourceDistribution in `v1alpha1`, where the selector and the failed namespaces have other names.

No controller reads this version; the structs are the source of its schema. `conversion.resourcedistribution` maps it to
the stored version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.resourcedistribution import ConditionBase, Embedded, StatusBase, TargetsBase
from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.schema import About
from kruise.machinery.codec import Struct


class Targets(TargetsBase):
    """Which namespaces get a copy: those that the list or the selector names."""

    namespace_label_selector: Annotated[
        LabelSelector, About("Namespaces that get one, by their labels. An empty one selects none.")
    ] = LabelSelector()


class ResourceDistributionSpec(Struct):
    """What is wanted."""

    resource: Embedded = EMPTY_OBJECT
    targets: Annotated[Targets, About("Which namespaces get a copy.", required=True)] = Targets()


class DistributionCondition(ConditionBase):
    """One thing that may go wrong, and where it did."""

    failed_namespace: Annotated[tuple[str, ...], About("The namespaces in which it went wrong.")] = ()


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
