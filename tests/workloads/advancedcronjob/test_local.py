"""AdvancedCronJobs on the local cluster, on virtual time: the walk-throughs that everybody reads, and admission."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, IMAGE_PULL_JOBS
from kruise.api.native.apps import JOBS
from kruise.api.native.pod import PODS
from kruise.api.versions import KEPT
from kruise.kinds import feature_of
from kruise.machinery.client.errors import ApiError
from kruise.manager.installation.manifests import manifests
from kruise.manager.options import WORKER_NAMES
from kruise.workloads.advancedcronjob.admission import ADMISSION
from tests.support.admission import Server
from tests.support.world import Json, LocalWorld, run_local
from tests.workloads.advancedcronjob.modelled import IMAGES

MINUTE = 60.0


def pod(command: str) -> Json:
    container = {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", command]}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


def cron(name: str, template: Json, *, version: str = "v1alpha1", **spec: Any) -> Json:
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "AdvancedCronJob",
        "metadata": {"name": name},
        "spec": {"schedule": "*/1 * * * *", "template": template, **spec},
    }


def on_each_node(command: str = "echo hello", **spec: Any) -> Json:
    return {"broadcastJobTemplate": {"spec": {"template": pod(command), **spec}}}


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_the_well_known_example(version: str) -> None:  # ACJ-12, ACJ-47, ACJ-57, ACJ-78, ACJ-92, ACJ-93, BJ-77
    async def story(world: LocalWorld) -> None:
        policy = {"type": "Always", "ttlSecondsAfterFinished": 30}
        await world.create(cron("acj-test", on_each_node(completionPolicy=policy), version=version))
        await world.sleep(8)
        status = (await world.get(ADVANCED_CRON_JOBS, "acj-test"))["status"]
        assert status == {"type": "BroadcastJob"}
        names = set()
        for _ in range(60):
            await world.sleep(5)
            found = await world.list(BROADCAST_JOBS)
            assert len(found) <= 1, "the one before is gone by then"
            names.update(job["metadata"]["name"] for job in found)
        assert sorted(names) == [f"acj-test-{1893456000 + 60 * minute}" for minute in range(1, len(names) + 1)]
        assert len(names) == 5
        pods = await world.list(PODS)
        assert all(one["metadata"]["name"].startswith(f"{max(names)}-") for one in pods)
        await world.delete(ADVANCED_CRON_JOBS, "acj-test", propagation="Background")
        await world.sleep(5)
        assert await world.list(BROADCAST_JOBS) == []

    run_local(story, nodes=2)


def test_a_published_manifest() -> None:  # ACJ-87, ACJ-95
    template = on_each_node(
        completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 90},
        failurePolicy={"type": "Continue", "restartLimit": 3},
        parallelism="100%",
    )
    spec = template["broadcastJobTemplate"]["spec"]["template"]["spec"]
    spec["restartPolicy"] = "OnFailure"
    spec["volumes"] = [{"name": "logs", "hostPath": {"path": "/var/log"}}]
    spec["containers"][0]["volumeMounts"] = [{"name": "logs", "mountPath": "/logs"}]

    async def story(world: LocalWorld) -> None:
        await world.create(cron("clean", template, schedule="*/5 * * * *", startingDeadlineSeconds=60))
        await world.sleep(5 * MINUTE + 10)
        [job] = await world.list(BROADCAST_JOBS)
        assert job["metadata"]["name"] == f"clean-{1893456000 + 300}"
        assert job["spec"]["parallelism"] == "100%"
        assert job["status"]["succeeded"] == 2

    run_local(story, nodes=2)


def test_jobs_one_after_the_other() -> None:  # ACJ-60, ACJ-67, ACJ-80
    async def story(world: LocalWorld) -> None:
        template = {"jobTemplate": {"spec": {"template": pod("sleep 90")}}}
        await world.create(cron("nightly", template, concurrencyPolicy="Forbid"))
        most = 0
        for _ in range(66):
            await world.sleep(5)
            status = (await world.get(ADVANCED_CRON_JOBS, "nightly")).get("status", {})
            most = max(most, len(status.get("active", ())))
        assert most == 1
        names = [int(job["metadata"]["name"].rpartition("-")[2]) - 1893456000 for job in await world.list(JOBS)]
        assert names == [60, 120, 240]  # each when the one before has ended, the latest that is due

    run_local(story, nodes=1)


def test_a_manager_that_was_away_makes_up_for_one_run() -> None:  # ACJ-53, ACJ-82
    async def story(world: LocalWorld) -> None:
        await world.create(cron("often", {"jobTemplate": {"spec": {"template": pod("true")}}}))
        await world.sleep(90)
        assert len(await world.list(JOBS)) == 1
        await world.kill_manager()
        await world.sleep(30 * MINUTE)
        world.start_manager()
        await world.sleep(20)
        names = [int(job["metadata"]["name"].rpartition("-")[2]) - 1893456000 for job in await world.list(JOBS)]
        assert len(names) == 2
        assert names[1] >= 30 * MINUTE

    run_local(story, nodes=1)


def test_pause_is_stored_in_both_versions() -> None:  # ACJ-8, ACJ-37, ACJ-39, ACJ-64
    async def story(world: LocalWorld) -> None:
        template = {"jobTemplate": {"spec": {"template": pod("true")}}}
        made = await world.create({**cron("often", template, paused=True), "status": {"type": "x"}})
        assert "status" not in made  # ACJ-17
        await world.sleep(150)
        assert await world.list(JOBS) == []
        await world.patch(ADVANCED_CRON_JOBS, "often", {"spec": {"paused": False}, "metadata": {"labels": {"a": "b"}}})
        found = await world.get(ADVANCED_CRON_JOBS, "often")
        assert found["spec"]["paused"] is False
        await world.sleep(1)
        assert len(await world.list(JOBS)) == 1  # ACJ-63
        image = {"spec": {"template": {"jobTemplate": {"spec": {"backoffLimit": 9}}}}}
        with pytest.raises(ApiError, match="are forbidden"):
            await world.patch(ADVANCED_CRON_JOBS, "often", image)

    run_local(story, nodes=1)


def test_image_lists_survive_the_older_version() -> None:  # ACJ-2 to ACJ-4
    async def story(world: LocalWorld) -> None:
        await world.create(cron("images", IMAGES, version="v1beta1", paused=True))
        older = dataclasses.replace(ADVANCED_CRON_JOBS, version="v1alpha1")
        shown = await world.get(older, "images")
        assert "imageListPullJobTemplate" not in shown["spec"]["template"]
        assert KEPT in shown["metadata"]["annotations"]
        await world.patch(older, "images", {"spec": {"schedule": "@daily"}})
        found = await world.get(ADVANCED_CRON_JOBS, "images")
        assert found["spec"]["schedule"] == "@daily"
        assert found["spec"]["concurrencyPolicy"] == "Replace"
        assert found["spec"]["template"]["imageListPullJobTemplate"]["spec"]["images"] == ["nginx:1"]

    run_local(story, nodes=1)


def test_labels_of_templates_are_kept() -> None:  # ACJ-6, ACJ-74
    async def story(world: LocalWorld) -> None:
        template = on_each_node()
        template["broadcastJobTemplate"]["metadata"] = {"labels": {"team": "a"}}
        await world.create(cron("labelled", template))
        await world.sleep(65)
        [job] = await world.list(BROADCAST_JOBS)
        assert job["metadata"]["labels"] == {"team": "a"}

    run_local(story, nodes=1)


def test_what_its_controller_may_do() -> None:  # ACJ-81, ACJ-83
    feature = feature_of("apps.kruise.io", "AdvancedCronJob")
    assert feature is not None
    assert "advancedcronjob" in WORKER_NAMES
    roles = [found["rules"] for found in manifests([feature]) if found["kind"] == "ClusterRole"]
    for resource in ("advancedcronjobs", "broadcastjobs", "imagelistpulljobs", "jobs"):
        rules = [rule for found in roles for rule in found if resource in rule["resources"]]
        assert {"watch", "create", "delete"} <= {verb for rule in rules for verb in rule["verbs"]}, resource


def test_image_lists_are_pulled_by_the_clock() -> None:  # ACJ-43, ACJ-50, ACJ-61, ACJ-89
    """A run makes a job for each image, and takes them with it when it goes."""

    async def story(world: LocalWorld) -> None:
        spec = {"images": ["nginx:1.21", "busybox:1.33"], "selector": {"names": ["node-1", "node-2"]}}
        template = {"imageListPullJobTemplate": {"spec": spec}}
        given = cron("pulls", template, version="v1beta1", successfulJobsHistoryLimit=1)
        made = await world.create(given)
        assert made["spec"]["concurrencyPolicy"] == "Replace"

        async def state() -> tuple[int, set[str]]:
            owners = {one["metadata"]["ownerReferences"][0]["name"] for one in await world.list(IMAGE_PULL_JOBS)}
            return len(await world.list(IMAGE_PULL_JOBS)), owners

        await world.sleep(110)
        [run] = await world.list(IMAGE_LIST_PULL_JOBS)
        assert (run["status"]["desired"], run["status"]["succeeded"]) == (2, 2)
        assert await state() == (2, {run["metadata"]["name"]})
        found = await world.get(ADVANCED_CRON_JOBS, "pulls")
        assert (found["status"]["type"], "active" in found["status"]) == ("ImageListPullJob", False)
        await world.sleep(60)
        [newer] = await world.list(IMAGE_LIST_PULL_JOBS)
        assert newer["metadata"]["name"] > run["metadata"]["name"]
        assert await state() == (2, {newer["metadata"]["name"]})

    run_local(story, nodes=2, feature_gates="ImagePullJobGate=true")


def test_with_the_gate_off_no_image_list_is_tried() -> None:  # ACJ-77, IMG-3
    """It is said by a warning and a cause; nothing is tried that is refused each time."""

    async def story(world: LocalWorld) -> None:
        manifest = cron("images", IMAGES, version="v1beta1")
        said = Server(admission=ADMISSION, gates=world.options.gates).changed(manifest)
        [warning] = said.warnings
        assert warning.startswith("spec.template.imageListPullJobTemplate: no run can be made while feature-gate Image")
        await world.create(manifest)
        await world.sleep(5 * MINUTE)
        assert await world.events("images") == []
        await world.kill_manager()
        world.options = dataclasses.replace(world.options, gates={**world.options.gates, "ImagePullJobGate": True})
        world.start_manager()
        await world.sleep(MINUTE)
        assert await world.list(IMAGE_LIST_PULL_JOBS), "with the gate on, runs are made"

    run_local(story, nodes=1)


def test_a_refusal_is_told_once_for_a_run() -> None:  # ACJ-77, ACJ-86
    async def story(world: LocalWorld) -> None:
        refused = {"jobTemplate": {"spec": {"template": pod("true"), "backoffLimit": -1}}}
        await world.create(cron("refused", refused))
        await world.sleep(5 * MINUTE)
        found = await world.events("refused", "FailedCreate")
        assert [event.get("count", 1) for event in found] == [1] * 5

    run_local(story, nodes=1)
