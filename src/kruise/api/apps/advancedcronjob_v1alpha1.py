"""AdvancedCronJob in `v1alpha1`: without a template for ImageListPullJobs (ACJ-2).

No controller reads this version; the structs are the source of its schema. `conversion.advancedcronjob` maps it to the
stored version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.advancedcronjob import (
    AdvancedCronJobBase,
    AdvancedCronJobStatus,
    BroadcastJobTemplateField,
    JobTemplateField,
)
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About
from kruise.machinery.codec import Struct


class CronJobTemplate(Struct):
    """What each run makes. Exactly one of these must be given."""

    job_template: JobTemplateField = None
    broadcast_job_template: BroadcastJobTemplateField = None


class AdvancedCronJobSpec(AdvancedCronJobBase):
    """What is wanted."""

    template: Annotated[CronJobTemplate, About("What each run makes.", required=True)] = CronJobTemplate()


class AdvancedCronJob(Struct):
    """An AdvancedCronJob makes a Job or a BroadcastJob at the times of a schedule."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[AdvancedCronJobSpec, About("What is wanted.")] = AdvancedCronJobSpec()
    status: Annotated[AdvancedCronJobStatus, About("What was last seen. Written by the controller.")] = (
        AdvancedCronJobStatus()
    )
