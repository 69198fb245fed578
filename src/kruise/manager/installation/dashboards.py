"""Dashboards for Grafana: what rolls out and what holds it up, and how the manager itself is. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

_WIDTH, _HEIGHT = 24, 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_CHOSEN = 'kind=~"$kind",namespace=~"$workload_namespace",name=~"$workload"'
_NAMED = "{{kind}} {{namespace}}/{{name}}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    title: str
    queries: tuple[tuple[str, str], ...]
    """Each with what its lines are called."""
    unit: str = "short"
    shows: str = "timeseries"
    width: int = 12
    height: int = _HEIGHT
    about: str = ""
    is_stacked: bool = False


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A variable at the top, with the values that a label has."""

    name: str
    label: str
    metric: str
    of: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    uid: str
    title: str
    panels: tuple[Panel, ...]
    choices: tuple[Choice, ...] = ()


ROLLOUTS = Dashboard(
    uid="kruise-rollouts",
    title="PyKruise / Rollouts",
    choices=(
        Choice(name="kind", label="Kind", metric="kruise_workload_pods", of="kind"),
        Choice(
            name="workload_namespace", label="Namespace", metric='kruise_workload_pods{kind=~"$kind"}', of="namespace"
        ),
        Choice(
            name="workload",
            label="Workload",
            metric='kruise_workload_pods{kind=~"$kind",namespace=~"$workload_namespace"}',
            of="name",
        ),
    ),
    panels=(
        Panel(
            title="Under way",
            queries=((f"count(kruise_rollout_age_seconds{{{_CHOSEN}}}) or vector(0)", ""),),
            shows="stat",
            width=6,
            height=4,
        ),
        Panel(
            title="Paused",
            queries=((f"sum(kruise_rollout_paused{{{_CHOSEN}}}) or vector(0)", ""),),
            shows="stat",
            width=6,
            height=4,
        ),
        Panel(
            title="Done, in this range",
            queries=((f'sum(increase(kruise_rollouts_total{{{_CHOSEN},result="done"}}[$__range])) or vector(0)', ""),),
            shows="stat",
            width=6,
            height=4,
        ),
        Panel(
            title="Failed, in this range",
            queries=(
                (f'sum(increase(kruise_rollouts_total{{{_CHOSEN},result="failed"}}[$__range])) or vector(0)', ""),
            ),
            shows="stat",
            width=6,
            height=4,
        ),
        Panel(
            title="How far",
            queries=(
                (
                    f'max by (kind, namespace, name) (kruise_workload_pods{{{_CHOSEN},state="updated"}})'
                    " / on (kind, namespace, name)"
                    f' (max by (kind, namespace, name) (kruise_workload_pods{{{_CHOSEN},state="expected"}}) > 0)'
                    " and on (kind, namespace, name) kruise_rollout_age_seconds",
                    _NAMED,
                ),
            ),
            unit="percentunit",
            about="Updated pods of those that should be updated, as far as a partition allows. Only what rolls out.",
        ),
        Panel(
            title="For how long",
            queries=((f"max by (kind, namespace, name) (kruise_rollout_age_seconds{{{_CHOSEN}}})", _NAMED),),
            unit="s",
        ),
        Panel(
            title="What they wait for",
            queries=(
                (
                    f"sum by (cause) (rate(kruise_rollout_waiting_seconds_total{{{_CHOSEN}}}[$__rate_interval]))",
                    "{{cause}}",
                ),
            ),
            about="In how many workloads a cause holds pods, while these roll out. kruise why says more about each.",
            is_stacked=True,
        ),
        Panel(
            title="Waited longest, in this range",
            queries=(
                (
                    "topk(20, sum by (kind, namespace, name, cause) "
                    f"(increase(kruise_rollout_waiting_seconds_total{{{_CHOSEN}}}[$__range])))",
                    f"{_NAMED}: {{{{cause}}}}",
                ),
            ),
            unit="s",
            shows="bargauge",
        ),
        Panel(
            title="How long they took",
            queries=tuple(
                (
                    f"histogram_quantile({quantile}, sum by (kind, le) "
                    '(rate(kruise_rollout_duration_seconds_bucket{kind=~"$kind"}[1h])))',
                    f"{{{{kind}}}}, {name}",
                )
                for quantile, name in ((0.5, "half of them"), (0.9, "9 of 10"))
            ),
            unit="s",
        ),
        Panel(
            title="Pods",
            queries=(
                (
                    f"sum by (state) (max by (kind, namespace, name, state) (kruise_workload_pods{{{_CHOSEN}}}))",
                    "{{state}}",
                ),
            ),
        ),
        Panel(
            title="Refused, to protect something",
            queries=(
                ("sum(increase(pod_unavailable_budget[$__rate_interval])) or vector(0)", "PodUnavailableBudget"),
                ("sum(increase(workload_deletion_protection[$__rate_interval])) or vector(0)", "workloads"),
                ("sum(increase(namespace_deletion_protection[$__rate_interval])) or vector(0)", "namespaces"),
                ("sum(increase(crd_deletion_protection[$__rate_interval])) or vector(0)", "definitions"),
            ),
        ),
    ),
)
MANAGER = Dashboard(
    uid="kruise-manager",
    title="PyKruise / Manager",
    panels=(
        Panel(title="Leaders", queries=(("sum(kruise_manager_is_leader) or vector(0)", ""),), shows="stat", width=6),
        Panel(
            title="Passes",
            queries=(
                ("sum by (controller) (rate(controller_runtime_reconcile_total[$__rate_interval]))", "{{controller}}"),
            ),
            unit="ops",
            width=18,
            is_stacked=True,
        ),
        Panel(
            title="Passes that failed",
            queries=(
                (
                    "sum by (controller) (rate(controller_runtime_reconcile_errors_total[$__rate_interval]))",
                    "{{controller}}",
                ),
                (
                    "sum by (controller) (rate(controller_runtime_reconcile_panics_total[$__rate_interval]))",
                    "{{controller}}: panics",
                ),
            ),
            unit="ops",
        ),
        Panel(
            title="A pass takes (99th percentile)",
            queries=(
                (
                    "histogram_quantile(0.99, sum by (controller, le) "
                    "(rate(controller_runtime_reconcile_time_seconds_bucket[$__rate_interval])))",
                    "{{controller}}",
                ),
            ),
            unit="s",
        ),
        Panel(title="Objects in queues", queries=(("sum by (name) (workqueue_depth)", "{{name}}"),)),
        Panel(
            title="Time in queues (99th percentile)",
            queries=(
                (
                    "histogram_quantile(0.99, sum by (name, le) "
                    "(rate(workqueue_queue_duration_seconds_bucket[$__rate_interval])))",
                    "{{name}}",
                ),
            ),
            unit="s",
        ),
        Panel(
            title="Once more, why",
            queries=(("sum by (cause) (rate(kruise_requeues_total[$__rate_interval]))", "{{cause}}"),),
            unit="ops",
            is_stacked=True,
        ),
        Panel(
            title="Writes",
            queries=(
                (
                    "sum by (verb, resource, result) (rate(kruise_writes_total[$__rate_interval]))",
                    "{{verb}} {{resource}}: {{result}}",
                ),
                ("sum by (cause) (rate(kruise_write_retries_total[$__rate_interval]))", "again: {{cause}}"),
            ),
            unit="ops",
        ),
        Panel(
            title="Writes in flight",
            queries=(("kruise_writes_in_flight", "{{instance}}"), ("kruise_write_limit", "{{instance}}: limit")),
        ),
        Panel(
            title="Webhooks",
            queries=(
                (
                    "sum by (webhook, code) (rate(controller_runtime_webhook_requests_total[$__rate_interval]))",
                    "{{webhook}} {{code}}",
                ),
            ),
            unit="ops",
        ),
        Panel(
            title="A webhook takes (99th percentile)",
            queries=(
                (
                    "histogram_quantile(0.99, sum by (webhook, le) "
                    "(rate(controller_runtime_webhook_latency_seconds_bucket[$__rate_interval])))",
                    "{{webhook}}",
                ),
            ),
            unit="s",
        ),
    ),
)
DASHBOARDS: Sequence[Dashboard] = (ROLLOUTS, MANAGER)


