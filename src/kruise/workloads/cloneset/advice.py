"""What is accepted in a CloneSet although it will not do what its author may expect: warnings that kubectl shows."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.api.apps.shared import PREDOWNLOAD_MIN_READY, PREDOWNLOAD_PARALLELISM, PREDOWNLOAD_TIMEOUT
from kruise.machinery import codec
from kruise.machinery.intorpercent import IntOrPercentError, scaled_fraction
from kruise.workloads.cloneset.wire import STRATEGY, Reading
from kruise.workloads.shared import failure_budget

NO_ANNOTATIONS: Mapping[str, str] = {}
_LOST = (
    "partition",
    "maxUnavailable",
    "maxSurge",
    "paused",
    "priorityStrategy",
    "scatterStrategy",
    "inPlaceUpdateStrategy",
)


def warnings_of(reading: Reading, annotations: Mapping[str, str] = NO_ANNOTATIONS) -> tuple[str, ...]:
    """About an object as it was sent, before defaults. `annotations` are those that it had before."""
    texts = (_scale_limit(reading), _lost_settings(reading), _annotations(reading), _failure_budget(annotations))
    return tuple(text for text in texts if text)


def _failure_budget(annotations: Mapping[str, str]) -> str:
    """Told about one that was stored before anybody looked at it; a new one is refused."""
    value = annotations.get(failure_budget.ANNOTATION)
    if value is None:
        return ""
    try:
        failure_budget.parse(value)
    except failure_budget.BudgetError as error:
        shown = codec.encode(value).decode()
        return f"metadata.annotations[{failure_budget.ANNOTATION}]: {shown} has no effect, it {error}"
    return ""


def _scale_limit(reading: Reading) -> str:
    value = reading.scale.max_unavailable
    if value is None or reading.replicas <= 0:
        return ""
    try:
        if scaled_fraction(value, reading.replicas, round_up=True) > 0:
            return ""
    except IntOrPercentError:
        pass
    shown = codec.encode(value).decode()
    return (
        f"spec.scaleStrategy.maxUnavailable: {shown} lets no pod be unavailable, so none is created when scaling up: "
        'use a positive number or percentage, such as 1 or "20%", or leave it out for no limit'
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
    in_place = rollout.in_place_update_strategy if rollout is not None else None
    if not reading.is_v1alpha1 or in_place is None:
        return ""
    ignored = {
        PREDOWNLOAD_PARALLELISM: in_place.image_pre_download_parallelism,
        PREDOWNLOAD_TIMEOUT: in_place.image_pre_download_timeout_seconds,
        PREDOWNLOAD_MIN_READY: in_place.image_pre_download_min_updated_ready_pods,
    }
    wanted = [key for key, value in ignored.items() if value is not None]
    if not wanted:
        return ""
    return (
        f"{STRATEGY}.inPlaceUpdateStrategy: v1alpha1 takes image pre-download settings from annotations only: "
        f"set {', '.join(wanted)}, or use v1beta1"
    )
