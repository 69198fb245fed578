"""What `kruise why` says of a SidecarSet that waits: every cause that only it knows, reached on the local cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.machinery.causes import Act
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.requests import PatchType
from kruise.reasons.links import Answer
from kruise.reasons.words import answer_lines
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.causes import CAUSES
from tests.reasons.asking import ask, ask_journal, codes, is_helped
from tests.scenarios.stage import Stage
from tests.support.sidecarsets import SIDE, pod, set_image, sidecar_set, status, until_counts
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
Play = Callable[[LocalWorld], Awaitable[None]]
SCENES: dict[str, Play] = {}
KIND = "sidecarsets.apps.kruise.io"
MISSING = "nginx:missing"
HOT = {**SIDE, "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "nginx:empty"}}


def reaches(code: str) -> Callable[[Play], Play]:
    def enlist(play: Play) -> Play:
        SCENES[code] = play
        return play

    return enlist


async def start(world: LocalWorld, count: int = 2, **spec: Any) -> None:
    await world.create(sidecar_set(**spec))
    await until_counts(world, 0, 0, 0, 0)
    for number in range(count):
        await world.create(pod(f"web-{number}"))
    await until_counts(world, count, count, count, count)


@reaches("not-upgradable")
async def more_than_an_image_changed(world: LocalWorld) -> None:  # SCS-95
    await start(world)
    changed = [{**SIDE, "env": [{"name": "A", "value": "b"}]}]
    await world.patch(SIDECAR_SETS, "logs", {"spec": {"containers": changed}})
    await until_counts(world, 2, 0, 2, 0)


@reaches("not-selected")
async def only_canaries_are_updated(world: LocalWorld) -> None:  # SCS-90
    await start(world, updateStrategy={"selector": {"matchLabels": {"canary": "yes"}}})
    await set_image(world, "nginx:1.26")
    await until_counts(world, 2, 0, 2, 0)


@reaches("not-update")
async def pods_that_run_are_left_alone(world: LocalWorld) -> None:
    await start(world, updateStrategy={"type": "NotUpdate"})
    await set_image(world, "nginx:1.26")
    await until_counts(world, 2, 0, 2, 0)


@reaches("sidecar-starting")
async def the_new_image_takes_its_time(world: LocalWorld) -> None:  # SCS-84
    await world.create(sidecar_set())
    await world.create(pod("web-0", annotations={"sim.kruise.io/pull": "60s"}))
    await until_counts(world, 1, 1, 1, 1, within=600)
    await set_image(world, "nginx:1.26")
    await until_counts(world, 1, 1, 0, 0)


@reaches("sidecar-failed")
async def an_image_that_nobody_has(world: LocalWorld) -> None:
    await start(world, 3)
    await set_image(world, MISSING)
    await until_counts(world, 3, 1, 2, 0)
    await world.sleep(5)


@reaches("hot-upgrade")
async def the_new_container_is_not_ready_yet(world: LocalWorld) -> None:  # SCS-111
    await start(world, 1, containers=[HOT])
    await world.patch(PODS, "web-0", {"metadata": {"annotations": {"sim.kruise.io/never-ready": "true"}}})
    await set_image(world, "nginx:1.26")
    await world.sleep(30)


@reaches("image-spelling")
async def a_digest_without_its_registry(world: LocalWorld) -> None:  # SCS-84, edge case 20
    await world.create(sidecar_set())
    await world.create(pod("web-0"))
    await until_counts(world, 1, 1, 1, 1)
    await set_image(world, f"nginx@sha256:{'a' * 64}")
    await world.sleep(30)


@reaches("revision-missing")
async def somebody_deletes_the_revision_that_is_injected(world: LocalWorld) -> None:  # SCS-24, SCS-39
    await world.create(sidecar_set(updateStrategy={"paused": True}))
    await until_counts(world, 0, 0, 0, 0)
    first = (await status(world))["latestRevision"]
    await set_image(world, "nginx:1.26")
    await until_counts(world, 0, 0, 0, 0)
    await world.patch(SIDECAR_SETS, "logs", {"spec": {"injectionStrategy": {"revision": {"revisionName": first}}}})
    await world.client.delete(CONTROLLER_REVISIONS, first, "kruise-system")
    await world.sleep(2)
    with pytest.raises(ClientError, match=f"is to inject its revision {first}, which does not exist"):
        await world.create(pod())


async def asked(world: LocalWorld, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """The same by the journal as anew."""
    stage = Stage(world, gates=world.options.gates)
    answer = await ask_journal(stage, monkeypatch, "logs", kind=KIND)
    assert codes(await ask(stage, "logs", kind=KIND)) == codes(answer)
    is_helped(answer)
    return answer


@pytest.mark.parametrize("code", list(SCENES))
def test_cause(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        await SCENES[code](world)
        answer = await asked(world, monkeypatch)
        assert code in codes(answer), answer.waiting
        meaning = next(one for one in CAUSES if one.code == code)
        assert meaning.act in {answer.act_of(name) for name in answer.waiting}

    run_local(play)


def test_no_cause_is_left_out() -> None:
    assert {cause.code for cause in CAUSES} == set(SCENES)


def test_pods_of_one_name_in_two_namespaces_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its own story, and commands about a pod name its namespace."""

    async def play(world: LocalWorld) -> None:
        await world.client.create(NAMESPACES, {"metadata": {"name": "other"}})
        await world.create(sidecar_set())
        for namespace in (world.namespace, "other"):
            await world.client.create(PODS, pod("web-0"), namespace)
        await until_counts(world, 2, 2, 2, 2)
        await set_image(world, MISSING)
        await until_counts(world, 2, 1, 1, 0)
        await world.sleep(5)
        answer = await asked(world, monkeypatch)
        assert set(answer.pods) == set(answer.waiting) == {"default/web-0", "other/web-0"}
        broken, held = sorted(answer.waiting.values(), key=lambda one: one.links[0].code, reverse=True)
        assert (broken.links[0].code, held.links[0].code) == ("sidecar-failed", "max-unavailable")
        assert held.links[0].leads_to == (broken.pod,)
        assert {answer.act_of(name) for name in answer.waiting} == {Act.SOMEBODY}
        text = "\n".join(answer_lines(answer))
        assert f"maxUnavailable 1 is used up by {broken.pod}" in text
        assert answer.updated == 1

    run_local(play)


@pytest.mark.parametrize(
    "change", [{"selector": {"matchLabels": {"app": "other"}}}, {"namespaceSelector": {"matchLabels": {"team": "a"}}}]
)
def test_pods_that_are_not_selected_any_more_wait_for_nothing(monkeypatch: pytest.MonkeyPatch, change: Json) -> None:
    """SCS-63: they keep the sidecars that they have, and nobody comes to update them."""

    async def play(world: LocalWorld) -> None:
        await start(world)
        await world.patch(SIDECAR_SETS, "logs", {"spec": change}, patch_type=PatchType.MERGE)
        await until_counts(world, 0, 0, 0, 0)
        await set_image(world, "nginx:1.26")
        await until_counts(world, 0, 0, 0, 0)
        answer = await asked(world, monkeypatch)
        assert (answer.pods, answer.waiting) == ({}, {})

    run_local(play)


def test_a_command_about_a_pod_names_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        await world.client.create(NAMESPACES, {"metadata": {"name": "other"}})
        await world.create(sidecar_set())
        crash = {"sim.kruise.io/crash-loop.main": "3 after 1s"}
        await world.client.create(PODS, pod("web-0", annotations=crash), "other")
        await until_counts(world, 1, 1, 0, 0)
        await world.sleep(60)
        answer = await asked(world, monkeypatch)
        (end,) = answer.ends("other/web-0")
        assert "kubectl logs web-0 -n other" in end.remedy

    run_local(play)


@pytest.mark.parametrize(
    ("strategy", "code", "remedy"),
    [
        ({"maxUnavailable": 0}, "max-unavailable", "raise spec.updateStrategy.maxUnavailable"),
        (
            {"partition": 2},
            "partition",
            "lower spec.updateStrategy.partition, or let all follow: kruise rollout promote sidecarset/logs",
        ),
    ],
)
def test_a_remedy_names_fields_that_a_sidecarset_has(
    monkeypatch: pytest.MonkeyPatch, strategy: Json, code: str, remedy: str
) -> None:
    async def play(world: LocalWorld) -> None:
        await start(world, updateStrategy=strategy)
        await set_image(world, "nginx:1.26")
        await until_counts(world, 2, 0, 2, 0)
        answer = await asked(world, monkeypatch)
        told = {(link.code, link.remedy) for name in answer.waiting for link in answer.ends(name)}
        assert told == {(code, remedy)}

    run_local(play)


def test_pods_that_were_there_before_it_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run without its sidecars, and nothing changes that but a restart: the same words as in a plan."""

    async def play(world: LocalWorld) -> None:
        await world.create(pod("web-early"))
        await start(world)
        answer = await asked(world, monkeypatch)
        assert not answer.waiting
        [remark] = answer.remarks
        assert (remark.code, remark.message.partition(":")[0]) == (
            "untouched",
            "1 pod runs without its sidecars although it selects them",
        )
        assert "kruise rollout restart of their workload" in "\n".join(answer_lines(answer))
        await world.client.delete(PODS, "web-early", world.namespace, grace_period_seconds=0)
        assert (await asked(world, monkeypatch)).remarks == ()

    run_local(play)


def test_a_change_that_no_pod_needs_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCS-14, SCS-83: volumes, init containers and patches are a new revision, and no rollout."""

    async def play(world: LocalWorld) -> None:
        await start(world)
        before = (await status(world))["latestRevision"]
        more = {"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{"name": "i", "image": "busybox:1.36"}]}
        await world.patch(SIDECAR_SETS, "logs", {"spec": more})
        await until_counts(world, 2, 2, 2, 2)
        assert (await status(world))["latestRevision"] != before
        answer = await asked(world, monkeypatch)
        assert (answer.updated, dict(answer.waiting)) == (2, {})
        (first, *_) = answer.pods.values()
        assert first.revision == before

    run_local(play)


def test_an_annotation_that_nobody_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCS-84: it is told as that, and not as a restart that never ends."""

    async def play(world: LocalWorld) -> None:
        await start(world, 1)
        await world.patch(PODS, "web-0", {"metadata": {"annotations": {keys.UPDATE_STATE: "{"}}})
        await set_image(world, "nginx:1.26")
        await until_counts(world, 1, 0, 0, 0)
        answer = await asked(world, monkeypatch)
        assert codes(answer) == {"broken-annotation"}
        assert answer.act is Act.SOMEBODY

    run_local(play)
