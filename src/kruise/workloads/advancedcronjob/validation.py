"""What an AdvancedCronJob may not be, and may not become (ACJ-30 to ACJ-39). Pure.

Both versions are judged as `v1beta1`, where every field has the same path.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.advancedcronjob import ALLOW, CONCURRENCY_POLICIES, AdvancedCronJobSpec
from kruise.api.apps.images import MOST_LISTED, ImageListPullJobSpec
from kruise.api.core import images
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, Path, forbidden, invalid, not_supported
from kruise.api.core.validation import validate_pod_template
from kruise.machinery import codec, cron
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.workloads.advancedcronjob.defaults import IMAGES, TEMPLATE, WITH_PODS
from kruise.workloads.shared import validation
from kruise.workloads.shared.names import job_name
from kruise.workloads.shared.validation import Candidate, not_negative, quoted
from kruise.workloads.shared.wire import SPEC

Errors = Iterator[FieldError]
CronCandidate = Candidate[AdvancedCronJobSpec]

KIND = "AdvancedCronJob"
LONGEST_DEADLINE = 86400
_ONE = "either JobTemplate or BroadcastJobTemplate or ImageListPullJobTemplate should be provided"
_MUTABLE = (
    IMAGES,
    "schedule",
    "concurrencyPolicy",
    "successfulJobsHistoryLimit",
    "failedJobsHistoryLimit",
    "startingDeadlineSeconds",
    "timeZone",
    "paused",
)
_EXPLICIT = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"


def problems(
    new: CronCandidate, old: CronCandidate | None = None, *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new AdvancedCronJob, or with the change of one."""
    spec = functools.partial(_spec, allow_privileged=allow_privileged)
    return validation.problems(new, old, spec, name=functools.partial(job_name, kind=KIND))


def _spec(new: CronCandidate, old: CronCandidate | None, *, allow_privileged: bool) -> Errors:
    spec, known = new.reading, old.reading if old is not None else None
    if known is None or (spec.schedule, spec.time_zone) != (known.schedule, known.time_zone):
        yield from _schedule(spec)
        yield from _zone(spec.time_zone)
    if spec.concurrency_policy and spec.concurrency_policy not in CONCURRENCY_POLICIES:
        yield not_supported(SPEC.child("concurrencyPolicy"), spec.concurrency_policy, CONCURRENCY_POLICIES)
    yield from _templates(new, old, allow_privileged=allow_privileged)
    yield from not_negative(SPEC, "startingDeadlineSeconds", spec.starting_deadline_seconds)
    yield from not_negative(SPEC, "successfulJobsHistoryLimit", spec.successful_jobs_history_limit)
    yield from not_negative(SPEC, "failedJobsHistoryLimit", spec.failed_jobs_history_limit)
    if old is not None:
        yield from _immutable(new.template, old.template)


def _schedule(spec: AdvancedCronJobSpec) -> Errors:
    """ACJ-31."""
    where = SPEC.child("schedule")
    if not spec.schedule:
        yield invalid(where, spec.schedule, "schedule cannot be empty, please provide valid cron schedule.")
    try:
        cron.parse(spec.schedule)
    except cron.ScheduleError as error:
        yield invalid(where, spec.schedule, str(error))
    if cron.has_zone(spec.schedule) and spec.time_zone is not None:
        complaint = "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        yield invalid(where, spec.schedule, complaint)


def _zone(zone: str | None) -> Errors:
    """ACJ-32."""
    where = SPEC.child("timeZone")
    if zone is None:
        return
    if not zone:
        yield invalid(where, zone, "timeZone must be nil or non-empty string")
    elif zone == "Local":
        yield invalid(where, zone, _EXPLICIT)
    else:
        if zone.lower() == "local":
            yield invalid(where, zone, _EXPLICIT)
        if cron.zone_of(zone) is None:
            yield invalid(where, zone, f"unknown time zone {zone}")


# Templates


def _templates(new: CronCandidate, old: CronCandidate | None, *, allow_privileged: bool) -> Errors:
    """ACJ-33."""
    template = new.template if isinstance(new.template, Mapping) else {}
    given = [name for name in (*WITH_PODS, IMAGES) if template.get(name) is not None]
    if not given:
        yield forbidden(TEMPLATE, f"spec must have one template, {_ONE}")
    elif len(given) > 1:
        yield forbidden(TEMPLATE, f"spec can have only one template, {_ONE}")
    elif given[0] == IMAGES:
        yield from _images(new.reading)
    elif old is None or template != old.template:
        inner = (template[given[0]].get("spec") or {}).get("template")
        wanted = default_template(inner, path=TEMPLATE)
        yield from validate_pod_template(wanted, TEMPLATE, allow_privileged=allow_privileged)


