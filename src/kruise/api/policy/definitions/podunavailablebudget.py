"""The CustomResourceDefinition of PodUnavailableBudget."""

from __future__ import annotations

from kruise.api.definitions import Column, Definition, Version, definition
from kruise.api.policy import podunavailablebudget, podunavailablebudget_v1alpha1
from kruise.api.policy.shared import GROUP

_COLUMNS = (
    Column(
        "Allowed", "integer", ".status.unavailableAllowed", description="Pods that may be made unavailable right now."
    ),
    Column("Current", "integer", ".status.currentAvailable", description="Pods that are available."),
    Column("Desired", "integer", ".status.desiredAvailable", description="Pods that have to stay available."),
    Column("Total", "integer", ".status.totalReplicas", description="Pods that there should be."),
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="PodUnavailableBudget",
    plural="podunavailablebudgets",
    short_names=("pub",),
    versions=(
        Version(name="v1alpha1", type=podunavailablebudget_v1alpha1.PodUnavailableBudget, columns=_COLUMNS),
        Version(name="v1beta1", type=podunavailablebudget.PodUnavailableBudget, is_stored=True, columns=_COLUMNS),
    ),
    is_converted=True,
)
"""PUB section 1."""
