"""What is accepted in a CloneSet although it will not do what its author may expect: warnings that kubectl shows."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.machinery.intorpercent import IntOrPercentError, scaled_fraction
from kruise.workloads.cloneset.wire import Reading
from kruise.workloads.shared import advice
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import STRATEGY

_LOST = (
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
)


def warnings_of(
    candidate: Candidate[Reading], annotations: Mapping[str, str], gates: Mapping[str, bool]
) -> tuple[str, ...]:
    """About an object as it was sent, before defaults. `annotations` are those that it had before."""
    reading = candidate.reading
    budget = advice.of_failure_budget(annotations)
    return (_scale_limit(reading), _lost_settings(reading), _annotations(reading), budget)


def _scale_limit(reading: Reading) -> str:
    value = reading.scale.max_unavailable
    if value is None or reading.replicas <= 0:
        return ""
    try:
        if scaled_fraction(value, reading.replicas, round_up=True) > 0:
            return ""
    except IntOrPercentError:
        pass
    return (
        f"spec.scaleStrategy.maxUnavailable: {advice.shown(value)} lets no pod be unavailable, so none is created when "
        'scaling up: use a positive number or percentage, such as 1 or "20%", or leave it out for no limit'
    )


def _lost_settings(reading: Reading) -> str:
    rollout = reading.rollout
    if not reading.is_v1alpha1 or reading.type != "OnDelete" or rollout is None:
        return ""
    given = (
        rollout.partition,
        rollout.max_unavailable,
        rollout.max_surge,
        rollout.paused or None,
        rollout.priority_strategy,
        rollout.scatter_strategy or None,
        rollout.in_place_update_strategy,
    )
    lost = [name for name, value in zip(_LOST, given, strict=True) if value is not None]
    if not lost:
        return ""
    return f"{STRATEGY}: with type OnDelete nothing is rolled out, so {', '.join(lost)} will not be kept"


def _annotations(reading: Reading) -> str:
    rollout = reading.rollout
    if not reading.is_v1alpha1 or rollout is None:
        return ""
    return advice.of_pre_download(STRATEGY, rollout.in_place_update_strategy, "v1alpha1", ", or use v1beta1")
