"""What a CloneSet may not be, and may not become (CS-40 to CS-51), in both versions. Pure."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kruise.api.apps.shared import IN_PLACE_ONLY, ON_DELETE, POD_UPDATE_POLICIES, UPDATE_STRATEGIES
from kruise.api.core import formats
from kruise.api.core.field_errors import FieldError, invalid
from kruise.api.core.validation import common
from kruise.inplace import order_rules
from kruise.machinery.intorpercent import IntOrPercent, IntOrPercentError, scaled_fraction
from kruise.workloads.cloneset.numbers import DEFAULT_MAX_UNAVAILABLE
from kruise.workloads.cloneset.progress import NO_DEADLINE
from kruise.workloads.cloneset.wire import Reading
from kruise.workloads.shared import validation
from kruise.workloads.shared.validation import (
    Candidate,
    images_only,
    immutable,
    pre_download,
    quoted,
    selector_and_labels,
    template,
)
from kruise.workloads.shared.wire import SPEC, STRATEGY

Errors = Iterator[FieldError]

KIND = "CloneSet"
FLAT_TYPES = (*POD_UPDATE_POLICIES, ON_DELETE)
PODS_TO_DELETE = SPEC.child("scaleStrategy", "podsToDelete")

_DEADLINE = SPEC.child("progressDeadlineSeconds")
_MUTABLE = (
    "replicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "progressDeadlineSeconds",
    "volumeClaimTemplates",
    "revisionHistoryLimit",
)


def problems(
    new: Candidate[Reading], old: Candidate[Reading] | None = None, *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new CloneSet, or with the change of one."""
    spec = functools.partial(_spec, allow_privileged=allow_privileged)
    return validation.problems(new, old, spec, name=formats.dns_subdomain)


def _spec(new: Candidate[Reading], old: Candidate[Reading] | None, *, allow_privileged: bool) -> Errors:
    reading = new.reading
    yield from common.non_negative(SPEC.child("replicas"), reading.replicas)
    yield from selector_and_labels(new, KIND)
    if old is None or (new.template, new.claim_names) != (old.template, old.claim_names):
        yield from template(new, KIND, allow_privileged=allow_privileged, claim_volumes=new.claim_names)
    if old is None or _strategy_terms(new) != _strategy_terms(old):
        yield from _strategy(reading)
    if old is None or reading.scale != old.reading.scale:
        yield from _doubles(reading.scale.pods_to_delete)
    if reading.is_v1alpha1 and (old is None or _deadline_terms(reading) != _deadline_terms(old.reading)):
        yield from _deadline(reading)
    if old is not None:
        yield from immutable(new.spec, old.spec, KIND, _MUTABLE)
        if reading.is_v1alpha1 and reading.type == IN_PLACE_ONLY:
            yield from images_only(new.template, old.template)


# The update strategy


def _strategy_terms(candidate: Candidate[Reading]) -> tuple[Any, ...]:
    """What the judgement of a strategy depends on."""
    reading = candidate.reading
    return (reading.type, reading.policy, reading.rollout, reading.replicas)


def _strategy(reading: Reading) -> Errors:
    supported = FLAT_TYPES if reading.is_v1alpha1 else UPDATE_STRATEGIES
    if reading.type and reading.type not in supported:
        yield invalid(STRATEGY.child("type"), reading.type, f"must be {quoted(supported)}")
    rollout, path = reading.rollout, reading.rollout_path
    if rollout is None:
        return
    if not reading.is_v1alpha1:
        if reading.policy and reading.policy not in POD_UPDATE_POLICIES:
            yield invalid(path.child("podUpdatePolicy"), reading.policy, f"must be {quoted(POD_UPDATE_POLICIES)}")
        yield from pre_download(path, rollout.in_place_update_strategy)
    yield from _amounts(reading)
    yield from order_rules.priority(path.child("priorityStrategy"), rollout.priority_strategy)
    yield from order_rules.scatter(path.child("scatterStrategy"), rollout.scatter_strategy)


def _amounts(reading: Reading) -> Errors:
    """CS-44 and CS-45. What cannot be read is one complaint, not the start of several."""
    rollout, path = reading.rollout, reading.rollout_path
    if rollout is None:
        return
    names = {"partition": rollout.partition, "maxUnavailable": rollout.max_unavailable, "maxSurge": rollout.max_surge}
    numbers: dict[str, int] = {}
    for name, value in names.items():
        try:
            numbers[name] = _pods(value, name, reading.replicas)
        except IntOrPercentError:
            yield invalid(path.child(name), value, 'must be an integer or a percentage, such as 2, "20%" or "0.5%"')
    if _is_negative(rollout.partition, numbers.get("partition", 0)):
        yield invalid(path.child("partition"), rollout.partition, common.NEGATIVE)
    surge = numbers.get("maxSurge", 0)
    if surge > 0 and reading.policy == IN_PLACE_ONLY:
        complaint = "can not use maxSurge with strategy type InPlaceOnly: pods in place need no others beside them"
        yield invalid(path.child("maxSurge"), rollout.max_surge, complaint)
    if reading.replicas > 0 and len(numbers) == len(names) and numbers["maxUnavailable"] < 1 and surge < 1:
        shown = DEFAULT_MAX_UNAVAILABLE if rollout.max_unavailable is None else rollout.max_unavailable
        complaint = "maxUnavailable and maxSurge should not both be less than 1: no pod could be updated"
        yield invalid(path.child("maxUnavailable"), shown, complaint)


def _pods(value: IntOrPercent | None, name: str, replicas: int) -> int:
    """How many pods are meant, percentages rounded up."""
    if value is None:
        value = DEFAULT_MAX_UNAVAILABLE if name == "maxUnavailable" else 0
    return scaled_fraction(value, max(replicas, 0), round_up=True)


def _is_negative(value: IntOrPercent | None, number: int) -> bool:
    # A small negative percentage rounds up to no pod at all.
    return number < 0 or (isinstance(value, str) and value.startswith("-"))


# The rest


def _doubles(names: Sequence[str]) -> Errors:
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        yield invalid(PODS_TO_DELETE, list(names), f"duplicated items [{', '.join(doubled)}]")


def _deadline_terms(reading: Reading) -> tuple[int | None, int]:
    return (reading.progress_deadline_seconds, reading.min_ready_seconds)


def _deadline(reading: Reading) -> Errors:
    """CS-48, v1alpha1 only."""
    deadline = reading.progress_deadline_seconds
    if deadline is None:
        return
    yield from common.non_negative(_DEADLINE, deadline)
    if deadline != NO_DEADLINE and deadline <= reading.min_ready_seconds:
        yield invalid(_DEADLINE, deadline, "must be greater than minReadySeconds")
