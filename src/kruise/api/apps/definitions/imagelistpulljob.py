"""The CustomResourceDefinition of ImageListPullJob."""

from __future__ import annotations

from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.images import ImageListPullJob
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired", description="Images that are to be pulled."),
    Column("SUCCEEDED", "integer", ".status.succeeded", description="Images that every node has."),
    Column("COMPLETED", "integer", ".status.completed", description="Images that every node has pulled, or failed to."),
    AGE,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="ImageListPullJob",
    plural="imagelistpulljobs",
    versions=(
        Version(name="v1alpha1", type=ImageListPullJob, columns=_COLUMNS),
        Version(name="v1beta1", type=ImageListPullJob, is_stored=True, columns=_COLUMNS),
    ),
)
"""ILPJ 5.1."""
