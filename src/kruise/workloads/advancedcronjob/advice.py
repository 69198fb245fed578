"""What is accepted in an AdvancedCronJob although it will not do what its author may expect: warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from kruise.api.apps.advancedcronjob import AdvancedCronJobSpec
from kruise.api.apps.images import ALWAYS, ImageListPullJobSpec
from kruise.api.apps.pulling import completion_problem, parallelism_problem
from kruise.api.core import schema
from kruise.api.core.field_errors import Path, go_quote
from kruise.api.core.unknown_fields import unknown_fields
from kruise.machinery import codec, cron
from kruise.machinery.documents import Json, value_at
from kruise.workloads.advancedcronjob.children import KINDS, ChildKind, closed_gate
from kruise.workloads.advancedcronjob.decide import LONGEST_NAME
from kruise.workloads.advancedcronjob.defaults import IMAGES
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import META, SPEC

_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""For a look over some years, a leap year among them."""
_OPEN = (
    (("spec", "template", "jobTemplate"), "batch.JobTemplateSpec"),
    (("spec", "template", "broadcastJobTemplate", "spec", "template"), schema.POD_TEMPLATE_SPEC),
)
_MOST = 10
"""How many misspelt fields are named."""


def warnings_of(
    candidate: Candidate[AdvancedCronJobSpec], annotations: Mapping[str, str], gates: Mapping[str, bool]
) -> Iterator[str]:
    """About an object as it was sent, before defaults."""
    spec, body = candidate.reading, dict(candidate.body)
    name = str(value_at(body, ("metadata", "name"), ""))
    if len(name) > LONGEST_NAME:
        told = f"no run can be created, as names of runs are longer: use at most {LONGEST_NAME} characters"
        yield f"{META.child('name')}: {told}"
    if spec.starting_deadline_seconds == 0:
        yield f"{SPEC.child('startingDeadlineSeconds')}: 0 lets no run start: use some seconds, or leave it out"
    yield _schedule(spec.schedule)
    yield from _misspelt(body)
    yield _images(spec)
    for kind in KINDS:
        if value_at(body, ("spec", "template", kind.field), None) is not None:
            yield _gate(kind, gates)
        if kind.path and value_at(body, kind.path, None) is not None:
            policy = value_at(body, (*kind.path, "spec", "restartPolicy"), "")
            if policy not in ("Never", "OnFailure"):
                where = Path("spec").child(*kind.path[1:], "spec", "restartPolicy")
                told = f'"{policy}"' if policy else "nothing, which becomes Always"
                yield f"{where}: {told}: each run will be refused; use Never or OnFailure"


def _gate(kind: ChildKind, gates: Mapping[str, bool]) -> str:
    gate = closed_gate(kind, gates)
    where = SPEC.child("template", kind.field)
    return f"{where}: no run can be made while feature-gate {gate} is not enabled" if gate else ""


def _images(spec: AdvancedCronJobSpec) -> str:
    """What is left to the admission of each run (ACJ-34)."""
    template = spec.template.image_list_pull_job_template
    try:
        wanted = codec.decode(template.spec, ImageListPullJobSpec) if template is not None else None
    except codec.DecodeError:
        return ""  # refused
    if wanted is None:
        return ""
    # Without a type it gets a time-out as well, and is refused where that does not fit.
    is_given = wanted.completion_policy.type == ALWAYS
    problem = parallelism_problem(wanted) or (completion_problem(wanted) if is_given else "")
    where = SPEC.child("template", IMAGES, "spec")
    return f"{where}: each run will be refused: {problem}" if problem else ""


def _misspelt(body: Json) -> Iterator[str]:
    """The definition leaves these places open, so no API server complains."""
    found = [
        place for path, wire_type in _OPEN for place in unknown_fields(value_at(body, path), wire_type, ".".join(path))
    ]
    yield from (f"unknown field {go_quote(place)}" for place in found[:_MOST])


def _schedule(schedule: str) -> str:
    where = SPEC.child("schedule")
    try:
        if cron.is_too_short(schedule):
            return f"{where}: a period below a second counts as a second: use a longer one, such as @every 5m"
        found = cron.parse(schedule).next(_ANY_DAY, anchor=_ANY_DAY)
    except cron.ScheduleError:
        return ""  # refused
    return "" if found is not None else f"{where}: no day matches, so nothing ever runs"
