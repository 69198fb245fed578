"""Both API versions at work on the same objects (CS sections 1, 2 and 4)."""

from __future__ import annotations

from tests.scenarios.stage import ALPHA, BETA, Stage, clonesets, images_of, names, restarts_of, scenario, uids

NEW = "nginx:1.26"


@scenario("CS-2", "CS-20", "CS-23", "CS-30", smoke=True)
async def an_object_of_one_version_lives_in_the_other(stage: Stage) -> None:
    """Created in v1alpha1, read and changed in v1beta1, and back; status is the same in both."""
    rolling = {"partition": "50%", "maxUnavailable": 1, "maxSurge": "10%"}
    before = await stage.start(version=ALPHA, replicas=2, rolling=rolling)
    beta = await stage.world.get(clonesets(BETA), "web")
    assert beta["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    moved = beta["spec"]["updateStrategy"]["rollingUpdate"]
    assert moved["podUpdatePolicy"] == "InPlaceIfPossible"
    assert {key: moved[key] for key in rolling} == rolling
    alpha = await stage.world.get(clonesets(ALPHA), "web")
    assert alpha["spec"]["updateStrategy"]["type"] == "InPlaceIfPossible"
    assert {key: alpha["spec"]["updateStrategy"][key] for key in rolling} == rolling
    assert alpha["status"] == beta["status"]
    await stage.change({"updateStrategy": {"partition": 0, "maxSurge": 0}}, version=ALPHA)
    containers = alpha["spec"]["template"]["spec"]["containers"]
    image = {"template": {"spec": {"containers": [{**containers[0], "image": NEW}]}}}
    await stage.change(image, version=ALPHA)
    after = await stage.complete()
    assert uids(after) == uids(before)
    assert {images_of(pod)["main"] for pod in after} == {NEW}


@scenario("IPU-11", "CS-33", "CS-153")
async def both_versions_give_the_same_revision(stage: Stage) -> None:
    """Equal templates have the same hash in either version; writing through the other one updates nothing."""
    before = await stage.start(version=BETA, replicas=1)
    manifest = stage.manifest("web", version=ALPHA, replicas=1)
    manifest["metadata"]["resourceVersion"] = (await stage.world.cloneset())["metadata"]["resourceVersion"]
    await stage.client.update(clonesets(ALPHA), "web", manifest, stage.namespace)
    await stage.seen()
    after = await stage.complete()
    assert uids(after) == uids(before)
    assert restarts_of(after[0]) == {"main": 0}
    assert len(await stage.revisions()) == 1


@scenario("CS-30")
async def defaults_are_written_at_creation(stage: Stage) -> None:
    """What is left out is filled in, in the version of the request."""
    manifest = stage.manifest("beta", replicas=None)
    del manifest["spec"]["updateStrategy"]
    spec = (await stage.world.create(manifest))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    assert spec["updateStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0},
    }
    manifest = stage.manifest("alpha", version=ALPHA, replicas=None)
    del manifest["spec"]["updateStrategy"]
    spec = (await stage.world.create(manifest))["spec"]
    wanted = {"type": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0}
    assert {key: spec["updateStrategy"][key] for key in wanted} == wanted
    await stage.complete("beta")
    await stage.complete("alpha")


@scenario("CS-20", "CS-43", "CS-107")
async def on_delete_works_in_v1alpha1(stage: Stage) -> None:
    """v1alpha1 `OnDelete` is accepted and acts as in v1beta1."""
    [old] = await stage.start(version=ALPHA, replicas=1, policy="OnDelete")
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=0)

    async def nothing_moves() -> None:
        assert uids(await stage.pods()) == uids([old])

    await stage.stays(nothing_moves, seconds=stage.pace.calm / 4)
    await stage.delete_pod(old["metadata"]["name"])
    await stage.complete()


@scenario("CS-52", "CS-41", "CS-42")
async def nonsense_is_refused_in_both_versions(stage: Stage) -> None:
    """Selector and template must fit, restartPolicy must be Always; the answer names the field."""
    for version in (ALPHA, BETA):
        other = stage.manifest("bad", version=version)
        other["spec"]["selector"] = {"matchLabels": {"app": "other"}}
        await stage.is_refused(stage.world.create(other), "template.metadata.labels")
        once = stage.manifest("bad", version=version, pod={"restartPolicy": "Never"})
        await stage.is_refused(stage.world.create(once), "restartPolicy")
        negative = stage.manifest("bad", version=version, replicas=-1)
        await stage.is_refused(stage.world.create(negative), "spec.replicas")
    assert names(await stage.world.list(clonesets(BETA))) == []
