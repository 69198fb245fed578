"""The alert rules before Prometheus' own checker: each one fires when it should, and is quiet when it should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kruise.manager.installation import alerts, dashboards
from tests.support.prometheus import promtool

pytestmark = [pytest.mark.smoke, pytest.mark.spread]

ALERTS = {alert.name: alert for group in alerts.GROUPS.values() for alert in group}
Labels = dict[str, str]
WEB = {"kind": "CloneSet", "namespace": "shop", "name": "web", "instance": "a"}
FEED = {"controller": "cloneset-controller", "instance": "a"}
HOOK = {"webhook": "/mutate-pod", "instance": "a"}


class Case(NamedTuple):
    about: str
    alert: str
    series: list[tuple[str, Labels, str]]
    """A sample a minute: `0+60x9` is 0, 60, ... 540; `_` is none."""
    at: str
    fires: Labels | None = None
    summary: str = ""


def rollout(*, age: str = "0+60x120", paused: str = "0x120", updated: str = "1x120") -> list[tuple[str, Labels, str]]:
    return [
        ("kruise_rollout_age_seconds", WEB, age),
        ("kruise_rollout_paused", WEB, paused),
        ("kruise_workload_pods", {**WEB, "state": "updated"}, updated),
        ("kruise_workload_pods", {**WEB, "state": "available"}, "2x120"),
        ("kruise_workload_pods", {**WEB, "state": "wanted"}, "3x120"),
    ]


def latency(slow: int) -> list[tuple[str, Labels, str]]:
    """Of 100 calls a minute so many take between 1 and 5 seconds."""
    name = "controller_runtime_webhook_latency_seconds_bucket"
    return [
        (name, {**HOOK, "le": "1"}, f"0+{100 - slow}x60"),
        (name, {**HOOK, "le": "5"}, "0+100x60"),
        (name, {**HOOK, "le": "+Inf"}, "0+100x60"),
    ]


def waits(slow: int) -> list[tuple[str, Labels, str]]:
    """Of 100 objects a minute so many wait between 10 and 100 seconds."""
    name, labels = "workqueue_queue_duration_seconds_bucket", {"name": "cloneset-controller", "instance": "a"}
    return [
        (name, {**labels, "le": "10"}, f"0+{100 - slow}x60"),
        (name, {**labels, "le": "100"}, "0+100x60"),
        (name, {**labels, "le": "+Inf"}, "0+100x60"),
    ]


def leaders(**values: int) -> list[tuple[str, Labels, str]]:
    return [("kruise_manager_is_leader", {"instance": name}, f"{value}x60") for name, value in values.items()]


NAMED = {key: value for key, value in WEB.items() if key != "instance"}
FAILED = {**WEB, "result": "failed"}
CASES = [
    Case(
        "a failure",
        "KruiseRolloutFailed",
        [("kruise_rollouts_total", FAILED, "0x10 1x10")],
        "12m",
        NAMED,
        "A rollout of CloneSet shop/web has failed.",
    ),
    Case("is told for a while", "KruiseRolloutFailed", [("kruise_rollouts_total", FAILED, "0x10 1x60")], "40m"),
    Case(
        "another manager leads",
        "KruiseRolloutFailed",
        [
            ("kruise_rollouts_total", FAILED, "1x30 _x30"),
            ("kruise_rollouts_total", {**FAILED, "instance": "b"}, "_x30 0x30"),
        ],
        "35m",
    ),
    Case(
        "what is done is no failure",
        "KruiseRolloutFailed",
        [("kruise_rollouts_total", {**WEB, "result": "done"}, "0x10 1x10")],
        "12m",
    ),
    Case(
        "nothing goes on",
        "KruiseRolloutStuck",
        rollout(),
        "40m",
        WEB,
        "The rollout of CloneSet shop/web has brought nothing about for half an hour.",
    ),
    Case("too early", "KruiseRolloutStuck", rollout(), "33m"),
    Case("it goes on slowly", "KruiseRolloutStuck", rollout(updated="0x25 1x25 2x40"), "70m"),
    Case("a pause is meant", "KruiseRolloutStuck", rollout(paused="1x120"), "40m"),
    Case(
        "for half a day",
        "KruiseRolloutPausedLong",
        [("kruise_rollout_paused", WEB, "1x800")],
        "12h10m",
        WEB,
        "The rollout of CloneSet shop/web has been paused for half a day.",
    ),
    Case("for some hours", "KruiseRolloutPausedLong", [("kruise_rollout_paused", WEB, "1x600 0x200")], "12h10m"),
    Case(
        "one too few",
        "KruiseWorkloadPodsMissing",
        rollout(age="_x120"),
        "20m",
        WEB,
        "CloneSet shop/web has 1 pods fewer available than it should, and no rollout is under way.",
    ),
    Case("a rollout is under way", "KruiseWorkloadPodsMissing", rollout(), "20m"),
    Case(
        "pods of others",
        "KruiseWorkloadPodsMissing",
        [
            ("kruise_workload_pods", {"kind": "SidecarSet", "name": "s", "state": "wanted"}, "3x60"),
            ("kruise_workload_pods", {"kind": "SidecarSet", "name": "s", "state": "available"}, "2x60"),
        ],
        "20m",
    ),
    Case(
        "nobody is seen",
        "KruiseNoLeader",
        [],
        "10m",
        {},
        "Not one manager leads, but 0: no controller works, or Prometheus sees none.",
    ),
    Case(
        "nobody leads",
        "KruiseNoLeader",
        leaders(a=0, b=0, daemon=0),
        "10m",
        {},
        "Not one manager leads, but 0: no controller works, or Prometheus sees none.",
    ),
    Case(
        "two lead",
        "KruiseNoLeader",
        leaders(a=1, b=1),
        "10m",
        {},
        "Not one manager leads, but 2: no controller works, or Prometheus sees none.",
    ),
    Case("one leads", "KruiseNoLeader", leaders(a=1, b=0, daemon=0), "10m"),
    Case(
        "an error of its own",
        "KruisePanics",
        [("controller_runtime_reconcile_panics_total", FEED, "0x5 1x20")],
        "8m",
        {"controller": "cloneset-controller"},
        "The code of cloneset-controller fails.",
    ),
    Case("none", "KruisePanics", [("controller_runtime_reconcile_panics_total", FEED, "1x20")], "18m"),
    Case(
        "one in five",
        "KruiseReconcileErrors",
        [
            ("controller_runtime_reconcile_errors_total", FEED, "0+20x60"),
            ("controller_runtime_reconcile_total", {**FEED, "result": "error"}, "0+20x60"),
            ("controller_runtime_reconcile_total", {**FEED, "result": "success"}, "0+80x60"),
        ],
        "30m",
        {"controller": "cloneset-controller"},
        "20% of the passes of cloneset-controller end with an error.",
    ),
    Case(
        "one in a hundred",
        "KruiseReconcileErrors",
        [
            ("controller_runtime_reconcile_errors_total", FEED, "0+1x60"),
            ("controller_runtime_reconcile_total", {**FEED, "result": "success"}, "0+100x60"),
        ],
        "30m",
    ),
    Case(
        "nothing to do",
        "KruiseReconcileErrors",
        [
            ("controller_runtime_reconcile_errors_total", FEED, "5x60"),
            ("controller_runtime_reconcile_total", {**FEED, "result": "success"}, "9x60"),
        ],
        "30m",
    ),
    Case(
        "half of them wait",
        "KruiseQueueSlow",
        waits(50),
        "30m",
        {"name": "cloneset-controller"},
        "Objects wait more than a minute until cloneset-controller looks at them.",
    ),
    Case("hardly any waits", "KruiseQueueSlow", waits(0), "30m"),
    Case(
        "at the limit",
        "KruiseWritesHeldBack",
        [("kruise_writes_in_flight", {"instance": "a"}, "16x60"), ("kruise_write_limit", {"instance": "a"}, "16x60")],
        "20m",
        {"instance": "a"},
        "a would write more than the API server takes.",
    ),
    Case(
        "now and then",
        "KruiseWritesHeldBack",
        [
            ("kruise_writes_in_flight", {"instance": "a"}, "16x10 3x5 16x10"),
            ("kruise_write_limit", {"instance": "a"}, "16x60"),
        ],
        "22m",
    ),
    Case(
        "errors",
        "KruiseWebhookErrors",
        [("controller_runtime_webhook_requests_total", {**HOOK, "code": "500"}, "0+1x60")],
        "25m",
        {"webhook": "/mutate-pod"},
        "Webhook /mutate-pod answers with errors: what it is about cannot be written.",
    ),
    Case(
        "answers",
        "KruiseWebhookErrors",
        [("controller_runtime_webhook_requests_total", {**HOOK, "code": "200"}, "0+100x60")],
        "25m",
    ),
    Case(
        "half of them are slow",
        "KruiseWebhookSlow",
        latency(50),
        "30m",
        {"webhook": "/mutate-pod"},
        "Webhook /mutate-pod needs 4.92s (99th percentile).",
    ),
    Case("quick", "KruiseWebhookSlow", latency(0), "30m"),
    Case(
        "no answer",
        "KruiseDaemonDown",
        [("up", {"job": "kruise-daemon-metrics", "instance": "node-1"}, "0x60")],
        "20m",
        {"job": "kruise-daemon-metrics", "instance": "node-1"},
        "The node daemon at node-1 does not answer.",
    ),
    Case("others", "KruiseDaemonDown", [("up", {"job": "node-exporter", "instance": "node-1"}, "0x60")], "20m"),
]


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("rules") / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": alerts.groups()}))
    return file


def test_prometheus_takes_all_rules(rules: Path) -> None:
    assert f"SUCCESS: {len(ALERTS)} rules found" in promtool("check", "rules", rules)


def test_prometheus_understands_every_query_of_a_dashboard(tmp_path: Path) -> None:
    found = []
    for text in dashboards.files().values():
        for panel in json.loads(text)["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$__rate_interval", "5m").replace("$__range", "6h")
                found.append({"record": f"query_{len(found)}", "expr": query})
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": found}]}))
    assert f"SUCCESS: {len(found)} rules found" in promtool("check", "rules", file)
    assert len(found) > 20


def test_every_alert_fires_in_one_case_and_is_quiet_in_another() -> None:
    for name in ALERTS:
        assert {case.fires is not None for case in CASES if case.alert == name} == {True, False}, name


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.alert}: {case.about}") for case in CASES])
def test_an_alert(case: Case, rules: Path, tmp_path: Path) -> None:
    file = tmp_path / "case.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [_test(case)]}))
    assert "SUCCESS" in promtool("test", "rules", file)


def _test(case: Case) -> dict[str, Any]:
    alert = ALERTS[case.alert]
    expected = []
    if case.fires is not None:
        [rule] = [rule for group in alerts.groups() for rule in group["rules"] if rule["alert"] == alert.name]
        annotations = {**rule["annotations"], "summary": case.summary}
        expected = [{"exp_labels": {**case.fires, **rule["labels"]}, "exp_annotations": annotations}]
    return {
        "interval": "1m",
        "input_series": [{"series": _named(name, labels), "values": values} for name, labels, values in case.series],
        "alert_rule_test": [{"eval_time": case.at, "alertname": alert.name, "exp_alerts": expected}],
    }


def _named(name: str, labels: Labels) -> str:
    return f"{name}{{{','.join(f'{key}={json.dumps(value)}' for key, value in labels.items())}}}"
