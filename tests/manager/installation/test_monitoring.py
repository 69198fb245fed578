"""What Prometheus and Grafana are told. That Prometheus takes it is shown where it is installed (tests/real)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.kinds import features
from kruise.manager.installation import alerts, dashboards
from kruise.manager.installation.chart import chart_files, kustomize_files
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.monitoring import EVERYTHING
from tests.support import metric_families, promql
from tests.support.metric_families import Family

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
OF_PROMETHEUS = {"up": ("job", "instance")}
ALERTS = [alert for group in alerts.GROUPS.values() for alert in group]
Json = dict[str, Any]


def series() -> dict[str, set[str]]:
    """Everything that can be asked for, with its labels."""
    found = {
        name: {*family.labels, *(("le",) if name.endswith("_bucket") else ()), "job", "instance"}
        for family in metric_families.of_manager().values()
        for name in family.series
    }
    return found | {name: set(labels) for name, labels in OF_PROMETHEUS.items()}


def queries() -> Iterator[tuple[str, str]]:
    for alert in ALERTS:
        yield alert.name, alert.expression
    for name, text in dashboards.files().items():
        model = json.loads(text)
        for panel in model["panels"]:
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target["expr"]
        for variable in model["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
                assert found
                yield f"{name}: ${variable['name']}", f"count by ({found[2]}) ({found[1]})"


def test_queries_are_read_rightly() -> None:
    """Of the tests below."""
    found = promql.parse('sum by (a, le) (rate(x_total{b="y{z}",c!~"."}[5m] offset 1m)) / on (d) (y > 0) or vector(0)')
    assert found == (
        (("x_total", {"b", "c"}), ("y", frozenset())),
        {"a", "le", "d"},
    )


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for name, query in queries()])
def test_only_what_is_served_is_asked_for(query: str) -> None:
    known = series()
    asked = promql.parse(query)
    assert asked.metrics
    for metric, labels in asked.metrics:
        assert metric in known, f"nobody serves {metric}"
        assert labels <= known[metric], f"{metric} has no {labels - known[metric]}"
    assert asked.grouped <= set().union(*(known[metric] for metric, _ in asked.metrics))


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_what_an_alert_says_has_labels_that_are_there(alert: alerts.Alert) -> None:
    asked = promql.parse(alert.expression)
    said = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.meaning))
    is_grouped = re.match(r"\(?(?:sum|histogram_quantile)\b", alert.expression)
    labels = asked.grouped if is_grouped else series()[asked.metrics[0].metric]
    assert said <= labels


# The page


def rows(title: str) -> dict[str, list[str]]:
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if "|" in line]
    return {row[0].strip(" `"): row[1:] for row in cells if row[0].strip().startswith("`")}


def test_the_page_lists_every_metric_as_it_is_served() -> None:
    def row(family: Family) -> list[str]:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        daemon = "yes" if family.name in metric_families.of_daemon() else ""
        return [family.type, labels, daemon, family.meaning]

    assert rows("Metrics") == {name: row(family) for name, family in metric_families.of_manager().items()}
    assert not metric_families.of_daemon().keys() - metric_families.of_manager().keys()


def test_the_page_says_of_every_alert_what_to_do() -> None:
    headings = re.findall(r"^### (Kruise\w+)$", PAGE, re.MULTILINE)
    assert headings == [alert.name for alert in ALERTS]
    for alert in ALERTS:
        text = " ".join(PAGE.partition(f"\n### {alert.name}\n")[2].partition("\n#")[0].split())
        assert text.partition(".")[0] == ("Critical" if alert.is_critical else "Warning")
        assert len(text) > 150
    [group, *more] = alerts.groups()
    assert [one["name"] for one in (group, *more)] == list(alerts.GROUPS)
    assert group["rules"][0]["annotations"]["runbook"] == "docs/metrics.md#kruiserolloutfailed"


# The objects


def watched(**values: Any) -> list[Json]:
    found = manifests(features(), namespace="own", values={**EVERYTHING, **values}, runs=("manager", "daemon"))
    plain = manifests(features(), namespace="own", runs=("manager", "daemon"))
    assert found[: len(plain)] == plain
    return found[len(plain) :]


def test_nothing_of_it_is_there_unless_somebody_asks() -> None:
    kinds = {manifest["kind"] for manifest in manifests(features(), runs=("manager", "daemon"))}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}


def test_monitors_find_the_ports_of_manager_and_daemon() -> None:
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in watched()}
    plain = {one["kind"]: one for one in manifests(features(), namespace="own", runs=("manager", "daemon"))}
    for name, kind in (("kruise-manager-metrics", "Deployment"), ("kruise-daemon-metrics", "DaemonSet")):
        monitor, service = by_name["ServiceMonitor", name]["spec"], by_name["Service", name]
        assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        [endpoint], [port] = monitor["endpoints"], service["spec"]["ports"]
        assert (endpoint["port"], endpoint["honorLabels"]) == (port["name"], True)
        template = plain[kind]["spec"]["template"]
        assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
        listening = [one["containerPort"] for one in template["spec"]["containers"][0]["ports"]]
        assert port["targetPort"] in listening
    assert {alerts.MANAGER_JOB, alerts.DAEMON_JOB} == {name for kind, name in by_name if kind == "Service"}


def test_labels_by_which_others_find_it_can_be_chosen() -> None:
    chosen = {"release": "prometheus"}
    values = {f"metrics.{part}.labels": chosen for part in ("serviceMonitor", "rules", "dashboards")}
    found = {one["kind"]: one["metadata"].get("labels") for one in watched(**values)}
    assert (found["ServiceMonitor"], found["PrometheusRule"], found["ConfigMap"]) == (chosen, chosen, chosen)
    default = {one["kind"]: one["metadata"].get("labels") for one in watched()}
    assert (default["PrometheusRule"], default["ConfigMap"]) == (None, {"grafana_dashboard": "1"})


def test_the_kustomize_base_has_it_as_a_component() -> None:
    files = kustomize_files(features())
    assert yaml.safe_load(files["monitoring/kustomization.yaml"])["kind"] == "Component"
    kinds = [one["kind"] for one in yaml.safe_load_all(files["monitoring/monitoring.yaml"])]
    assert sorted(kinds) == sorted(one["kind"] for one in watched())
    assert "kruise-alerts" not in "".join(text for name, text in files.items() if "/" not in name)


def test_the_chart_has_it_in_a_file_of_its_own_and_words_for_grafana_are_none_for_helm() -> None:
    text = chart_files(features(), "1")["templates/monitoring.yaml"]
    assert text.count("{{- if .Values.metrics.serviceMonitor.enabled }}") == 4
    assert '{{ "{{" }} $labels.kind }}' in text
    assert '{{ "{{" }}cause}}' in text
    # What is left in braces is Helm's own.
    left = text.replace('{{ "{{" }}', "")
    assert {found.split()[0] for found in re.findall(r"\{\{-? *(.*?) *-?\}\}", left)} <= {
        "/*", "if", "end", ".Values.installation.namespace", ".Values.manager.metrics.port", ".Values.daemon.port",
        ".Values.metrics.serviceMonitor.interval", ".Values.metrics.serviceMonitor.labels",
        ".Values.metrics.rules.labels", ".Values.metrics.dashboards.labels",
    }  # fmt: skip


@pytest.mark.parametrize("name", dashboards.files())
def test_panels_do_not_cover_each_other(name: str) -> None:
    model = json.loads(dashboards.files()[name])
    taken: set[tuple[int, int]] = set()
    for panel in model["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in model["panels"]}) == len(model["panels"])
    assert len(name) < 40
    assert f"{model['uid']}.json" == name
