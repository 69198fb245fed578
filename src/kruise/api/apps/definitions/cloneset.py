"""The CustomResourceDefinition of CloneSet."""

from __future__ import annotations

from kruise.api.apps import cloneset, cloneset_v1alpha1
from kruise.api.apps.definitions.columns import AGE, CONTAINERS, DESIRED, READY, SCALE, UPDATED
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    DESIRED,
    UPDATED,
    Column(
        "UPDATED_READY", "integer", ".status.updatedReadyReplicas", description="Pods at the update revision, ready."
    ),
    Column(
        "UPDATED_AVAILABLE",
        "integer",
        ".status.updatedAvailableReplicas",
        description="Pods at the update revision, available.",
    ),
    READY,
    Column("TOTAL", "integer", ".status.replicas", description="Pods that exist."),
    AGE,
    *CONTAINERS,
    Column("SELECTOR", "string", ".status.labelSelector", priority=1, description="The selector in text form."),
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="CloneSet",
    plural="clonesets",
    short_names=("clone",),
    versions=(
        Version(name="v1alpha1", type=cloneset_v1alpha1.CloneSet, scale=SCALE, columns=_COLUMNS),
        Version(
            name="v1beta1",
            type=cloneset.CloneSet,
            is_stored=True,
            scale=SCALE,
            columns=_COLUMNS,
        ),
    ),
    is_converted=True,
)
"""CS-1 to CS-5."""
