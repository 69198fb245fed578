"""The CustomResourceDefinition of WorkloadSpread."""

from __future__ import annotations

from kruise.api.apps import workloadspread, workloadspread_v1alpha1
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("WorkloadName", "string", ".spec.targetRef.name", description="The workload whose pods are spread."),
    Column("WorkloadKind", "string", ".spec.targetRef.kind", description="Its kind."),
    Column(
        "Adaptive",
        "boolean",
        '.spec.scheduleStrategy.type[?(@ == "Adaptive")]',
        description="Whether pods that find no node move to other subsets.",
    ),
    Column("Age", "date", ".metadata.creationTimestamp", description="Time since the object was created."),
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="WorkloadSpread",
    plural="workloadspreads",
    short_names=("ws",),
    versions=(
        Version(name="v1alpha1", type=workloadspread_v1alpha1.WorkloadSpread, columns=_COLUMNS),
        Version(name="v1beta1", type=workloadspread.WorkloadSpread, is_stored=True, columns=_COLUMNS),
    ),
    is_converted=True,
)
"""WS-2, WS-3."""
