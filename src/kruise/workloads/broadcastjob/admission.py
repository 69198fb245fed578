"""Admission of BroadcastJobs (BJ-12 to BJ-19). Deletion protection does not cover them."""

from __future__ import annotations

from kruise.api.apps.broadcastjob import BroadcastJobSpec
from kruise.api.apps.conversion.broadcastjob import convert
from kruise.api.core.field_errors import FieldError
from kruise.workloads.broadcastjob.advice import warnings_of
from kruise.workloads.broadcastjob.defaults import defaulted
from kruise.workloads.broadcastjob.validation import problems
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.wire import read_spec


def _judged(asked: Judgement[BroadcastJobSpec]) -> tuple[FieldError, ...]:
    return problems(asked.new, asked.old, allow_privileged=asked.allow_privileged)


ADMISSION: Admission[BroadcastJobSpec] = Admission(
    convert=convert,
    stored_spec=BroadcastJobSpec,
    read=lambda document, version: read_spec(document, BroadcastJobSpec),
    defaulted=defaulted,
    warnings=warnings_of,
    problems=_judged,
    is_judged_as_stored=True,
    is_protected=False,
)
