"""What is accepted in an advanced DaemonSet although it will not do what its author may expect: warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kruise.api.apps.daemonset import DaemonSetSpec
from kruise.machinery import intorpercent
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.workloads.shared import advice
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import ROLLING, SPEC


def warnings_of(
    candidate: Candidate[DaemonSetSpec], annotations: Mapping[str, str], gates: Mapping[str, bool]
) -> Iterator[str]:
    """About an object as it was sent, before defaults. `annotations` are those that it had before."""
    spec = candidate.reading
    yield advice.of_failure_budget(annotations)
    yield _burst(spec)
    yield _nodes(spec)
    if spec.lifecycle is not None and spec.lifecycle.pre_normal is not None:
        yield f"{SPEC.child('lifecycle', 'preNormal')} has no effect on a DaemonSet"


def _burst(spec: DaemonSetSpec) -> str:
    value = spec.burst_replicas
    if value is None or (not intorpercent.problems(value) and value not in (0, "0%")):
        return ""
    return (
        f"{SPEC.child('burstReplicas')}: {advice.shown(value)} lets no pod be created, deleted or updated in place: "
        'use a positive number or percentage, such as 250 or "10%", or leave it out'
    )


def _nodes(spec: DaemonSetSpec) -> str:
    rolling = spec.update_strategy.rolling_update
    try:
        from_label_selector(rolling.selector if rolling is not None else None)
    except SelectorError as error:
        return f"{ROLLING.child('selector')} selects no node, so no pod is updated: {error}"
    return ""
