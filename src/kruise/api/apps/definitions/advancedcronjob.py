"""The CustomResourceDefinition of AdvancedCronJob."""

from __future__ import annotations

from kruise.api.apps import advancedcronjob, advancedcronjob_v1alpha1
from kruise.api.apps.definitions.columns import AGE
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("Schedule", "string", ".spec.schedule", description="When it runs."),
    Column("Type", "string", ".status.type", description="What each run makes."),
    Column("LastScheduleTime", "date", ".status.lastScheduleTime", description="Time since the newest run."),
    AGE,
)
# Labels and annotations of a template count, so the API server must not prune them (ACJ-6, ACJ-74).
_METADATA = "spec.template.broadcastJobTemplate.metadata"
_LIST_METADATA = "spec.template.imageListPullJobTemplate.metadata"

DEFINITION: Definition = definition(
    group=GROUP,
    kind="AdvancedCronJob",
    plural="advancedcronjobs",
    short_names=("acj",),
    versions=(
        Version(
            name="v1alpha1",
            type=advancedcronjob_v1alpha1.AdvancedCronJob,
            columns=_COLUMNS,
            open_objects=(_METADATA,),
        ),
        Version(
            name="v1beta1",
            type=advancedcronjob.AdvancedCronJob,
            is_stored=True,
            columns=_COLUMNS,
            open_objects=(_METADATA, _LIST_METADATA),
        ),
    ),
    is_converted=True,
)
"""ACJ-1 to ACJ-6."""
