"""The CustomResourceDefinition of ResourceDistribution."""

from __future__ import annotations

from kruise.api.apps import resourcedistribution, resourcedistribution_v1alpha1
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired", description="Namespaces that should have a copy."),
    Column("SUCCEED", "integer", ".status.succeeded", description="Namespaces that have it."),
    Column("FAILED", "integer", ".status.failed", description="Namespaces that do not."),
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="ResourceDistribution",
    plural="resourcedistributions",
    short_names=("distributor",),
    is_namespaced=False,
    versions=(
        Version(name="v1alpha1", type=resourcedistribution_v1alpha1.ResourceDistribution, columns=_COLUMNS),
        Version(name="v1beta1", type=resourcedistribution.ResourceDistribution, is_stored=True, columns=_COLUMNS),
    ),
    is_converted=True,
)
"""RD-1, RD sections 1 to 3."""
