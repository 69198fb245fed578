"""Admission of advanced StatefulSets (ST-22 to ST-34)."""

from __future__ import annotations

from kruise.api.apps.conversion.statefulset import convert
from kruise.api.apps.statefulset import StatefulSetSpec
from kruise.api.core.field_errors import FieldError
from kruise.api.native.storage import STORAGE_CLASSES
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.wire import read_spec
from kruise.workloads.statefulset.advice import warnings_of
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE
from kruise.workloads.statefulset.defaults import defaulted
from kruise.workloads.statefulset.validation import problems


def _judged(asked: Judgement[StatefulSetSpec]) -> tuple[FieldError, ...]:
    grows = asked.view.gates.get(GROWTH_GATE, False)
    classes = asked.view.store(STORAGE_CLASSES).list() if grows and asked.old is not None else None
    return problems(asked.new, asked.old, allow_privileged=asked.allow_privileged, storage_classes=classes)


ADMISSION: Admission[StatefulSetSpec] = Admission(
    convert=convert,
    stored_spec=StatefulSetSpec,
    read=lambda document, version: read_spec(document, StatefulSetSpec),
    defaulted=defaulted,
    warnings=warnings_of,
    problems=_judged,
    is_judged_as_stored=True,
    needs=lambda gates: (STORAGE_CLASSES,) if gates.get(GROWTH_GATE, False) else (),
)
