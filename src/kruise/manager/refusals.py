"""Refusals that are counted and kept: the metrics of protection, and the lines of the protection log.

Whoever asks, and for what, is in the labels, and both come and go: a series ends when nothing was refused for a day,
and there are never more of them than some thousand. The log has them all.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from kruise.admission.decisions import Protected
from kruise.machinery.clock import Clock
from kruise.machinery.codec import canonical

COUNTERS: Mapping[str, Sequence[str]] = {
    "namespace_deletion_protection": ("name", "username"),
    "crd_deletion_protection": ("name", "username"),
    "workload_deletion_protection": ("kind_namespace_name", "username"),
    "pod_unavailable_budget": ("kind_namespace_name", "username"),
}
MOST_SERIES = 1000
"""Of each counter."""
KEPT_SECONDS = 86400.0
"""Long, for Prometheus counts what a series gains: of one that begins anew it does not see the first."""
_ABOUT = "Requests that were refused, by what was to be protected."
_log = logging.getLogger("kruise.protection")


class Counters(Collector):
    """Under the very names of the contract (PUB-92): the library's own counters would end in `_total`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[str, OrderedDict[tuple[str, ...], tuple[int, float]]] = {
            name: OrderedDict() for name in COUNTERS
        }
        """By name and labels: how many, and when the latest was; the latest comes last."""

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        counts = self._current(name)
        values = tuple(labels[key] for key in COUNTERS[name])
        count, _ = counts.pop(values, (0, 0.0))
        counts[values] = count + 1, self._clock.monotonic()
        if len(counts) > MOST_SERIES:
            counts.popitem(last=False)

    def collect(self) -> Iterator[Metric]:
        for name in COUNTERS:
            metric = Metric(name, _ABOUT, "untyped")
            for values, (count, _) in sorted(self._current(name).items()):
                metric.add_sample(name, dict(zip(COUNTERS[name], values, strict=True)), count)
            yield metric

    def _current(self, name: str) -> OrderedDict[tuple[str, ...], tuple[int, float]]:
        counts, oldest = self._counts[name], self._clock.monotonic() - KEPT_SECONDS
        while counts and next(iter(counts.values()))[1] < oldest:
            counts.popitem(last=False)
        return counts


def typed(exposition: bytes) -> bytes:
    """The text of all metrics, in which these are counters: the library says so only of names that end in `_total`."""
    for name in COUNTERS:
        exposition = exposition.replace(f"# TYPE {name} untyped\n".encode(), f"# TYPE {name} counter\n".encode())
    return exposition


def recorder(metrics: CollectorRegistry, clock: Clock) -> Callable[[Protected, str], None]:
    counters = Counters(clock)
    metrics.register(counters)

    def record(refusal: Protected, username: str) -> None:
        counters.count(refusal.counter, {**refusal.labels, "username": username})
        line = {
            "Event": refusal.event,
            "Kind": refusal.kind,
            "Namespace": refusal.namespace,
            "Name": refusal.name,
            "UserAgent": username,
        }
        # Not a reason to answer otherwise: `logging` never raises for a full disk.
        _log.warning("%s", canonical(line).decode())

    return record