def files() -> dict[str, str]:
    """Each as JSON, under the name of a file."""
    return {f"{one.uid}.json": json.dumps(_model(one), indent=1) + "\n" for one in DASHBOARDS}


def _model(dashboard: Dashboard) -> dict[str, Any]:
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["kruise"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_data_source(), *map(_variable, dashboard.choices)]},
        "panels": list(_panels(dashboard.panels)),
    }


def _data_source() -> dict[str, Any]:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _variable(choice: Choice) -> dict[str, Any]:
    query = f"label_values({choice.metric}, {choice.of})"
    return {
        "name": choice.name,
        "label": choice.label,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": choice.name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        # What is in no namespace has no such label, and is among all.
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """In rows, each as high as what is in it."""
    left = top = 0
    for number, panel in enumerate(panels, 1):
        if left + panel.width > _WIDTH:
            left, top = 0, top + panels[number - 2].height
        yield _panel(panel, number, left, top)
        left += panel.width


def _panel(panel: Panel, number: int, left: int, top: int) -> dict[str, Any]:
    custom = {"custom": {"stacking": {"mode": "normal"}, "fillOpacity": 30}} if panel.is_stacked else {}
    return {
        "id": number,
        "type": panel.shows,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "gridPos": {"x": left, "y": top, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": {"unit": panel.unit, **custom}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": _SOURCE,
                "expr": expression,
                "legendFormat": legend,
                # One value of each line, and not its course.
                "instant": panel.shows == "bargauge",
            }
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }
