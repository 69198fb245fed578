"""Claims of pods, and changes of their templates (CS sections 12 and 13)."""

from __future__ import annotations

from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.inplace import keys
from tests.scenarios.stage import ALPHA, INSTANCE_ID, Stage, names, restarts_of, scenario, uids
from tests.support.world import Json

NEW = "nginx:1.26"


def sizes(claims: list[Json]) -> set[str]:
    return {claim["spec"]["resources"]["requests"]["storage"] for claim in claims}


def instances(objects: list[Json]) -> set[str]:
    return {item["metadata"]["labels"][INSTANCE_ID] for item in objects}


@scenario("CS-120", "CS-85", "CS-86", "CS-104", smoke=True)
async def each_pod_has_claims_of_its_own(stage: Stage) -> None:
    """Names, labels and owners; in place keeps them, recreating makes new ones, scaling in deletes them."""
    before = await stage.start(replicas=2, claims=("data", "logs"))
    uid = (await stage.world.cloneset())["metadata"]["uid"]
    claims = await stage.claims()
    assert sorted(names(claims)) == sorted(
        f"{template}-web-{instance}" for template in ("data", "logs") for instance in instances(before)
    )
    for claim in claims:
        [owner] = claim["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("CloneSet", uid, True)
        assert claim["metadata"]["labels"] == {"app": "web", INSTANCE_ID: claim["metadata"]["name"].split("-")[-1]}
    for pod in before:
        instance = pod["metadata"]["labels"][INSTANCE_ID]
        volumes = {item["name"]: item.get("persistentVolumeClaim") for item in pod["spec"]["volumes"]}
        assert volumes["data"] == {"claimName": f"data-web-{instance}"}
        assert volumes["logs"] == {"claimName": f"logs-web-{instance}"}
    await stage.set_image(NEW)
    after = await stage.complete()
    assert (uids(after), uids(await stage.claims())) == (uids(before), uids(claims))
    await stage.roll({"podUpdatePolicy": "ReCreate"})
    await stage.set_image("nginx:1.27")
    recreated = await stage.complete()

    async def claims_follow() -> None:
        now = await stage.claims()
        assert instances(now) == instances(await stage.pods())
        assert len(now) == 2 * len(await stage.pods())

    await stage.until(claims_follow)
    assert not set(uids(recreated)) & set(uids(after))
    await stage.scale(1)
    await stage.complete()
    await stage.until(claims_follow)


@scenario("CS-121", "CS-122", "CS-20", smoke=True)
async def claims_are_used_again_until_reuse_is_switched_off(stage: Stage) -> None:
    """v1alpha1, reuse on: deleted pods come back under their names with their claims. Off: everything is new (edge case
    14)."""
    before = await stage.start(version=ALPHA, replicas=2, claims=("data",), pod={"terminationGracePeriodSeconds": 1})
    assert (await stage.world.cloneset())["spec"]["scaleStrategy"]["enablePVCReuse"] is True
    claims = uids(await stage.claims())
    for name in names(before):
        await stage.delete_pod(name)

    async def are_back() -> None:
        now = await stage.pods()
        assert names(now) == names(before)
        assert not set(uids(now).values()) & set(uids(before).values())

    await stage.until(are_back)
    again = await stage.complete()
    assert uids(await stage.claims()) == claims
    await stage.change({"scaleStrategy": {"enablePVCReuse": False}})
    for name in names(again):
        await stage.delete_pod(name)
    for name in names(again):
        await stage.is_gone(PODS, name)
    fresh = await stage.complete()
    assert not set(names(fresh)) & set(names(before))
    for name in claims:
        await stage.is_gone(PERSISTENT_VOLUME_CLAIMS, name)
    now = await stage.claims()
    assert instances(now) == instances(fresh)
    assert {claim["metadata"]["ownerReferences"][0]["kind"] for claim in now} == {"CloneSet"}


@scenario("CS-122", "CS-5")
async def claims_of_lost_pods_are_cleaned_up_by_default(stage: Stage) -> None:
    """v1beta1, reuse off: a pod deleted by hand takes its claim along, its successor has another name and claim."""
    before = await stage.start(replicas=2, claims=("data",))
    lost = before[0]
    await stage.delete_pod(lost["metadata"]["name"])
    await stage.is_gone(PODS, lost["metadata"]["name"])
    await stage.is_gone(PERSISTENT_VOLUME_CLAIMS, f"data-web-{lost['metadata']['labels'][INSTANCE_ID]}")
    after = await stage.complete()
    assert lost["metadata"]["name"] not in names(after)
    assert instances(await stage.claims()) == instances(after)


@scenario("CS-67", "CS-122")
async def a_released_pod_keeps_its_claims(stage: Stage) -> None:
    """A pod that left the selector is released with its claim; the CloneSet does not delete it under the pod."""
    before = await stage.start(replicas=1, claims=("data",))
    name = names(before)[0]
    claim = f"data-{name}"
    await stage.set_labels(name, {"app": "elsewhere"})

    async def stays_with_its_pod() -> None:
        found = await stage.world.get(PERSISTENT_VOLUME_CLAIMS, claim)
        assert "deletionTimestamp" not in found["metadata"]
        assert [owner["name"] for owner in found["metadata"]["ownerReferences"]] == [name]

    await stage.until(stays_with_its_pod)

    async def is_replaced() -> None:
        assert name not in names(await stage.complete())

    await stage.until(is_replaced)
    await stage.stays(stays_with_its_pod, seconds=stage.pace.calm / 4)


@scenario("CS-124", "IPU-17")
async def other_claim_templates_alone_change_nothing(stage: Stage) -> None:
    """No revision, no update, no claim touched; pods that are made later get the new size."""
    before = await stage.start(replicas=2, claims=("data",))
    claims = uids(await stage.claims())
    await stage.change({"volumeClaimTemplates": [stage.claim_template("data", "2Gi")]})
    await stage.seen()

    async def nothing_moves() -> None:
        assert uids(await stage.pods()) == uids(before)
        assert uids(await stage.claims()) == claims
        assert len(await stage.revisions()) == 1

    await stage.stays(nothing_moves, seconds=stage.pace.calm / 4)
    await stage.scale(3)
    await stage.complete()
    new = [claim for claim in await stage.claims() if claim["metadata"]["name"] not in claims]
    assert sizes(new) == {"2Gi"}


@scenario("CS-125", gates={"RecreatePodWhenChangeVCTInCloneSetGate": False})
async def images_change_in_place_whatever_the_claim_templates_without_the_gate(stage: Stage) -> None:
    """Image and size together: in place, the old claims stay."""
    before = await stage.start(replicas=2, claims=("data",))
    claims = uids(await stage.claims())
    await stage.set_image(NEW, volumeClaimTemplates=[stage.claim_template("data", "2Gi")])
    after = await stage.complete()
    assert (uids(after), uids(await stage.claims())) == (uids(before), claims)
    assert {restarts_of(pod)["main"] for pod in after} == {1}


@scenario("CS-125", "CS-126", "IPU-31", gates={"RecreatePodWhenChangeVCTInCloneSetGate": True})
async def claim_templates_force_new_pods_with_the_gate(stage: Stage) -> None:
    """Image and size: new pods and claims. Size alone: nothing. The next image: new ones again (edge case 13)."""
    before = await stage.start(replicas=2, claims=("data",))
    await stage.set_image(NEW, volumeClaimTemplates=[stage.claim_template("data", "2Gi")])
    after = await stage.complete()
    assert not set(uids(after)) & set(uids(before))
    await _has_sizes(stage, {"2Gi"})
    hashes = {item["metadata"]["annotations"][keys.CLAIM_TEMPLATES_HASH] for item in await stage.revisions()}
    assert len(hashes) == 2
    assert all(text.isdigit() for text in hashes)
    await stage.change({"volumeClaimTemplates": [stage.claim_template("data", "3Gi")]})
    await stage.seen()

    async def nothing_moves() -> None:
        assert uids(await stage.pods()) == uids(after)

    await stage.stays(nothing_moves, seconds=stage.pace.calm / 4)
    await stage.set_image("nginx:1.27")
    last = await stage.complete()
    assert not set(uids(last)) & set(uids(after))
    await _has_sizes(stage, {"3Gi"})


async def _has_sizes(stage: Stage, wanted: set[str]) -> None:
    async def has() -> None:
        assert sizes(await stage.claims()) == wanted

    await stage.until(has)


@scenario("CS-125", "IPU-31")
async def in_place_only_ignores_claim_templates(stage: Stage) -> None:
    """InPlaceOnly: image alone and image with size are both done in place, with the old claims (edge case 13)."""
    before = await stage.start(replicas=1, policy="InPlaceOnly", claims=("data",))
    claims = uids(await stage.claims())
    await stage.set_image(NEW)
    await stage.complete()
    await stage.set_image("nginx:1.27", volumeClaimTemplates=[stage.claim_template("data", "2Gi")])
    after = await stage.complete()
    assert (uids(after), uids(await stage.claims())) == (uids(before), claims)
    assert sizes(await stage.claims()) == {"1Gi"}
    assert restarts_of(after[0]) == {"main": 2}


@scenario("CS-85", "CS-42")
async def a_claim_template_replaces_a_volume_of_its_name(stage: Stage) -> None:
    """Other volumes of the template stay; one of the same name is refused."""
    volumes = {"volumes": [{"name": "cache", "emptyDir": {}}]}
    [pod] = await stage.start(replicas=1, claims=("data",), pod=volumes)
    found = {item["name"]: item for item in pod["spec"]["volumes"]}
    assert found["cache"] == {"name": "cache", "emptyDir": {}}
    assert "persistentVolumeClaim" in found["data"]
    same = stage.manifest("same", claims=("data",), pod={"volumes": [{"name": "data", "emptyDir": {}}]})
    await stage.is_refused(stage.world.create(same), "volumes")


@scenario("CS-123", "CS-121")
async def a_claim_on_its_way_out_does_not_block(stage: Stage) -> None:
    """Reuse on, but the claim of a lost pod is terminating: the successor takes another name and claim."""
    [old] = await stage.start(replicas=1, claims=("data",), scale={"enablePVCReuse": True})
    name = old["metadata"]["name"]
    held = {"metadata": {"finalizers": ["example.com/keep"]}}
    await stage.world.patch(PERSISTENT_VOLUME_CLAIMS, f"data-{name}", held)
    await stage.world.delete(PERSISTENT_VOLUME_CLAIMS, f"data-{name}")
    await stage.delete_pod(name)
    await stage.is_gone(PODS, name)
    [new] = await stage.complete()
    assert new["metadata"]["name"] != name
    assert instances(await stage.claims()) == instances([new])
    await stage.world.patch(PERSISTENT_VOLUME_CLAIMS, f"data-{name}", {"metadata": {"finalizers": None}})
    await stage.is_gone(PERSISTENT_VOLUME_CLAIMS, f"data-{name}")
