"""The CustomResourceDefinition of StatefulSet."""

from __future__ import annotations

from kruise.api.apps import statefulset, statefulset_v1alpha1
from kruise.api.apps.definitions.columns import AGE, CONTAINERS, DESIRED, READY, SCALE, UPDATED
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    DESIRED,
    Column("CURRENT", "integer", ".status.replicas", description="Pods that exist."),
    UPDATED,
    READY,
    AGE,
    *CONTAINERS,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="StatefulSet",
    plural="statefulsets",
    short_names=("sts", "asts"),
    versions=(
        Version(name="v1alpha1", type=statefulset_v1alpha1.StatefulSet, scale=SCALE, columns=_COLUMNS),
        Version(
            name="v1beta1",
            type=statefulset.StatefulSet,
            is_stored=True,
            scale=SCALE,
            columns=_COLUMNS,
            # A well-known manifest has `exec` in a hook (ST-144). Admission says that it has no effect.
            open_objects=tuple(f"spec.lifecycle.{hook}" for hook in ("preNormal", "inPlaceUpdate", "preDelete")),
        ),
    ),
    is_converted=True,
)
"""ST-1 to ST-5."""
