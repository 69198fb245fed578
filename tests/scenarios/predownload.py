"""Images pulled ahead of an in-place rollout (IPU section 17)."""

from __future__ import annotations

from kruise.api.apps import shared
from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES
from kruise.api.native.nodes import NODES
from kruise.inplace import keys
from tests.scenarios.stage import ALPHA, Stage, hash_in, names, scenario
from tests.support.world import Json

NEW = "nginx:1.26"
ON = {"PreDownloadImageForInPlaceUpdate": True}
OFF = {"PreDownloadImageForInPlaceUpdate": False}


async def serve_pull_jobs(stage: Stage) -> None:
    """Wait until nodes can be told to pull: a job for nodes without a NodeImage has nothing to do."""

    async def are_there() -> None:
        nodes = {node.metadata.name for node in (await stage.client.list(NODES)).items}
        assert {one.metadata.name for one in (await stage.client.list(NODE_IMAGES)).items} >= nodes

    await stage.until(are_there)


async def jobs_of(stage: Stage, name: str = "web") -> list[Json]:
    return [
        job for job in await stage.world.list(IMAGE_PULL_JOBS) if job["metadata"]["ownerReferences"][0]["name"] == name
    ]


async def until_jobs(stage: Stage, count: int, name: str = "web") -> list[Json]:
    async def there() -> list[Json]:
        found = await jobs_of(stage, name)
        assert len(found) == count, names(found)
        return found

    found: list[Json] = await stage.until(there)
    return found


async def labels_of_newest(stage: Stage, name: str = "web") -> Json:
    labels: Json = (await stage.revisions(name))[-1]["metadata"]["labels"]
    return labels


@scenario("IPU-150", "IPU-151", "IPU-152", "IPU-153", "CS-69", gates=ON)
async def new_images_are_pulled_ahead(stage: Stage) -> None:
    """One job for each container with a new image, while the rollout is still paused; they go when it is done."""
    await serve_pull_jobs(stage)
    containers = [{"name": "main", "image": "nginx:1.25"}, {"name": "side", "image": "redis:6"}]
    pod = {"imagePullSecrets": [{"name": "registry"}]}
    rolling = {
        "paused": True,
        "maxUnavailable": 1,
        "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 5, "imagePreDownloadTimeoutSeconds": 60},
    }
    await stage.start(replicas=4, containers=containers, pod=pod, rolling=rolling, annotations={"note": "x"})
    assert await jobs_of(stage) == []
    await stage.set_image(NEW)
    [job] = await until_jobs(stage, 1)
    cloneset = await stage.world.cloneset()
    revision = cloneset["status"]["updateRevision"]
    assert job["metadata"]["name"] == f"{revision}-main"
    assert job["metadata"]["labels"] == {"app": "web", "controller.kubernetes.io/hash": hash_in(revision)}
    assert job["metadata"]["ownerReferences"][0]["uid"] == cloneset["metadata"]["uid"]
    assert job["metadata"]["ownerReferences"][0]["controller"] is True
    requirement = {"key": keys.REVISION_LABEL, "operator": "NotIn", "values": [revision, hash_in(revision)]}
    assert job["spec"] == {
        "image": NEW,
        "pullSecrets": ["registry"],
        "podSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [requirement]},
        "parallelism": 5,
        "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": 60},
        "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 600},
        "sandboxConfig": {"annotations": {"note": "x"}, "labels": job["metadata"]["labels"]},
        "imagePullPolicy": "IfNotPresent",
    }
    text = f"created ImagePullJob {revision}-main for image: {NEW}"
    await stage.has_event("CreatedImagePullJob", text)

    async def is_marked() -> None:
        assert (await labels_of_newest(stage)).get(keys.PREDOWNLOAD_CREATED_LABEL) == "true"

    await stage.until(is_marked)

    async def is_pulled() -> None:
        """On the nodes of all pods, before any pod has changed."""
        status = (await jobs_of(stage))[0].get("status", {})
        nodes = {pod["spec"]["nodeName"] for pod in await stage.world.pods()}
        assert (status.get("succeeded"), status.get("message")) == (len(nodes), "job has completed")

    await stage.until(is_pulled)
    assert (await stage.world.cloneset())["status"].get("updatedReplicas", 0) == 0
    await stage.roll({"paused": False})
    await stage.complete()
    await until_jobs(stage, 0)


