"""Refusals that are counted and kept: the metrics of protection, and the lines of the protection log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter

from kruise.admission.decisions import Protected
from kruise.machinery.codec import canonical

COUNTERS: Mapping[str, Sequence[str]] = {
    "namespace_deletion_protection": ("name", "username"),
    "crd_deletion_protection": ("name", "username"),
    "workload_deletion_protection": ("kind_namespace_name", "username"),
    "pod_unavailable_budget": ("kind_namespace_name", "username"),
}
_log = logging.getLogger("kruise.protection")


def recorder(metrics: CollectorRegistry) -> Callable[[Protected, str], None]:
    counters = {
        name: Counter(name, "Requests that were refused, by what was to be protected.", labels, registry=metrics)
        for name, labels in COUNTERS.items()
    }

    def record(refusal: Protected, username: str) -> None:
        counters[refusal.counter].labels(**refusal.labels, username=username).inc()
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
