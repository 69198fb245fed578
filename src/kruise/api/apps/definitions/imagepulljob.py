"""The CustomResourceDefinition of ImagePullJob."""

from __future__ import annotations

from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.images import ImagePullJob
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired", description="Nodes that are to pull."),
    Column("ACTIVE", "integer", ".status.active", description="Nodes that pull, or are about to."),
    Column("SUCCEED", "integer", ".status.succeeded", description="Nodes that have the image."),
    Column("FAILED", "integer", ".status.failed", description="Nodes that could not pull it."),
    AGE,
)
_MESSAGE = Column("MESSAGE", "string", ".status.message", description="How far the job is.")

DEFINITION: Definition = definition(
    group=GROUP,
    kind="ImagePullJob",
    plural="imagepulljobs",
    versions=(
        Version(name="v1alpha1", type=ImagePullJob, columns=(*_COLUMNS, _MESSAGE)),
        Version(name="v1beta1", type=ImagePullJob, is_stored=True, columns=_COLUMNS),
    ),
)
"""IPJ 4.1."""
