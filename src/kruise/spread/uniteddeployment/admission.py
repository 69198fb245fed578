"""Admission of UnitedDeployments (UD sections 4 and 5)."""

from __future__ import annotations

from kruise.api.apps.conversion.uniteddeployment import convert
from kruise.api.apps.uniteddeployment import UnitedDeploymentSpec
from kruise.api.core.field_errors import FieldError
from kruise.spread.uniteddeployment.advice import change_warnings, warnings_of
from kruise.spread.uniteddeployment.defaults import defaulted
from kruise.spread.uniteddeployment.validation import problems
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.wire import read_spec


def _judged(asked: Judgement[UnitedDeploymentSpec]) -> tuple[FieldError, ...]:
    return problems(asked.new, asked.old, allow_privileged=asked.allow_privileged)


ADMISSION: Admission[UnitedDeploymentSpec] = Admission(
    convert=convert,
    stored_spec=UnitedDeploymentSpec,
    read=lambda document, version: read_spec(document, UnitedDeploymentSpec),
    defaulted=defaulted,
    warnings=warnings_of,
    change_warnings=change_warnings,
    problems=_judged,
    is_judged_as_stored=True,
)
