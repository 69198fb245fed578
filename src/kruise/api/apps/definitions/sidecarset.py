"""The CustomResourceDefinition of SidecarSet."""

from __future__ import annotations

from kruise.api.apps import sidecarset, sidecarset_v1alpha1
from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("MATCHED", "integer", ".status.matchedPods", description="Pods that have the sidecars."),
    Column("UPDATED", "integer", ".status.updatedPods", description="Pods of these that have the present content."),
    Column("READY", "integer", ".status.readyPods", description="Pods of these that are ready."),
    AGE,
)
_OPEN = ("spec.containers[]", "spec.initContainers[]")
"""They have all fields of a container of a pod beside those that are listed."""

DEFINITION: Definition = definition(
    group=GROUP,
    kind="SidecarSet",
    plural="sidecarsets",
    is_namespaced=False,
    versions=(
        Version(name="v1alpha1", type=sidecarset_v1alpha1.SidecarSet, columns=_COLUMNS, open_objects=_OPEN),
        Version(name="v1beta1", type=sidecarset.SidecarSet, is_stored=True, columns=_COLUMNS, open_objects=_OPEN),
    ),
    is_converted=True,
)
