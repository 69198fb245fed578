"""Counters of refusals have the names of objects and users as labels: they must not stay for all that ever were."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from kruise.admission.decisions import Protected
from kruise.machinery.clock import ManualClock
from kruise.manager.refusals import KEPT_SECONDS, MOST_SERIES, recorder


def refusal(name: str) -> Protected:
    return Protected(
        event="PodUnavailableBudget",
        kind="ReplicaSet",
        namespace="shop",
        name=name,
        counter="pod_unavailable_budget",
        labels={"kind_namespace_name": f"ReplicaSet_shop_{name}"},
    )


class Refusals:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.record = recorder(self.registry, self.clock)

    def counted(self, name: str) -> float | None:
        labels = {"kind_namespace_name": f"ReplicaSet_shop_{name}", "username": "drain"}
        return self.registry.get_sample_value("pod_unavailable_budget", labels)

    def series(self) -> int:
        found: list[Any] = [metric for metric in self.registry.collect() if metric.name == "pod_unavailable_budget"]
        return len(found[0].samples)


def test_a_series_ends_when_nothing_was_refused_for_long() -> None:
    refusals = Refusals()
    refusals.record(refusal("once"), "drain")
    for _ in range(3):
        refusals.record(refusal("often"), "drain")
        refusals.clock.advance(KEPT_SECONDS / 2)
    assert (refusals.counted("often"), refusals.counted("once"), refusals.series()) == (3, None, 1)
    refusals.clock.advance(KEPT_SECONDS)
    assert refusals.series() == 0


def test_of_many_the_latest_are_kept() -> None:
    refusals = Refusals()
    for number in range(MOST_SERIES):
        refusals.record(refusal(str(number)), "drain")
    refusals.record(refusal("0"), "drain")
    refusals.record(refusal("new"), "drain")
    assert (refusals.series(), refusals.counted("0"), refusals.counted("1")) == (MOST_SERIES, 2, None)
