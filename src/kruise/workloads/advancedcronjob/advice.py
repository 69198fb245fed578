"""What is accepted in an AdvancedCronJob although it will not do what its author may expect: warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from kruise.api.apps.advancedcronjob import AdvancedCronJob, AdvancedCronJobSpec
from kruise.api.core import schema
from kruise.api.core.field_errors import go_quote
from kruise.api.core.unknown_fields import unknown_fields
from kruise.api.meta import ObjectMeta
from kruise.machinery import cron
from kruise.machinery.documents import Json, value_at
from kruise.workloads.advancedcronjob.children import KINDS, ChildKind, closed_gate
from kruise.workloads.advancedcronjob.refusals import refusals
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import SPEC

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
    yield from map(str, refusals(AdvancedCronJob(metadata=ObjectMeta(name=name), spec=spec)))
    if spec.starting_deadline_seconds == 0:
        yield f"{SPEC.child('startingDeadlineSeconds')}: 0 lets no run start: use some seconds, or leave it out"
    yield _schedule(spec.schedule)
    yield from _misspelt(body)
    for kind in KINDS:
        if value_at(body, ("spec", "template", kind.field), None) is not None:
            yield _gate(kind, gates)


def _gate(kind: ChildKind, gates: Mapping[str, bool]) -> str:
    gate = closed_gate(kind, gates)
    where = SPEC.child("template", kind.field)
    return f"{where}: no run can be made while feature-gate {gate} is not enabled" if gate else ""


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
