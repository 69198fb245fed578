"""A real Prometheus asks a manager at work, as the ServiceMonitor says, with all rules and queries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.embedded import embedded_manager, embedded_options, install
from kruise.kinds import features
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import RealClock
from kruise.manager.installation import alerts, dashboards, monitoring
from kruise.manager.options import Options
from tests.support.manifests import cloneset_manifest
from tests.support.ports import free_port
from tests.support.prometheus import Prometheus, prometheus
from tests.support.waiting import eventually

pytestmark = [pytest.mark.smoke]

WEB = 'kind="CloneSet",namespace="default",name="web"'
LABELS = {"namespace": "kruise-system", "service": alerts.MANAGER_JOB, "pod": "kruise-controller-manager-0"}
"""As an operator adds them to whatever a target serves."""
SIDECARS = {
    "apiVersion": SIDECAR_SETS.api_version,
    "kind": SIDECAR_SETS.kind,
    "metadata": {"name": "logs"},
    "spec": {"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "logs", "image": "fluent-bit:3"}]},
}


def configuration(port: int, rules: Path) -> dict[str, Any]:
    [endpoint] = monitoring.manager_monitor()["spec"]["endpoints"]
    return {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": alerts.MANAGER_JOB,
                "honor_labels": endpoint["honorLabels"],
                "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": LABELS}],
            }
        ],
    }


class Site:
    def __init__(self, client: Client, asked: Prometheus) -> None:
        self.client = client
        self.asked = asked

    async def sees(self, query: str, value: float) -> None:
        async def check() -> None:
            assert await self.asked.value(query) == value

        await eventually(check, within=60)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A local cluster with a manager in it, and Prometheus."""
    cluster = LocalCluster(ClusterOptions(nodes=3, seed=1), clock=RealClock())
    running = asyncio.create_task(cluster.run())
    await cluster.ready.wait()
    await install(cluster, features())
    port = free_port()
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": alerts.groups()}))
    options = embedded_options(Options(), metrics_address=f"127.0.0.1:{port}")
    stop = asyncio.Event()
    manager = embedded_manager(cluster, features(), options, random=Random(1))
    managing = asyncio.create_task(manager.run(stop))
    async with prometheus(tmp_path, configuration(port, rules)) as asked:
        yield Site(cluster.client("somebody"), asked)
    stop.set()
    await managing
    running.cancel()
    await asyncio.wait({running})


async def test_from_a_rollout_to_what_a_dashboard_shows_of_it(site: Site) -> None:
    await site.sees("kruise_manager_is_leader", 1)
    await site.client.create(SIDECAR_SETS, SIDECARS)
    await site.client.create(CLONE_SETS, cloneset_manifest("web"), "default")
    await site.sees(f'kruise_rollouts_total{{{WEB},result="done"}}', 1)
    assert await site.asked.value(f'kruise_workload_pods{{{WEB},state="updated"}}') == 3

    pause = {"spec": {"updateStrategy": {"rollingUpdate": {"paused": True}}}}
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"}]
    await site.client.patch(CLONE_SETS, "web", pause, "default")
    await site.client.patch(CLONE_SETS, "web", image, "default", patch_type=PatchType.JSON)
    await site.sees(f"kruise_rollout_paused{{{WEB}}}", 1)
    await site.sees(f'kruise_rollout_waiting_seconds_total{{{WEB},cause="paused"}} > bool 3', 1)
    await site.sees(f"kruise_rollout_age_seconds{{{WEB}}} > bool 3", 1)
    await _queries_are_answered(site.asked)
    pause["spec"]["updateStrategy"]["rollingUpdate"]["paused"] = False
    await site.client.patch(CLONE_SETS, "web", pause, "default")
    await site.sees(f'kruise_rollouts_total{{{WEB},result="done"}}', 2)
    assert await site.asked.value(f"kruise_rollout_last_duration_seconds{{{WEB}}}") > 3

    # Labels are those of the workload, and not of the manager's pod.
    [(of_web, _)] = await site.asked.ask('kruise_workload_pods{name="web",state="wanted"}')
    [(of_logs, _)] = await site.asked.ask('kruise_workload_pods{name="logs",state="wanted"}')
    [(of_manager, _)] = await site.asked.ask("kruise_manager_is_leader")
    assert (of_web["namespace"], of_web["pod"]) == ("default", LABELS["pod"])
    assert "namespace" not in of_logs
    assert of_manager["namespace"] == LABELS["namespace"]
    assert not await site.asked.ask('{exported_namespace!=""}')

    await site.client.delete(CLONE_SETS, "web", "default")

    async def is_gone() -> None:
        assert not await site.asked.ask('{name="web"}')

    await eventually(is_gone, within=60)
    found = (await site.asked.get("/api/v1/rules"))["groups"]
    rules = [rule for group in found for rule in group["rules"]]
    assert {rule["name"]: (rule["health"], rule.get("lastError")) for rule in rules} == {
        alert.name: ("ok", None) for group in alerts.GROUPS.values() for alert in group
    }
    assert [rule["name"] for rule in rules if rule["state"] != "inactive"] == []


async def _queries_are_answered(asked: Prometheus) -> None:
    """Each as Grafana asks it, with everything chosen; those of rollouts have something to show now."""
    chosen = {
        "$__rate_interval": "10s",
        "$__range": "1h",
        "$kind": ".*",
        "$workload_namespace": ".*",
        "$workload": ".*",
    }
    for name, text in dashboards.files().items():
        for panel in json.loads(text)["panels"]:
            for target in panel["targets"]:
                query = target["expr"]
                for variable, value in sorted(chosen.items(), reverse=True):
                    query = query.replace(variable, value)
                assert "$" not in query
                found = await asked.ask(query)
                assert found or name != "kruise-rollouts.json", f"{panel['title']}: {query}"
