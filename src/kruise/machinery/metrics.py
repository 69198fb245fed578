"""Prometheus metrics of controllers, queues and writes, under the names that dashboards for controllers know.

Everything lives in a registry that is passed in; nothing is global. Series are created when a controller is set up and
start at zero, so that a rate over the first minutes is right, and the hot path only adds numbers. Label values are
bounded: causes are codes, never texts.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# As controller-runtime and client-go have them, so that recorded queries keep working.
RECONCILE_BUCKETS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
)  # fmt: skip
QUEUE_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))


class PassResult(enum.StrEnum):
    """How a reconcile ended, in the words of controller-runtime."""

    SUCCESS = "success"
    ERROR = "error"
    REQUEUE = "requeue"
    REQUEUE_AFTER = "requeue_after"


class RequeueCause(enum.StrEnum):
    """Why a key goes round again."""

    MOVED = "moved"
    """An object changed under the decision."""
    UNKNOWN = "unknown"
    """A write's outcome could not be settled."""
    FAILED = "failed"
    """The server refused a write."""
    RETRY = "retry"
    """`conclude` asked for it."""
    STATUS = "status"
    """The status could not be written."""
    PANIC = "panic"
    """The controller's own code raised."""
    DEFERRED = "deferred"
    """A long pass left some of its writes to the next one."""
    WAKE = "wake"
    """The plan says when to look again."""


class QueueMetrics:
    """The series of one queue; see `Metrics.queue`."""

    def __init__(self, families: Metrics, name: str) -> None:
        self.adds = families.queue_adds.labels(name)
        self.retries = families.queue_retries.labels(name)
        self.waited = families.queue_waited.labels(name)
        self.worked = families.queue_worked.labels(name)
        self._depth = families.queue_depth.labels(name)
        self._unfinished = families.queue_unfinished.labels(name)
        self._longest = families.queue_longest.labels(name)

    def observe(
        self, depth: Callable[[], float], unfinished: Callable[[], float], longest: Callable[[], float]
    ) -> None:
        """Read these when somebody asks for the metrics, instead of keeping them up to date."""
        self._depth.set_function(depth)
        self._unfinished.set_function(unfinished)
        self._longest.set_function(longest)


class ControllerMetrics:
    """The series of one controller; see `Metrics.controller`."""

    def __init__(self, families: Metrics, name: str) -> None:
        self.passes = {result: families.reconcile_total.labels(name, result.value) for result in PassResult}
        self.errors = families.reconcile_errors.labels(name)
        self.panics = families.reconcile_panics.labels(name)
        self.seconds = families.reconcile_seconds.labels(name)
        self.active = families.active_workers.labels(name)
        self.workers = families.max_workers.labels(name)
        self.requeues = {cause: families.requeues.labels(name, cause.value) for cause in RequeueCause}


class Metrics:
    """All families, in one registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.registry = registry
        self.is_leader = Gauge("kruise_manager_is_leader", "Whether this manager leads.", registry=registry)
        # There are no expectations here that could leak; dashboards may ask for the name.
        Counter(
            "cloneset_scale_expectation_leakage",
            "Expectations that timed out; stays empty.",
            ("namespace", "name"),
            registry=registry,
        )

        by_controller = ("controller",)
        self.reconcile_total = Counter(
            "controller_runtime_reconcile_total",
            "Total number of reconciliations per controller.",
            ("controller", "result"),
            registry=registry,
        )
        self.reconcile_errors = Counter(
            "controller_runtime_reconcile_errors_total",
            "Total number of reconciliation errors per controller.",
            by_controller,
            registry=registry,
        )
        self.reconcile_panics = Counter(
            "controller_runtime_reconcile_panics_total",
            "Total number of reconciliation panics per controller.",
            by_controller,
            registry=registry,
        )
        self.reconcile_seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller.",
            by_controller,
            registry=registry,
            buckets=RECONCILE_BUCKETS,
        )
        self.max_workers = Gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller.",
            by_controller,
            registry=registry,
        )
        self.active_workers = Gauge(
            "controller_runtime_active_workers",
            "Number of currently used workers per controller.",
            by_controller,
            registry=registry,
        )
        self.requeues = Counter(
            "kruise_requeues_total", "Keys that go round again, by cause.", ("controller", "cause"), registry=registry
        )

        by_name = ("name",)
        self.queue_depth = Gauge("workqueue_depth", "Current depth of workqueue.", by_name, registry=registry)
        self.queue_adds = Counter(
            "workqueue_adds_total", "Total number of adds handled by workqueue.", by_name, registry=registry
        )
        self.queue_waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long in seconds an item stays in workqueue before being requested.",
            by_name,
            registry=registry,
            buckets=QUEUE_BUCKETS,
        )
        self.queue_worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long in seconds processing an item from workqueue takes.",
            by_name,
            registry=registry,
            buckets=QUEUE_BUCKETS,
        )
        self.queue_unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Seconds of work in progress that workqueue_work_duration_seconds has not observed yet.",
            by_name,
            registry=registry,
        )
        self.queue_longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "How many seconds has the longest running processor for workqueue been running.",
            by_name,
            registry=registry,
        )
        self.queue_retries = Counter(
            "workqueue_retries_total", "Total number of retries handled by workqueue.", by_name, registry=registry
        )

        self._writes = Counter(
            "kruise_writes_total",
            "Writes by verb, resource and result; a write that is tried again counts once.",
            ("verb", "resource", "result"),
            registry=registry,
        )
        self._write_tries = Counter(
            "kruise_write_retries_total",
            "Further tries of writes, by what the try before had met.",
            ("cause",),
            registry=registry,
        )
        self._write_limit = Gauge("kruise_write_limit", "How many writes may be in flight.", registry=registry)
        self._writes_in_flight = Gauge("kruise_writes_in_flight", "How many writes are in flight.", registry=registry)
        self._write_children: dict[tuple[str, str, str], Counter] = {}
        self._try_children: dict[str, Counter] = {}

    def controller(self, name: str) -> ControllerMetrics:
        return ControllerMetrics(self, name)

    def queue(self, name: str) -> QueueMetrics:
        return QueueMetrics(self, name)

    def wrote(self, verb: str, resource: str, result: str) -> None:
        """Count a write. `resource` names the kind and subresource, so its values are as many as the kinds."""
        child = self._write_children.get((verb, resource, result))
        if child is None:
            child = self._write_children[verb, resource, result] = self._writes.labels(verb, resource, result)
        child.inc()

    def tried_again(self, cause: str) -> None:
        child = self._try_children.get(cause)
        if child is None:
            child = self._try_children[cause] = self._write_tries.labels(cause)
        child.inc()

    def observe_writes(self, limit: Callable[[], float], in_flight: Callable[[], float]) -> None:
        self._write_limit.set_function(limit)
        self._writes_in_flight.set_function(in_flight)
