"""Admission of advanced DaemonSets (DS-12 to DS-19). Deletion protection does not cover them (DS-16)."""

from __future__ import annotations

from kruise.api.apps.conversion.daemonset import convert
from kruise.api.apps.daemonset import DaemonSetSpec
from kruise.api.core.field_errors import FieldError
from kruise.workloads.daemonset.advice import warnings_of
from kruise.workloads.daemonset.defaults import defaulted
from kruise.workloads.daemonset.validation import problems
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.wire import read_spec


def _judged(asked: Judgement[DaemonSetSpec]) -> tuple[FieldError, ...]:
    return problems(asked.new, asked.old, allow_privileged=asked.allow_privileged)


ADMISSION: Admission[DaemonSetSpec] = Admission(
    convert=convert,
    stored_spec=DaemonSetSpec,
    read=lambda document, version: read_spec(document, DaemonSetSpec),
    defaulted=defaulted,
    warnings=warnings_of,
    problems=_judged,
    is_judged_as_stored=True,
    is_protected=False,
)
