"""Metric names, zero at the start, bounded labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from kruise.machinery.metrics import Metrics, PassResult, RequeueCause


def text(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def test_the_names_that_dashboards_know() -> None:
    """MGR section 13; CS-140: there is nothing to leak, but the name is known."""
    metrics = Metrics(CollectorRegistry())
    metrics.controller("cloneset")
    metrics.queue("cloneset")
    page = text(metrics)
    for name in (
        "kruise_manager_is_leader 0.0",
        'controller_runtime_reconcile_total{controller="cloneset",result="success"} 0.0',
        'controller_runtime_reconcile_total{controller="cloneset",result="requeue_after"} 0.0',
        'controller_runtime_reconcile_errors_total{controller="cloneset"} 0.0',
        'controller_runtime_reconcile_time_seconds_count{controller="cloneset"} 0.0',
        'workqueue_depth{name="cloneset"} 0.0',
        'workqueue_adds_total{name="cloneset"} 0.0',
        'workqueue_queue_duration_seconds_count{name="cloneset"} 0.0',
        'workqueue_work_duration_seconds_count{name="cloneset"} 0.0',
        'workqueue_retries_total{name="cloneset"} 0.0',
        'workqueue_unfinished_work_seconds{name="cloneset"} 0.0',
        'workqueue_longest_running_processor_seconds{name="cloneset"} 0.0',
        "# TYPE cloneset_scale_expectation_leakage_total counter",
    ):
        assert name in page


def test_every_result_and_cause_starts_at_zero() -> None:
    metrics = Metrics()
    metrics.controller("c")
    registry = metrics.registry
    for result in PassResult:
        labels = {"controller": "c", "result": result.value}
        assert registry.get_sample_value("controller_runtime_reconcile_total", labels) == 0
    for cause in RequeueCause:
        assert registry.get_sample_value("kruise_requeues_total", {"controller": "c", "cause": cause.value}) == 0


def test_registries_are_independent() -> None:
    """Nothing is global: two managers in one process do not see each other's numbers."""
    one, other = Metrics(), Metrics()
    one.is_leader.set(1)
    one.wrote("create", "pods", "done")
    one.wrote("create", "pods", "done")
    one.tried_again("timeout")
    assert 'kruise_writes_total{resource="pods",result="done",verb="create"} 2.0' in text(one)
    assert 'kruise_write_retries_total{cause="timeout"} 1.0' in text(one)
    assert "kruise_manager_is_leader 0.0" in text(other)
    assert 'verb="create"' not in text(other)


def test_live_figures_are_read_when_asked_for() -> None:
    metrics = Metrics()
    limit = 8.0
    metrics.observe_writes(lambda: limit, lambda: 3)
    limit = 16.0
    assert "kruise_write_limit 16.0" in text(metrics)
    assert "kruise_writes_in_flight 3.0" in text(metrics)
