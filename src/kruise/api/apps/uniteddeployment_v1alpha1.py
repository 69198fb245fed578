"""UnitedDeployment in `v1alpha1`: the spec is that of `v1beta1`, the status says some things elsewhere (UD 1.1)."""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.uniteddeployment import UnitedCounts, UnitedDeploymentSpec
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About, Int32
from kruise.machinery.codec import Struct, field


class UpdateStatus(Struct):
    """How far the update has got."""

    updated_revision: Annotated[str, About("Name of the ControllerRevision of the present template.")] = ""
    current_partitions: Annotated[
        dict[str, Int32], About("For each subset, how many of its pods stay at the old template.")
    ] = field(default_factory=dict)


class UnitedDeploymentStatus(UnitedCounts):
    """What was last seen."""

    subset_replicas: Annotated[dict[str, Int32], About("For each subset, how many pods it is to have.")] = field(
        default_factory=dict
    )
    update_status: Annotated[UpdateStatus | None, About("How far the update has got.")] = None


class UnitedDeployment(Struct):
    """A UnitedDeployment spreads the pods of one application over subsets, each made by a workload of its own."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[UnitedDeploymentSpec, About("What is wanted.")] = UnitedDeploymentSpec()
    status: Annotated[UnitedDeploymentStatus, About("What was last seen. Written by the controller.")] = (
        UnitedDeploymentStatus()
    )
