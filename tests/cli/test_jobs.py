"""`kruise plan`, `why` and `rollout status` of jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from tests.support.commandline import Kruise, local_cluster
from tests.workloads.advancedcronjob.test_local import cron, on_each_node
from tests.workloads.broadcastjob.test_local import job


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def test_the_plan_of_a_broadcast_job(kruise: Kruise, tmp_path: Path) -> None:
    manifest = tmp_path / "job.json"
    manifest.write_text(json.dumps(job("few", "sleep 1", parallelism=2)))
    lines = kruise.ok("plan", "-f", str(manifest))
    assert lines[0] == "Plan:             broadcastjob.apps.kruise.io/few in namespace default"
    assert "Parallelism:      2 at a time" in lines
    rows = [line.split()[:3] for line in lines if line.startswith("node-")]
    assert rows == [["node-1", "1", "to"], ["node-2", "1", "to"], ["node-3", "2", "to"]]
    kruise.create(BROADCAST_JOBS, job("few", "sleep 1", version="v1beta1", parallelism=2))
    done = kruise.ok("rollout", "status", "bcj/few", "--timeout=60s")
    assert done[-1] == 'broadcast job "few" completed: 3 succeeded, 0 failed, 0 active of 3 nodes'
    assert "note: it is completed: no more pods are made" in kruise.ok("plan", "bcj/few")
    assert kruise("why", "bcj/few").code == 0
    assert "does not roll out" in kruise.refused("plan", "bcj/few", "--replicas=2", code=2)


def test_a_broadcast_job_that_fails(kruise: Kruise) -> None:  # BJ-36, BJ-37
    kruise.create(BROADCAST_JOBS, job("fails", "sleep 1; exit 3", version="v1beta1", parallelism=1))
    told = kruise("rollout", "status", "bcj/fails", "--timeout=60s")
    assert told.code == 1
    words = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
    last = f'broadcast job "fails" failed: 0 succeeded, 1 failed, 0 active of 3 nodes ({words})'
    assert last in f"{told.out}{told.err}"
    # The decision that ended it is followed by one that looks back.
    for _ in range(100):
        why = "\n".join(kruise("why", "bcj/fails").lines)
        if "[task-failed]" in why:
            break
        asyncio.run(asyncio.sleep(0.1))
    assert "container main ended with exit code 3 [task-failed]" in why
    assert "see what it printed: kubectl logs fails-" in why


def test_the_plan_of_an_advanced_cron_job(kruise: Kruise, tmp_path: Path) -> None:
    given = cron("nightly", on_each_node(), version="v1beta1", schedule="30 2 * * *", timeZone="Asia/Shanghai")
    kruise.create(ADVANCED_CRON_JOBS, given)
    for _ in range(100):
        if kruise.ok("rollout", "status", "acj/nightly")[-1].startswith("advanced cron job"):
            break
        asyncio.run(asyncio.sleep(0.1))
    data = json.loads(kruise("plan", "acj/nightly", "-o", "json").out)
    assert data["Zone"] == "Asia/Shanghai"
    assert len(data["rows"]) == 10
    assert all(row["TIME (Asia/Shanghai)"].endswith(" 02:30:00") for row in data["rows"])
    assert all(row["UTC"].endswith("T18:30:00Z") for row in data["rows"])
    assert kruise("why", "acj/nightly").code == 0
    assert kruise.ok("rollout", "pause", "acj/nightly") == ["advancedcronjob.apps.kruise.io/nightly paused"]
    assert "note: it is paused: none of these runs starts until it goes on" in kruise.ok("plan", "acj/nightly")
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(cron("bad", on_each_node(), schedule="61 * * * *")))
    assert "spec.schedule: end of range (61) above maximum (59): 61" in kruise.refused("plan", "-f", str(bad))
