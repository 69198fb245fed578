"""The CustomResourceDefinition of UnitedDeployment."""

from __future__ import annotations

from kruise.api.apps import uniteddeployment, uniteddeployment_v1alpha1
from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Scale, Version, definition

_SCALE = Scale(label_selector=".status.labelSelector")
_COLUMNS = (
    Column("DESIRED", "integer", ".spec.replicas", description="Pods that all subsets are to have together."),
    Column("CURRENT", "integer", ".status.replicas", description="Pods that exist."),
    Column("UPDATED", "integer", ".status.updatedReplicas", description="Pods at the present template."),
    Column("READY", "integer", ".status.readyReplicas", description="Pods that are ready."),
    AGE,
)

_CLONES = "spec.template.cloneSetTemplate.spec"
"""In v1alpha1 it may be written as CloneSets of v1alpha1 are (UD-5)."""

DEFINITION: Definition = definition(
    group=GROUP,
    kind="UnitedDeployment",
    plural="uniteddeployments",
    short_names=("ud",),
    versions=(
        Version(
            name="v1alpha1",
            type=uniteddeployment_v1alpha1.UnitedDeployment,
            scale=_SCALE,
            columns=_COLUMNS,
            open_objects=tuple(f"{_CLONES}.{name}" for name in ("updateStrategy", "scaleStrategy")),
        ),
        Version(
            name="v1beta1",
            type=uniteddeployment.UnitedDeployment,
            is_stored=True,
            scale=_SCALE,
            columns=_COLUMNS,
        ),
    ),
    is_converted=True,
)
"""UD section 1."""
