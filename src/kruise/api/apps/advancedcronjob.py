"""AdvancedCronJob, as it is stored (`v1beta1`)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Literal

from kruise.api.apps.broadcastjob import BroadcastJobSpec
from kruise.api.apps.images import ImageListPullJobSpec
from kruise.api.apps.shared import GROUP
from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import EMPTY_OBJECT
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Raw, Struct, field

ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"
CONCURRENCY_POLICIES = (ALLOW, FORBID, REPLACE)
SCHEDULED_AT = "apps.kruise.io/scheduled-at"
"""Annotation of what it makes: the moment that a run is of (ACJ-44)."""


class Unspecified(Struct):
    """Labels and annotations of each run."""


class TemplateMetadata(Struct):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class BroadcastJobTemplate(Struct):
    """A BroadcastJob for each run."""

    metadata: Annotated[TemplateMetadata, About("Labels and annotations of each run.", shape=Unspecified)] = (
        TemplateMetadata()
    )
    spec: Annotated[Raw, About("What each run is.", shape=BroadcastJobSpec)] = EMPTY_OBJECT


class ImageListPullJobTemplate(Struct):
    """An ImageListPullJob for each run."""

    metadata: Annotated[TemplateMetadata, About("Labels and annotations of each run.", shape=Unspecified)] = (
        TemplateMetadata()
    )
    spec: Annotated[Raw, About("What each run is.", shape=ImageListPullJobSpec)] = EMPTY_OBJECT


class JobTemplate(Struct):
    """A Job for each run. It is not in the schema: Kubernetes' own kinds are left open."""

    metadata: TemplateMetadata = TemplateMetadata()
    spec: Raw = EMPTY_OBJECT


JobTemplateField = Annotated[
    JobTemplate | None,
    About("A Job of Kubernetes for each run: metadata and spec as in a CronJob's jobTemplate.", shape=Raw),
]
BroadcastJobTemplateField = Annotated[BroadcastJobTemplate | None, About("A BroadcastJob for each run.")]


class CronJobTemplate(Struct):
    """What each run makes. Exactly one of these must be given."""

    job_template: JobTemplateField = None
    broadcast_job_template: BroadcastJobTemplateField = None
    image_list_pull_job_template: Annotated[
        ImageListPullJobTemplate | None, About("An ImageListPullJob for each run.")
    ] = None


class AdvancedCronJobBase(Struct):
    """What is wanted, as far as both versions say it alike."""

    schedule: Annotated[
        str,
        About(
            "When to run, in cron's language: five fields, @daily and its like, or @every with a duration.",
            required=True,
            min_length=0,
        ),
    ] = ""
    time_zone: Annotated[
        str | None, About("The zone of the schedule, such as Asia/Shanghai. That of the manager if absent.")
    ] = None
    starting_deadline_seconds: Annotated[
        Int64 | None, About("How many seconds after its time a missed run may still start. No limit if absent.")
    ] = None
    concurrency_policy: Annotated[
        str,
        About(
            "What happens when a run is due while an earlier one is active. Allow: both run. Forbid: the new one waits "
            "until the earlier one has ended. Replace: the earlier one is deleted. Allow if absent; Replace for "
            "ImageListPullJobs.",
            shape=Literal["Allow", "Forbid", "Replace"],
        ),
    ] = ""
    paused: Annotated[bool | None, About("Whether no new runs start. False if absent.")] = None
    successful_jobs_history_limit: Annotated[
        Int32 | None, About("How many runs that have succeeded are kept. 3 if absent.")
    ] = None
    failed_jobs_history_limit: Annotated[
        Int32 | None, About("How many runs that have failed are kept. 1 if absent.")
    ] = None


class AdvancedCronJobSpec(AdvancedCronJobBase):
    """What is wanted."""

    template: Annotated[CronJobTemplate, About("What each run makes.", required=True)] = CronJobTemplate()


class ActiveReference(Struct):
    """A run that has not ended."""

    is_atomic: ClassVar[bool] = True

    api_version: Annotated[str, About("API version of the run.")] = ""
    kind: Annotated[str, About("Kind of the run.")] = ""
    namespace: Annotated[str, About("Namespace of the run.")] = ""
    name: Annotated[str, About("Name of the run.")] = ""
    uid: Annotated[str, About("Identity of the run.")] = ""
    resource_version: Annotated[str, About("Version of the run when it was first seen.")] = ""
    field_path: Annotated[str, About("Never set.")] = ""


class AdvancedCronJobStatus(Struct):
    """What was last seen."""

    type: Annotated[str, About("What each run makes: Job, BroadcastJob or ImageListPullJob.")] = ""
    active: Annotated[tuple[ActiveReference, ...], About("Runs that have not ended.")] = ()
    last_schedule_time: Annotated[datetime | None, About("The moment that the newest run is of.")] = None


class AdvancedCronJob(Struct):
    """An AdvancedCronJob makes a Job, a BroadcastJob or an ImageListPullJob at the times of a schedule."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[AdvancedCronJobSpec, About("What is wanted.")] = AdvancedCronJobSpec()
    status: Annotated[AdvancedCronJobStatus, About("What was last seen. Written by the controller.")] = (
        AdvancedCronJobStatus()
    )


ADVANCED_CRON_JOBS = Resource(GROUP, "v1beta1", "advancedcronjobs", "AdvancedCronJob", True, AdvancedCronJob)
