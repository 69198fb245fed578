"""`kruise plan`, `why` and `rollout status` of jobs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from tests.support.commandline import Kruise, local_cluster, plain
from tests.support.walkthroughs import DOCUMENTS
from tests.support.world import Json
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
    for words in (["set", "image", "bcj/few", "main=other"], ["rollout", "pause", "bcj/few"]):
        assert "broadcastjob.apps.kruise.io/few has ended (completed at " in kruise.refused(*words, code=1)
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
    refused = kruise.refused("plan", "-f", str(bad))
    assert refused.startswith('admission webhook "vadvancedcronjob.kb.io" denied the request: spec.schedule: ')
    assert refused.endswith("end of range (61) above maximum (59): 61")


def file_of(path: Path, *documents: Json) -> str:
    path.write_text("\n---\n".join(map(json.dumps, documents)))
    return str(path)


def debugging(name: str) -> Json:
    container = {
        "name": "look",
        "image": "busybox:1.36",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File",
    }
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "EphemeralJob",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "nobody"}},
            "template": {"ephemeralContainers": [container]},
        },
    }


def test_jobs_among_the_objects_of_a_file_are_planned(kruise: Kruise, tmp_path: Path) -> None:
    sample = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    web = yaml.safe_load((DOCUMENTS / "manifests" / "tour.yaml").read_text())
    jobs = [job("each", "sleep 1"), cron("hourly", on_each_node(), schedule="@hourly"), debugging("look")]
    file = file_of(tmp_path / "all.json", *jobs, web, sample)
    lines = kruise.ok("plan", "-f", file)
    assert [line.split()[1] for line in lines if line.startswith("Plan:")] == [
        "broadcastjob.apps.kruise.io/each",
        "advancedcronjob.apps.kruise.io/hourly",
        "ephemeraljob.apps.kruise.io/look",
        "cloneset.apps.kruise.io/web",
    ]
    assert lines[-2:] == ["Not looked at: configmap/c", "Result of all: complete"]
    data = json.loads(kruise("plan", "-f", file, "-o", "json").out)
    assert [one["object"]["kind"] for one in data["items"]] == [
        "BroadcastJob",
        "AdvancedCronJob",
        "EphemeralJob",
        "CloneSet",
    ]
    assert [row["NODE"] for row in data["items"][0]["rows"]] == ["node-1", "node-2", "node-3"]
    assert data["notLookedAt"] == ["configmap/c"]
    assert (
        "### Plan for `broadcastjob.apps.kruise.io/each` in `default`" in kruise("plan", "-f", file, "-o=markdown").out
    )
    drawn = plain(kruise.drawn("plan", "-f", file))
    assert "1 of 4: broadcastjob.apps.kruise.io/each" in drawn
    assert "it suits no node" not in drawn
    alone = file_of(tmp_path / "jobs.json", *jobs)
    assert not any("Result of all" in line for line in kruise.ok("plan", "-f", alone)), "nothing rolls out"
    # What is said of containers is not meant for jobs.
    edited = kruise.ok("plan", "-f", file, "--image", "*=nginx:1.27")
    assert edited[0] == "== 1 of 1: cloneset.apps.kruise.io/web =="
    assert "broadcastjob.apps.kruise.io/each" in edited[-1]


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_the_plan_of_a_job_tells_what_admission_says(kruise: Kruise, tmp_path: Path, version: str) -> None:
    misspelt = job("misspelt", "sleep 1", version=version)
    misspelt["spec"]["template"]["spec"]["containers"][0]["imagePullPolcy"] = "Always"
    lines = kruise.ok("plan", "-f", file_of(tmp_path / "a.json", misspelt))
    assert 'Warning (admission): unknown field "spec.template.spec.containers[0].imagePullPolcy"' in lines
    hourly = cron("hourly", {"broadcastJobTemplate": {"spec": {"template": misspelt["spec"]["template"]}}})
    lines = kruise.ok("plan", "-f", file_of(tmp_path / "b.json", hourly))
    place = "spec.template.broadcastJobTemplate.spec.template.spec.containers[0].imagePullPolcy"
    assert f'Warning (admission): unknown field "{place}"' in lines
    wrong = job("wrong", "sleep 1", version=version, paralelism=2)
    assert 'unknown field "spec.paralelism"' in kruise.refused("plan", "-f", file_of(tmp_path / "c.json", wrong))
    always = job("always", "sleep 1", version=version)
    always["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    refused = kruise.refused("plan", "-f", file_of(tmp_path / "d.json", always))
    assert refused.startswith('admission webhook "vbroadcastjob.kb.io" denied the request: ')
    ends = debugging("ends")
    ends["spec"]["replicas"] = -1
    refused = kruise.refused("plan", "-f", file_of(tmp_path / "e.json", ends))
    assert refused.startswith('admission webhook "vephemeraljobs.kb.io" denied the request: spec.replicas: ')


def test_the_file_of_a_job_that_is_under_way(kruise: Kruise, tmp_path: Path) -> None:
    """What is there already counts: nodes that have their pod are not to come again."""
    given = job("half", "sleep 600", version="v1beta1", parallelism=1)
    kruise.create(BROADCAST_JOBS, given)
    file = tmp_path / "half.json"
    file.write_text(json.dumps(given))
    for _ in range(100):
        rows = json.loads(kruise("plan", "-f", str(file), "-o", "json").out)["rows"]
        if rows[0]["STATE"] == "active":
            break
        asyncio.run(asyncio.sleep(0.1))
    assert [(row["NODE"], row["TURN"], row["STATE"]) for row in rows] == [
        ("node-1", "-", "active"),
        ("node-2", "2", "to come"),
        ("node-3", "3", "to come"),
    ]
    file.write_text(json.dumps(job("half", "sleep 600", version="v1alpha1", parallelism=3)))
    told = json.loads(kruise("plan", "-f", str(file), "-o", "json").out)["rows"]
    assert [row["TURN"] for row in told] == ["-", "1", "1"]
