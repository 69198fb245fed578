"""Admission of AdvancedCronJobs (ACJ-13 to ACJ-18, ACJ-30 to ACJ-39)."""

from __future__ import annotations

from kruise.api.apps.advancedcronjob import AdvancedCronJobSpec
from kruise.api.apps.conversion.advancedcronjob import convert
from kruise.api.core.field_errors import FieldError
from kruise.workloads.advancedcronjob.advice import warnings_of
from kruise.workloads.advancedcronjob.defaults import defaulted
from kruise.workloads.advancedcronjob.validation import problems
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.wire import read_spec


def _judged(asked: Judgement[AdvancedCronJobSpec]) -> tuple[FieldError, ...]:
    return problems(asked.new, asked.old, allow_privileged=asked.allow_privileged)


ADMISSION: Admission[AdvancedCronJobSpec] = Admission(
    convert=convert,
    stored_spec=AdvancedCronJobSpec,
    read=lambda document, version: read_spec(document, AdvancedCronJobSpec),
    defaulted=defaulted,
    warnings=warnings_of,
    problems=_judged,
    is_judged_as_stored=True,
    is_protected=False,
)