def _immutable(new: Any, old: Any) -> Errors:
    """ACJ-37: of the template only that of ImageListPullJobs may be changed."""
    if _fixed(new) != _fixed(old):
        allowed = quoted(_MUTABLE, "and")
        yield forbidden(SPEC, f"updates to advancedcronjob spec for fields other than {allowed} are forbidden")


def _fixed(template: Any) -> dict[str, Any]:
    found = dict(template) if isinstance(template, Mapping) else {}
    if found.get(IMAGES) is not None:
        found[IMAGES] = {}
    return {name: value for name, value in found.items() if value is not None}


# Images (ACJ-34): the first complaint is told


def _images(spec: AdvancedCronJobSpec) -> Errors:
    if spec.concurrency_policy == ALLOW:
        complaint = f"concurrencyPolicy should be Replace or Forbid, but current value is: {spec.concurrency_policy}"
        yield invalid(SPEC.child("concurrencyPolicy"), spec.concurrency_policy, complaint)
    template = spec.template.image_list_pull_job_template
    assert template is not None
    where = TEMPLATE.child(IMAGES, "spec")
    try:
        wanted = codec.decode(template.spec, ImageListPullJobSpec)
    except codec.DecodeError as error:
        yield invalid(where, {}, str(error))
        return
    for found in (_selectors, _list, _completion):
        if (complaint_at := next(found(where, wanted), None)) is not None:
            yield complaint_at
            return


def _selectors(where: Path, spec: ImageListPullJobSpec) -> Errors:
    selector, pods = spec.selector, spec.pod_selector
    if selector is not None:
        at = where.child("selector")
        if selector.names and (selector.match_labels or selector.match_expressions):
            yield invalid(at, _shown(selector), "can not set both names and labelSelector in this spec.selector")
        yield from _readable(at, selector)
        names = list(selector.names or ())
        if len(set(names)) < len(names):
            yield invalid(at.child("names"), names, "duplicated name in selector names")
    if pods is not None:
        if selector is not None:
            complaint = "selector and podSelector can not both be set: choose nodes by one of them"
            yield invalid(where, {}, complaint)
        yield from _readable(where.child("podSelector"), pods)


def _readable(where: Path, selector: Any) -> Errors:
    try:
        from_label_selector(selector)
    except SelectorError as error:
        yield invalid(where, _shown(selector), f"invalid selector: {error}")


def _list(where: Path, spec: ImageListPullJobSpec) -> Errors:
    at, given = where.child("images"), list(spec.images)
    if not given:
        yield invalid(at, given, "image can not be empty")
    if len(given) > MOST_LISTED:
        yield invalid(at, len(given), f"the maximum number of images cannot > {MOST_LISTED}")
    if len(set(given)) < len(given):
        yield invalid(at, given, "images cannot have duplicate values")
    for image in given:
        if complaint := images.reference_problem(image):
            yield invalid(at, given, f"invalid image {image}: {complaint}")


def _completion(where: Path, spec: ImageListPullJobSpec) -> Errors:
    policy, at = spec.completion_policy, where.child("completionPolicy")
    timeout = spec.pull_policy.timeout_seconds if spec.pull_policy is not None else None
    deadline = policy.active_deadline_seconds
    if policy.type != "Always":
        complaint = f"completionPolicy should be Always, but current value is: {policy.type}"
        yield invalid(at.child("type"), policy.type, complaint)
    if deadline is not None and deadline > LONGEST_DEADLINE:
        complaint = f"activeDeadlineSeconds must be less than {LONGEST_DEADLINE}, current value is: {deadline}"
        yield invalid(at.child("activeDeadlineSeconds"), deadline, complaint)
    if deadline is not None and timeout is not None and deadline < timeout:
        complaint = f"completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds({timeout})"
        yield invalid(at.child("activeDeadlineSeconds"), deadline, complaint)
    if policy.ttl_seconds_after_finished is not None:
        complaint = "ttlSecondsAfterFinished is not supported in advancedCronJob"
        yield invalid(at.child("ttlSecondsAfterFinished"), policy.ttl_seconds_after_finished, complaint)


def _shown(selector: Any) -> dict[str, Any]:
    found: dict[str, Any] = codec.to_builtins(selector)
    return found
