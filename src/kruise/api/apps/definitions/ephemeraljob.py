"""The CustomResourceDefinition of EphemeralJob."""

from __future__ import annotations

from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.ephemeraljob import EphemeralJob
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("STATUS", "string", ".status.phase", description="How far the job has got."),
    Column("MATCH", "integer", ".status.match", description="Pods that get the containers, or have them."),
    Column("SUCCEED", "integer", ".status.succeeded", description="Pods in which all containers ended well."),
    Column("FAILED", "integer", ".status.failed", description="Pods in which a container failed."),
    Column("RUNNING", "integer", ".status.running", description="Pods in which a container runs."),
    Column("WAITING", "integer", ".status.waiting", description="Pods in which a container has not started yet."),
    AGE,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="EphemeralJob",
    plural="ephemeraljobs",
    short_names=("ejob",),
    versions=(Version(name="v1alpha1", type=EphemeralJob, is_stored=True, columns=_COLUMNS),),
)
"""EJ-1, EJ-2."""
