"""Refusals that are counted and kept: the metrics of protection, and the lines of the protection log."""

from __future__ import annotations

import collections
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from kruise.admission.decisions import Protected
from kruise.machinery.codec import canonical

COUNTERS: Mapping[str, Sequence[str]] = {
    "namespace_deletion_protection": ("name", "username"),
    "crd_deletion_protection": ("name", "username"),
    "workload_deletion_protection": ("kind_namespace_name", "username"),
    "pod_unavailable_budget": ("kind_namespace_name", "username"),
}
_ABOUT = "Requests that were refused, by what was to be protected."
_log = logging.getLogger("kruise.protection")


class _Counters(Collector):
    """Under the very names of the contract (PUB-92): the library's own counters would end in `_total`."""

    def __init__(self) -> None:
        self._counts: dict[str, collections.Counter[tuple[str, ...]]] = {
            name: collections.Counter() for name in COUNTERS
        }

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        self._counts[name][tuple(labels[key] for key in COUNTERS[name])] += 1

    def collect(self) -> Iterator[Metric]:
        for name, counts in self._counts.items():
            metric = Metric(name, _ABOUT, "untyped")
            for values, count in sorted(counts.items()):
                metric.add_sample(name, dict(zip(COUNTERS[name], values, strict=True)), count)
            yield metric


def typed(exposition: bytes) -> bytes:
    """The text of all metrics, in which these are counters: the library says so only of names that end in `_total`."""
    for name in COUNTERS:
        exposition = exposition.replace(f"# TYPE {name} untyped\n".encode(), f"# TYPE {name} counter\n".encode())
    return exposition


def recorder(metrics: CollectorRegistry) -> Callable[[Protected, str], None]:
    counters = _Counters()
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
