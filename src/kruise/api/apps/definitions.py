"""The CustomResourceDefinitions of the group `apps.kruise.io`."""

from __future__ import annotations

from kruise.api.apps import cloneset, cloneset_v1alpha1
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Scale, Version, definition

_CLONE_SET_COLUMNS = (
    Column("DESIRED", "integer", ".spec.replicas", description="Number of pods that are wanted."),
    Column("UPDATED", "integer", ".status.updatedReplicas", description="Pods at the update revision."),
    Column(
        "UPDATED_READY", "integer", ".status.updatedReadyReplicas", description="Pods at the update revision, ready."
    ),
    Column(
        "UPDATED_AVAILABLE",
        "integer",
        ".status.updatedAvailableReplicas",
        description="Pods at the update revision, available.",
    ),
    Column("READY", "integer", ".status.readyReplicas", description="Pods that are ready."),
    Column("TOTAL", "integer", ".status.replicas", description="Pods that exist."),
    Column("AGE", "date", ".metadata.creationTimestamp", description="Time since the CloneSet was created."),
    Column(
        "CONTAINERS",
        "string",
        ".spec.template.spec.containers[*].name",
        priority=1,
        description="The first container of the template.",
    ),
    Column(
        "IMAGES",
        "string",
        ".spec.template.spec.containers[*].image",
        priority=1,
        description="The image of the first container of the template.",
    ),
    Column("SELECTOR", "string", ".status.labelSelector", priority=1, description="The selector in text form."),
)
_CLONE_SET_SCALE = Scale(label_selector=".status.labelSelector")

CLONE_SET_DEFINITION: Definition = definition(
    group=GROUP,
    kind="CloneSet",
    plural="clonesets",
    short_names=("clone",),
    versions=(
        Version(name="v1alpha1", type=cloneset_v1alpha1.CloneSet, scale=_CLONE_SET_SCALE, columns=_CLONE_SET_COLUMNS),
        Version(
            name="v1beta1",
            type=cloneset.CloneSet,
            is_stored=True,
            scale=_CLONE_SET_SCALE,
            columns=_CLONE_SET_COLUMNS,
        ),
    ),
    is_converted=True,
)
"""CS-1 to CS-5."""