@scenario("IPU-150", "IPU-154", "CS-22", gates=ON)
async def pulls_wait_for_updated_pods_by_annotation(stage: Stage) -> None:
    """v1alpha1: parallelism and the number of updated pods that must be ready first come from annotations."""
    await serve_pull_jobs(stage)
    metadata = {"annotations": {shared.PREDOWNLOAD_PARALLELISM: "2", shared.PREDOWNLOAD_MIN_READY: "1"}}
    await stage.start(version=ALPHA, replicas=4, rolling={"partition": 4, "maxUnavailable": 1}, metadata=metadata)
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=0)

    async def none_yet() -> None:
        assert await jobs_of(stage) == []

    await stage.stays(none_yet, seconds=stage.pace.calm / 4)
    await stage.roll({"partition": 3})
    [job] = await until_jobs(stage, 1)
    assert job["spec"]["parallelism"] == 2
    assert job["spec"]["pullPolicy"]["timeoutSeconds"] == 300


@scenario("IPU-155", gates=ON)
async def the_number_of_updated_pods_may_be_a_percentage(stage: Stage) -> None:
    """50 % of 4: two updated pods must be ready before images are pulled."""
    await serve_pull_jobs(stage)
    metadata = {"annotations": {shared.PREDOWNLOAD_MIN_READY: "50%"}}
    await stage.start(version=ALPHA, replicas=4, rolling={"partition": 3, "maxUnavailable": 1}, metadata=metadata)
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=1, updatedReadyReplicas=1)

    async def none_yet() -> None:
        assert await jobs_of(stage) == []

    await stage.stays(none_yet, seconds=stage.pace.calm / 4)
    await stage.roll({"partition": 2})
    await until_jobs(stage, 1)


@scenario("IPU-151", gates=ON)
async def pulls_that_would_not_help_are_left_out(stage: Stage) -> None:
    """Few replicas, ReCreate, everything at once, or a change that needs new pods: the revision is marked so."""
    await serve_pull_jobs(stage)
    few = {"replicas": 3}
    recreate = {"replicas": 4, "policy": "ReCreate"}
    at_once = {"replicas": 4, "rolling": {"maxUnavailable": "100%"}}
    for name, options in (("few", few), ("recreate", recreate), ("at-once", at_once), ("other", {"replicas": 4})):
        await stage.start(name, **options)
        change: Json = {"name": "main", "image": NEW}
        if name == "other":
            change["env"] = [{"name": "A", "value": "b"}]
        await stage.edit_template({"spec": {"containers": [change]}}, name)
        await stage.complete(name)
        labels = await labels_of_newest(stage, name)
        assert labels[keys.PREDOWNLOAD_IGNORED_LABEL] == "true"
        assert keys.PREDOWNLOAD_CREATED_LABEL not in labels
        assert await jobs_of(stage, name) == []


@scenario("IPU-151", gates=OFF)
async def nothing_is_pulled_ahead_without_the_gate(stage: Stage) -> None:
    """No job and no mark on the revision."""
    await serve_pull_jobs(stage)
    await stage.start(replicas=4, rolling={"maxUnavailable": 1})
    await stage.set_image(NEW)
    await stage.complete()
    assert await jobs_of(stage) == []
    labels = await labels_of_newest(stage)
    assert not {keys.PREDOWNLOAD_CREATED_LABEL, keys.PREDOWNLOAD_IGNORED_LABEL} & set(labels)


@scenario("IPU-151", "IPU-153", gates=ON)
async def pull_jobs_are_made_once_for_a_revision(stage: Stage) -> None:
    """Somebody deletes the job: it is not made again, and the rollout goes on."""
    await serve_pull_jobs(stage)
    await stage.start(replicas=4, rolling={"maxUnavailable": 1, "partition": 3})
    await stage.set_image(NEW)
    [job] = await until_jobs(stage, 1)
    await stage.reaches(updatedReplicas=1, updatedAvailableReplicas=1)
    await stage.world.delete(IMAGE_PULL_JOBS, job["metadata"]["name"])
    await until_jobs(stage, 0)
    await stage.roll({"partition": 1})
    await stage.reaches(updatedReplicas=3, updatedAvailableReplicas=3)
    assert await jobs_of(stage) == []
