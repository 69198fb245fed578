"""What an advanced DaemonSet may not be, and may not become (DS-17 to DS-19). Pure.

Both versions are judged as `v1beta1`, where every field has the same path.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from kruise.api.apps import daemonset, daemonset_v1alpha1
from kruise.api.apps.daemonset import DaemonSetSpec, RollingUpdateDaemonSet
from kruise.api.apps.shared import IN_PLACE_IF_POSSIBLE, ROLLING_UPDATE, UPDATE_STRATEGIES, IntOrPercent
from kruise.api.core import formats
from kruise.api.core.field_errors import FieldError, forbidden, invalid, not_supported, required
from kruise.api.versions import OLDER
from kruise.machinery import intorpercent
from kruise.workloads.shared import validation
from kruise.workloads.shared.validation import Candidate, immutable, not_negative, selector_and_labels, template
from kruise.workloads.shared.wire import ROLLING, SPEC, STRATEGY

Errors = Iterator[FieldError]
DaemonSetCandidate = Candidate[DaemonSetSpec]

KIND = "DaemonSet"
_MUTABLE = (
    "template",
    "lifecycle",
    "burstReplicas",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "revisionHistoryLimit",
)


def problems(
    new: DaemonSetCandidate, old: DaemonSetCandidate | None = None, *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new DaemonSet, or with the change of one."""
    spec = functools.partial(_spec, allow_privileged=allow_privileged)
    return validation.problems(new, old, spec, name=formats.dns_subdomain)


def _spec(new: DaemonSetCandidate, old: DaemonSetCandidate | None, *, allow_privileged: bool) -> Errors:
    spec, known = new.reading, old.reading if old is not None else None
    yield from selector_and_labels(new, KIND)
    if old is None or new.template != old.template:
        yield from template(new, KIND, allow_privileged=allow_privileged)
    if known is None or spec.min_ready_seconds != known.min_ready_seconds:
        yield from not_negative(SPEC, "minReadySeconds", spec.min_ready_seconds)
    if known is None or spec.revision_history_limit != known.revision_history_limit:
        yield from not_negative(SPEC, "revisionHistoryLimit", spec.revision_history_limit)
    if known is None or spec.update_strategy != known.update_strategy:
        yield from _strategy(new)
    if known is None or spec.lifecycle != known.lifecycle:
        yield from _lifecycle(spec)
    if old is not None:
        yield from immutable(new.spec, old.spec, KIND, _MUTABLE)


def _lifecycle(spec: DaemonSetSpec) -> Errors:
    if spec.lifecycle is not None and spec.lifecycle.in_place_update is not None:
        yield forbidden(SPEC.child("lifecycle", "inPlaceUpdate"), "inPlaceUpdate hook has not supported yet")


# The update strategy


def _strategy(candidate: DaemonSetCandidate) -> Errors:
    strategy = candidate.reading.update_strategy
    if strategy.type not in UPDATE_STRATEGIES:
        yield not_supported(STRATEGY, strategy.type, UPDATE_STRATEGIES)
    elif strategy.type == ROLLING_UPDATE:
        if strategy.rolling_update is None:
            yield required(ROLLING)
            return
        yield from _type(strategy.rolling_update, candidate.version)
        yield from _amounts(strategy.rolling_update)


def _type(rolling: RollingUpdateDaemonSet, version: str) -> Errors:
    supported = (daemonset_v1alpha1 if version == OLDER else daemonset).ROLLING_UPDATE_TYPES
    kind = rolling.rolling_update_type
    if kind and kind not in supported:
        yield not_supported(ROLLING.child("rollingUpdateType"), kind, supported)
    if kind == IN_PLACE_IF_POSSIBLE and not _is_zero(rolling.max_surge):
        yield required(ROLLING.child("maxSurge"), f"must be 0 for {IN_PLACE_IF_POSSIBLE} type")


def _amounts(rolling: RollingUpdateDaemonSet) -> Errors:
    """What cannot be read is one complaint, not the start of several."""
    amounts = {
        "maxUnavailable": rolling.max_unavailable,
        "maxSurge": rolling.max_surge,
        "partition": rolling.partition,
    }
    wrong = [
        invalid(ROLLING.child(name), value, complaint)
        for name, value in amounts.items()
        if value is not None
        for complaint in intorpercent.problems(value, at_most_100_percent=True)
    ]
    if wrong:
        yield from wrong
    elif _is_zero(rolling.max_unavailable) and _is_zero(rolling.max_surge):
        yield required(ROLLING.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")
    elif not _is_zero(rolling.max_unavailable) and not _is_zero(rolling.max_surge):
        complaint = "may not be set when maxUnavailable is non-zero: set maxUnavailable to 0 in the same change"
        yield invalid(ROLLING.child("maxSurge"), rolling.max_surge, complaint)


def _is_zero(value: IntOrPercent | None) -> bool:
    return not value or (isinstance(value, str) and not value.strip("0%"))
