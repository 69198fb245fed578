"""Columns and subresources that several kinds have."""

from __future__ import annotations

from kruise.api.definitions import Column, Scale

AGE = Column("AGE", "date", ".metadata.creationTimestamp", description="Time since the object was created.")
CONTAINERS = (
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
)
DESIRED = Column("DESIRED", "integer", ".spec.replicas", description="Number of pods that are wanted.")
UPDATED = Column("UPDATED", "integer", ".status.updatedReplicas", description="Pods at the update revision.")
READY = Column("READY", "integer", ".status.readyReplicas", description="Pods that are ready.")
SCALE = Scale(label_selector=".status.labelSelector")
