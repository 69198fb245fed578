"""When somebody should look: the alert rules of an installation, for Prometheus. Pure.

docs/metrics.md says for each what to do. Rules ask only for what every installation serves, and name what they are
about by the labels of the metric: kind, namespace and name of a workload, or a controller.
"""

from __future__ import annotations

import dataclasses
from typing import Any

RUNBOOK = "docs/metrics.md"
MANAGER_JOB, DAEMON_JOB = "kruise-manager-metrics", "kruise-daemon-metrics"
"""Services, and so what Prometheus calls what is behind them."""
_SAME = "on (kind, namespace, name)"
_WORKLOAD = "{{ $labels.kind }} {{ $labels.namespace }}/{{ $labels.name }}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    name: str
    expression: str
    lasting: str = ""
    """For how long it must be so; empty: not at all."""
    is_critical: bool = False
    summary: str
    """What is so, with the labels of what it is about."""
    meaning: str
    """What to do, in one sentence."""


ROLLOUTS: tuple[Alert, ...] = (
    Alert(
        name="KruiseRolloutFailed",
        expression='sum by (kind, namespace, name) (increase(kruise_rollouts_total{result="failed"}[15m])) > 0',
        summary=f"A rollout of {_WORKLOAD} has failed.",
        meaning="It has used up its failure budget or its progress deadline, or was refused: ask kruise why.",
    ),
    Alert(
        name="KruiseRolloutStuck",
        expression=(
            f"kruise_rollout_age_seconds > 1800 and {_SAME} kruise_rollout_paused == 0"
            f' and {_SAME} changes(kruise_workload_pods{{state="updated"}}[30m]) == 0'
            f' and {_SAME} changes(kruise_workload_pods{{state="available"}}[30m]) == 0'
        ),
        lasting="5m",
        summary=f"The rollout of {_WORKLOAD} has brought nothing about for half an hour.",
        meaning="Nothing was updated or became available: kruise why says what it waits for.",
    ),
    Alert(
        name="KruiseRolloutPausedLong",
        expression="kruise_rollout_paused == 1",
        lasting="12h",
        summary=f"The rollout of {_WORKLOAD} has been paused for half a day.",
        meaning="Somebody may have forgotten it: kruise rollout resume or undo.",
    ),
    Alert(
        name="KruiseWorkloadPodsMissing",
        expression=(
            '(kruise_workload_pods{state="wanted",kind!="SidecarSet"}'
            ' - ignoring (state) kruise_workload_pods{state="available",kind!="SidecarSet"}) > 0'
            f" unless {_SAME} kruise_rollout_age_seconds"
        ),
        lasting="15m",
        summary=f"{_WORKLOAD} has {{{{ $value }}}} pods fewer available than it should, and no rollout is under way.",
        meaning="Pods crash, do not fit, or cannot be made: kruise why, then kubectl describe pod.",
    ),
)
MANAGER: tuple[Alert, ...] = (
    Alert(
        name="KruiseNoLeader",
        expression="(sum(kruise_manager_is_leader) or vector(0)) != 1",
        lasting="5m",
        is_critical=True,
        summary="Not one manager leads, but {{ $value }}: no controller works, or Prometheus sees none.",
        meaning="Look at the pods of kruise-controller-manager, and at their /readyz.",
    ),
    Alert(
        name="KruisePanics",
        expression="sum by (controller) (increase(controller_runtime_reconcile_panics_total[15m])) > 0",
        is_critical=True,
        summary="The code of {{ $labels.controller }} fails.",
        meaning="The journal has what was seen: kruise journal dump, and report it.",
    ),
    Alert(
        name="KruiseReconcileErrors",
        expression=(
            "sum by (controller) (rate(controller_runtime_reconcile_errors_total[10m]))"
            " / sum by (controller) (rate(controller_runtime_reconcile_total[10m])) > 0.1"
        ),
        lasting="15m",
        summary="{{ $value | humanizePercentage }} of the passes of {{ $labels.controller }} end with an error.",
        meaning="The log and kruise journal say which; often a right or a quota is missing.",
    ),
    Alert(
        name="KruiseQueueSlow",
        expression=(
            "histogram_quantile(0.99, sum by (name, le) (rate(workqueue_queue_duration_seconds_bucket[10m]))) > 60"
        ),
        lasting="15m",
        summary="Objects wait more than a minute until {{ $labels.name }} looks at them.",
        meaning="More workers (--KIND-workers) or more CPU; or the API server is slow, see KruiseWritesHeldBack.",
    ),
    Alert(
        name="KruiseWritesHeldBack",
        expression="kruise_writes_in_flight >= kruise_write_limit",
        lasting="15m",
        summary="{{ $labels.instance }} would write more than the API server takes.",
        meaning="The API server answers late or refuses (429): look at its load, and at manager.qps.",
    ),
    Alert(
        name="KruiseWebhookErrors",
        expression='sum by (webhook) (rate(controller_runtime_webhook_requests_total{code=~"5.."}[10m])) > 0',
        lasting="10m",
        is_critical=True,
        summary="Webhook {{ $labels.webhook }} answers with errors: what it is about cannot be written.",
        meaning="The log of the managers says why.",
    ),
    Alert(
        name="KruiseWebhookSlow",
        expression=(
            "histogram_quantile(0.99, "
            "sum by (webhook, le) (rate(controller_runtime_webhook_latency_seconds_bucket[10m]))) > 1"
        ),
        lasting="15m",
        summary="Webhook {{ $labels.webhook }} needs {{ $value | humanizeDuration }} (99th percentile).",
        meaning="Whoever makes a pod waits so long: more CPU, or more replicas (manager.replicas).",
    ),
    Alert(
        name="KruiseDaemonDown",
        expression=f'up{{job="{DAEMON_JOB}"}} == 0',
        lasting="15m",
        summary="The node daemon at {{ $labels.instance }} does not answer.",
        meaning="Nothing is pulled ahead, probed or restarted there: look at its pod on that node.",
    ),
)
GROUPS: dict[str, tuple[Alert, ...]] = {"kruise-rollouts": ROLLOUTS, "kruise-manager": MANAGER}


def groups() -> list[dict[str, Any]]:
    """As a file of rules has them, and `spec.groups` of a PrometheusRule."""
    return [{"name": name, "rules": [_rule(alert) for alert in alerts]} for name, alerts in GROUPS.items()]


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **({"for": alert.lasting} if alert.lasting else {}),
        "labels": {"severity": "critical" if alert.is_critical else "warning"},
        "annotations": {
            "summary": alert.summary,
            "description": alert.meaning,
            "runbook": f"{RUNBOOK}#{alert.name.lower()}",
        },
    }
