"""The CustomResourceDefinition of BroadcastJob."""

from __future__ import annotations

from kruise.api.apps.broadcastjob import BroadcastJob
from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("Desired", "integer", ".status.desired", description="Nodes that the job runs on."),
    Column("Active", "integer", ".status.active", description="Pods that have not finished."),
    Column("Succeeded", "integer", ".status.succeeded", description="Pods that have succeeded."),
    Column("Failed", "integer", ".status.failed", description="Pods that have failed."),
    AGE,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="BroadcastJob",
    plural="broadcastjobs",
    short_names=("bcj",),
    versions=(
        Version(name="v1alpha1", type=BroadcastJob, columns=_COLUMNS),
        Version(name="v1beta1", type=BroadcastJob, is_stored=True, columns=_COLUMNS),
    ),
)
"""BJ-1 to BJ-5: both versions are the same, so nothing is converted."""
