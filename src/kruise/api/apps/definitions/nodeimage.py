"""The CustomResourceDefinition of NodeImage."""

from __future__ import annotations

from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.images import NodeImage
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("DESIRED", "integer", ".status.desired", description="Tasks of the node."),
    Column("PULLING", "integer", ".status.pulling", description="Tasks that are pulled."),
    Column("SUCCEED", "integer", ".status.succeeded", description="Tasks that succeeded."),
    Column("FAILED", "integer", ".status.failed", description="Tasks that failed."),
    AGE,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="NodeImage",
    plural="nodeimages",
    is_namespaced=False,
    is_derived=True,
    versions=(
        Version(name="v1alpha1", type=NodeImage, columns=_COLUMNS),
        Version(name="v1beta1", type=NodeImage, is_stored=True, columns=_COLUMNS),
    ),
)
"""NI 3.1."""
