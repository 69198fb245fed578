"""What `kruise why` says of a StatefulSet that waits: every cause that only it knows, reached on the local cluster."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable

import pytest

from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.local.storage_binding.objects import PROVISIONED_BY
from kruise.workloads.statefulset.causes import CAUSES
from tests.reasons.asking import ask_journal, codes, is_helped
from tests.scenarios.stage import Stage
from tests.support.world import Json, LocalWorld, run_local
from tests.workloads.statefulset.stories import CLAIM, Stateful, manifest, with_claims

Play = Callable[[Stateful], Awaitable[None]]
SCENES: dict[str, tuple[Play, str]] = {}
GROWTH = "StatefulSetAutoResizePVCGate=true"


def reaches(code: str, gates: str = "") -> Callable[[Play], Play]:
    def enlist(play: Play) -> Play:
        SCENES[code] = (play, gates)
        return play

    return enlist


@reaches("order")
async def the_first_pod_is_never_ready(web: Stateful) -> None:
    await web.world.create(manifest(2, annotations={"sim.kruise.io/never-ready": "true"}))
    await web.reaches(replicas=1)
    await web.world.sleep(90)


@reaches("overdue")
async def a_pod_does_not_end(web: Stateful) -> None:
    await web.start(manifest(2))
    await web.world.patch(PODS, "web-1", {"metadata": {"finalizers": ["example.com/stay"]}})
    await web.world.delete(PODS, "web-1")
    await web.world.sleep(200)


@reaches("name-taken")
async def somebody_else_has_the_name(web: Stateful) -> None:
    spec = {"containers": [{"name": "main", "image": "nginx:1.25"}]}
    await web.world.create(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-0", "labels": {"app": "other"}}, "spec": spec}
    )
    await web.world.create(manifest(1))
    await web.world.sleep(30)


@reaches("claim-leaving")
async def a_claim_is_on_its_way_out(web: Stateful) -> None:
    claim: Json = copy.deepcopy(dict(CLAIM))
    claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
    claim["metadata"] = {"name": "data-web-0", "finalizers": ["example.com/stay"]}
    await web.world.create(claim)
    await web.world.delete(PERSISTENT_VOLUME_CLAIMS, "data-web-0")
    await web.world.create(with_claims(manifest(1)))
    await web.world.sleep(30)


@reaches("gate-off")
async def ordinals_begin_elsewhere_without_the_gate(web: Stateful) -> None:
    await web.start(manifest(1, ordinals={"start": 3}))
    await web.world.sleep(10)


@reaches("too-many", "StatefulSetStartOrdinal=true")
async def ordinals_come_to_an_end(web: Stateful) -> None:
    await web.world.create(manifest(2, ordinals={"start": 2**31 - 1}))
    await web.reaches(replicas=1)
    await web.world.sleep(10)


async def _grow(web: Stateful, *, provisioner: bool = True) -> None:
    given = with_claims(manifest(1, volumeClaimUpdateStrategy={"type": "OnPodRollingUpdate"}))
    given["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = "fixed"
    await web.start(given)
    if not provisioner:
        [volume] = (await web.world.client.list(PERSISTENT_VOLUMES)).items
        mine = {"metadata": {"annotations": {PROVISIONED_BY: "example.com/somebody"}}}
        await web.world.patch(PERSISTENT_VOLUMES, volume.metadata.name, mine)
    await web.change({"volumeClaimUpdateStrategy": {"type": "OnDelete"}})
    template = copy.deepcopy(given["spec"]["volumeClaimTemplates"][0])
    template["spec"]["resources"] = {"requests": {"storage": "2Gi"}}
    await web.change({"volumeClaimTemplates": [template]})
    await web.change({"volumeClaimUpdateStrategy": {"type": "OnPodRollingUpdate"}})


@reaches("claim-differs", GROWTH)
async def a_class_does_not_grow(web: Stateful) -> None:
    await _grow(web)
    await web.world.sleep(30)


@reaches("claim-growing", GROWTH)
async def a_volume_grows_slowly(web: Stateful) -> None:
    await web.world.client.patch(STORAGE_CLASSES, "fixed", {"allowVolumeExpansion": True})
    await _grow(web, provisioner=False)
    await web.world.sleep(30)


@pytest.mark.parametrize("code", [cause.code for cause in CAUSES])
def test_a_cause_is_named_and_helped(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play, gates = SCENES[code]

    async def run(world: LocalWorld) -> None:
        await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
        fixed = copy.deepcopy(dict(DEFAULT_STORAGE_CLASS))
        fixed["metadata"] = {"name": "fixed"}
        fixed.pop("allowVolumeExpansion", None)
        await world.client.create(STORAGE_CLASSES, fixed)
        await play(Stateful(world))
        stage = Stage(world, gates=world.options.gates)
        answer = await ask_journal(stage, monkeypatch, kind="statefulset.apps.kruise.io")
        assert code in codes(answer), answer.waiting
        is_helped(answer)

    run_local(run, feature_gates=gates)


def test_every_scene_is_of_a_cause() -> None:
    assert set(SCENES) == {cause.code for cause in CAUSES}
