"""Lifecycle states and hooks (IPU section 13, CS section 10)."""

from __future__ import annotations

import json

from kruise.api.native.pod import PODS
from kruise.inplace import keys
from tests.scenarios.podlog import is_true
from tests.scenarios.stage import (
    ALPHA,
    OK_GATE,
    Stage,
    has_condition,
    images_of,
    names,
    restarts_of,
    scenario,
    state_of,
    uids,
)
from tests.support.world import Json

OLD = "nginx:1.25"
NEW = "nginx:1.26"
HOOK = "example.com/hook"
HOOKED = {HOOK: "true"}
UNHOOKED = {HOOK: "false"}


def by_label(*hooks: str, mark: bool = False) -> Json:
    made: Json = {hook: {"labelsHandler": dict(HOOKED)} for hook in hooks}
    if mark:
        for hook in made.values():
            hook["markPodNotReady"] = True
    return made


def by_finalizer(*hooks: str) -> Json:
    return {hook: {"finalizersHandler": [HOOK]} for hook in hooks}


def reasons_against(pod: Json) -> list[str]:
    """Who keeps the pod unready, as condition KruisePodReady tells."""
    condition = next(item for item in pod["status"]["conditions"] if item["type"] == keys.KRUISE_POD_READY)
    return [entry["key"] for entry in json.loads(condition.get("message") or "[]")]


@scenario("IPU-104", "CS-110", "CS-116", "CS-117")
async def a_pod_without_a_node_stays_preparing(stage: Stage) -> None:
    """Unschedulable: the state stays PreparingNormal, the deadline passes; a template that fits ends it (edge case
    3)."""
    nowhere = {"nodeSelector": {"nobody": "here"}}
    await stage.create(replicas=1, pod=nowhere, progressDeadlineSeconds=stage.pace.seconds)
    await stage.reaches(replicas=1)

    async def is_late() -> None:
        assert await stage.progressing() == "ProgressDeadlineExceeded"

    await stage.until(is_late)
    condition = await stage.condition("Progressing")
    revision = (await stage.status())["updateRevision"]
    assert condition["message"] == f"CloneSet revision {revision} has timed out progressing"
    assert condition["status"] == "False"
    [pod] = await stage.pods()
    assert state_of(pod) == "PreparingNormal"
    await stage.edit_template({"spec": {"nodeSelector": None}})
    [successor] = await stage.complete()
    assert successor["metadata"]["uid"] != pod["metadata"]["uid"]
    assert await stage.progressing() == "CloneSetAvailable"


@scenario("CS-110", "CS-61", "IPU-104", "IPU-112", "CS-116", smoke=True)
async def a_pre_normal_finalizer_holds_a_new_pod(stage: Stage) -> None:
    """Ready but not available until the finalizer is there; taking it away later changes nothing (edge case 4)."""
    lifecycle = by_finalizer("preNormal")
    await stage.create(replicas=1, lifecycle=lifecycle, progressDeadlineSeconds=stage.pace.seconds)
    await stage.reaches(replicas=1, readyReplicas=1, availableReplicas=0)

    async def is_late() -> None:
        assert await stage.progressing() == "ProgressDeadlineExceeded"

    await stage.until(is_late)
    [name] = names(await stage.pods())
    assert state_of(await stage.pod(name)) == "PreparingNormal"
    await stage.set_finalizers(name, add=[HOOK])
    await stage.in_state(name, "Normal")
    await stage.complete()
    assert await stage.progressing() == "CloneSetAvailable"
    await stage.set_finalizers(name, remove=[HOOK])

    async def stays_normal() -> None:
        assert state_of(await stage.pod(name)) == "Normal"

    await stage.stays(stays_normal, seconds=stage.pace.calm / 4)


@scenario("CS-110", "CS-76")
async def a_pre_normal_hook_holds_up_a_limited_scale_up(stage: Stage) -> None:
    """scaleStrategy.maxUnavailable 1: the next pod comes when the former was let through."""
    await stage.create(replicas=2, lifecycle=by_label("preNormal"), scale={"maxUnavailable": 1})
    await stage.reaches(replicas=1, readyReplicas=1)

    async def only_one() -> None:
        assert len(await stage.pods()) == 1

    await stage.stays(only_one)
    [first] = names(await stage.pods())
    await stage.set_labels(first, HOOKED)
    await stage.reaches(replicas=2, availableReplicas=1)
    [second] = [name for name in names(await stage.pods()) if name != first]
    await stage.set_labels(second, HOOKED)
    await stage.complete()


@scenario("IPU-104", "CS-110")
async def an_update_does_not_carry_a_pod_past_its_pre_normal_hook(stage: Stage) -> None:
    """Updated in place while it waits, the pod goes on waiting."""
    await stage.create(replicas=1, lifecycle=by_label("preNormal"))
    await stage.reaches(replicas=1, readyReplicas=1)
    [old] = await stage.pods()
    name = old["metadata"]["name"]
    await stage.set_image(NEW)

    async def runs_the_new_one() -> None:
        pod = await stage.pod(name)
        assert restarts_of(pod) == {"main": 1}
        assert has_condition(pod, "Ready")
        assert state_of(pod) == "PreparingNormal"

    await stage.until(runs_the_new_one)
    await stage.stays(runs_the_new_one, seconds=stage.pace.calm / 4)
    await stage.set_labels(name, HOOKED)
    [new] = await stage.complete()
    assert uids([new]) == uids([old])


@scenario("IPU-100", "IPU-101", "IPU-103", "CS-111", "CS-112", smoke=True)
async def an_update_hook_by_label_with_not_ready(stage: Stage) -> None:
    """The whole way: PreparingUpdate, unready, label off, Updating, Updated, label on, Normal."""
    lifecycle = by_label("inPlaceUpdate", mark=True)
    before = await stage.start(replicas=2, labels=HOOKED, lifecycle=lifecycle, rolling={"maxUnavailable": 1})
    old_revision = before[0]["metadata"]["labels"][keys.REVISION_LABEL]
    await stage.set_image(NEW)
    for _ in before:
        name = await _one_in_state(stage, "PreparingUpdate")

        async def is_held(name: str = name) -> None:
            pod = await stage.pod(name)
            assert state_of(pod) == "PreparingUpdate"
            assert pod["metadata"]["labels"][keys.REVISION_LABEL] == old_revision
            assert images_of(pod) == {"main": OLD}
            assert has_condition(pod, keys.KRUISE_POD_READY, "False")
            assert has_condition(pod, "Ready", "False")
            assert reasons_against(pod) == ["preUpdateHook"]

        await stage.until(is_held)
        await stage.stays(is_held, seconds=stage.pace.calm / 4)
        await stage.set_labels(name, UNHOOKED)
        pod = await stage.in_state(name, "Updated")
        assert images_of(pod) == {"main": NEW}

        async def waits_for_its_label(name: str = name) -> None:
            pod = await stage.pod(name)
            assert state_of(pod) == "Updated"
            assert reasons_against(pod) == []
            assert has_condition(pod, keys.KRUISE_POD_READY)

        await stage.until(waits_for_its_label)
        # Updated is not available: the next pod waits.
        await stage.stays(waits_for_its_label, seconds=stage.pace.calm / 4)
        assert (await stage.status())["availableReplicas"] == 1
        await stage.set_labels(name, HOOKED)
        await stage.in_state(name, "Normal")
    after = await stage.complete()
    assert uids(after) == uids(before)


async def _one_in_state(stage: Stage, state: str) -> str:
    async def found() -> str:
        found = names(pod for pod in await stage.pods() if state_of(pod) == state)
        assert len(found) == 1, f"{state}: {found}"
        return found[0]

    name: str = await stage.until(found)
    return name


@scenario("IPU-2", "CS-111")
async def an_update_hook_by_finalizer(stage: Stage) -> None:
    """The same with a finalizer of the template, which every new pod has from birth."""
    lifecycle = by_finalizer("inPlaceUpdate")
    manifest = stage.manifest(replicas=1, lifecycle=lifecycle)
    manifest["spec"]["template"]["metadata"]["finalizers"] = [HOOK]
    await stage.world.create(manifest)
    [old] = await stage.complete()
    name = old["metadata"]["name"]
    assert old["metadata"]["finalizers"] == [HOOK]
    await stage.set_image(NEW)
    await stage.in_state(name, "PreparingUpdate")
    await stage.set_finalizers(name, remove=[HOOK])
    await stage.in_state(name, "Updated")
    await stage.set_finalizers(name, add=[HOOK])
    [new] = await stage.complete()
    assert uids([new]) == uids([old])
    await stage.set_finalizers(name, remove=[HOOK])


@scenario("CS-82", "CS-86", "CS-61", "IPU-105", "IPU-100", "CS-80", smoke=True)
async def a_delete_hook_by_label_holds_a_scale_in(stage: Stage) -> None:
    """PreparingDelete and unready until the label is gone; with markPodNotReady a scale-out does not call it back."""
    lifecycle = by_label("preDelete", mark=True)
    before = await stage.start(replicas=2, labels=HOOKED, lifecycle=lifecycle, rolling={"maxUnavailable": 1})
    await stage.scale(1)
    name = await _one_in_state(stage, "PreparingDelete")

    async def is_held() -> None:
        pod = await stage.pod(name)
        assert "deletionTimestamp" not in pod["metadata"]
        assert state_of(pod) == "PreparingDelete"
        assert reasons_against(pod) == ["preDeleteHook"]
        assert has_condition(pod, "Ready", "False")

    await stage.until(is_held)
    await stage.reaches(replicas=2, availableReplicas=1)
    await stage.scale(2)
    await stage.stays(is_held, seconds=stage.pace.calm / 4)
    await stage.scale(1)
    await stage.set_labels(name, {HOOK: None})
    await stage.is_gone(PODS, name)
    after = await stage.complete()
    assert set(uids(after)) < set(uids(before))


@scenario("CS-80", "CS-113", "CS-75")
async def a_cancelled_scale_in_brings_the_pod_back(stage: Stage) -> None:
    """3 to 2 and back to 3 while the hook holds: no extra pod, the held one returns; a named one does not (edge case
    9)."""
    pods = names(await stage.start(replicas=3, labels=HOOKED, lifecycle=by_label("preDelete")))
    await stage.scale(2)
    name = await _one_in_state(stage, "PreparingDelete")
    await stage.scale(3)
    await stage.in_state(name, "Normal")
    assert names(await stage.complete()) == pods
    await stage.change({"replicas": 2, "scaleStrategy": {"podsToDelete": [name]}})
    await stage.in_state(name, "PreparingDelete")
    await stage.scale(3)

    async def no_extra_pod() -> None:
        assert names(await stage.pods()) == pods
        assert state_of(await stage.pod(name)) == "PreparingDelete"

    await stage.stays(no_extra_pod)
    await stage.set_labels(name, UNHOOKED)
    await stage.is_gone(PODS, name)
    after = names(await stage.complete())
    assert set(pods) - set(after) == {name}


async def _excluded(stage: Stage, pods: list[str]) -> None:
    """3 to 2 to 3 with a named pod that a hook holds: 4 pods for a while, then 3 (edge case 8)."""
    await stage.change({"replicas": 2, "scaleStrategy": {"podsToDelete": [pods[0]]}})
    await stage.in_state(pods[0], "PreparingDelete")
    await stage.reaches(replicas=3)
    await stage.scale(3)
    await stage.reaches(replicas=4, availableReplicas=3)

    async def four() -> None:
        assert set(pods) < set(names(await stage.pods()))
        assert len(await stage.pods()) == 4

    await stage.stays(four)
    await stage.set_labels(pods[0], UNHOOKED)
    await stage.is_gone(PODS, pods[0])
    after = names(await stage.complete())
    assert set(pods[1:]) < set(after)


@scenario("CS-75", "CS-88")
async def held_pods_need_not_count_by_field(stage: Stage) -> None:
    """excludePreparingDelete in v1beta1."""
    scale = {"excludePreparingDelete": True}
    await _excluded(stage, names(await stage.start(labels=HOOKED, lifecycle=by_label("preDelete"), scale=scale)))


@scenario("CS-75", "CS-21")
async def held_pods_need_not_count_by_label(stage: Stage) -> None:
    """The label that carries the field in v1alpha1."""
    metadata = {"labels": {"apps.kruise.io/cloneset-scaling-exclude-preparing-delete": "true"}}
    lifecycle = by_label("preDelete")
    pods = await stage.start(version=ALPHA, labels=HOOKED, lifecycle=lifecycle, metadata=metadata)
    assert (await stage.world.cloneset())["spec"]["scaleStrategy"]["excludePreparingDelete"] is True
    await _excluded(stage, names(pods))


@scenario("CS-75", "CS-141", flags={"cloneset-scaling-exclude-preparing-delete": True})
async def held_pods_need_not_count_by_flag(stage: Stage) -> None:
    """--cloneset-scaling-exclude-preparing-delete, for every CloneSet."""
    await _excluded(stage, names(await stage.start(labels=HOOKED, lifecycle=by_label("preDelete"))))


@scenario("CS-88", "IPU-130", "CS-86")
async def a_marked_pod_with_a_hook_is_replaced_after_it(stage: Stage) -> None:
    """Mark, hold, let go: just that pod is replaced, the two others keep their names (edge case 7)."""
    pods = names(await stage.start(labels=HOOKED, lifecycle=by_label("preDelete")))
    await stage.set_labels(pods[1], {keys.SPECIFIED_DELETE_LABEL: "true"})
    await stage.in_state(pods[1], "PreparingDelete")

    async def no_substitute() -> None:
        assert names(await stage.pods()) == pods

    await stage.stays(no_substitute)
    await stage.set_labels(pods[1], UNHOOKED)
    await stage.is_gone(PODS, pods[1])
    after = names(await stage.complete())
    assert set(pods) - set(after) == {pods[1]}


@scenario("IPU-105", "CS-104", "CS-86")
async def recreating_passes_through_the_delete_hook(stage: Stage) -> None:
    """ReCreate with a preDelete finalizer: the pod is held, then deleted, then made anew."""
    manifest = stage.manifest(replicas=1, policy="ReCreate", lifecycle=by_finalizer("preDelete"))
    manifest["spec"]["template"]["metadata"]["finalizers"] = [HOOK]
    await stage.world.create(manifest)
    [old] = await stage.complete()
    name = old["metadata"]["name"]
    await stage.set_image(NEW)
    await stage.in_state(name, "PreparingDelete")
    assert "deletionTimestamp" not in (await stage.pod(name))["metadata"]
    await stage.set_finalizers(name, remove=[HOOK])
    await stage.is_gone(PODS, name)
    [new] = await stage.complete()
    assert images_of(new) == {"main": NEW}
    await stage.set_finalizers(new["metadata"]["name"], remove=[HOOK])


@scenario("IPU-101", "IPU-100", "IPU-17")
async def a_rollback_frees_a_pod_that_prepares_its_update(stage: Stage) -> None:
    """PreparingUpdate, then the old template again: the pod returns to Normal and serves (regression 9)."""
    lifecycle = by_label("inPlaceUpdate", mark=True)
    [old] = await stage.start(replicas=1, labels=HOOKED, lifecycle=lifecycle)
    name = old["metadata"]["name"]
    await stage.set_image(NEW)
    await stage.in_state(name, "PreparingUpdate")
    await stage.set_image(OLD)
    pod = await stage.in_state(name, "Normal")
    await stage.complete()
    assert reasons_against(await stage.pod(name)) == []
    assert restarts_of(pod) == {"main": 0}


@scenario("IPU-100", "CS-102")
async def a_second_update_of_an_updated_pod_hooks_it_again(stage: Stage) -> None:
    """Updated, then another template: the hook is put back on, and the pod prepares anew (regression 10)."""
    [old] = await stage.start(replicas=1, labels=HOOKED, lifecycle=by_label("inPlaceUpdate"))
    name = old["metadata"]["name"]
    await stage.set_image(NEW)
    await stage.in_state(name, "PreparingUpdate")
    await stage.set_labels(name, UNHOOKED)
    await stage.in_state(name, "Updated")
    await stage.set_image("nginx:1.27")
    pod = await stage.in_state(name, "PreparingUpdate")
    assert pod["metadata"]["labels"][HOOK] == "true"
    assert images_of(pod) == {"main": NEW}
    await stage.set_labels(name, UNHOOKED)
    pod = await stage.in_state(name, "Updated")
    assert images_of(pod) == {"main": "nginx:1.27"}
    await stage.set_labels(name, HOOKED)
    [new] = await stage.complete()
    assert uids([new]) == uids([old])


async def _one_preparing_of_two(stage: Stage) -> tuple[str, str]:
    """R 2, partition 99 %, one pod PreparingUpdate; gives it and the other one."""
    rolling = {"partition": "99%", "maxUnavailable": 1}
    await stage.start(replicas=2, labels=HOOKED, lifecycle=by_label("inPlaceUpdate"), rolling=rolling)
    await stage.set_image(NEW)
    preparing = await _one_in_state(stage, "PreparingUpdate")
    [other] = [name for name in names(await stage.pods()) if name != preparing]
    await stage.delete_pod(other)

    async def is_followed() -> str:
        # The status may still tell of the pod that went.
        others = [name for name in names(await stage.pods()) if name not in (preparing, other)]
        assert len(others) == 1, f"beside {preparing}: {others}"
        return others[0]

    successor = str(await stage.until(is_followed))
    await stage.reaches(replicas=2, readyReplicas=2)
    return preparing, successor


@scenario("CS-112", gates={"PreparingUpdateAsUpdate": True})
async def a_preparing_pod_counts_as_updated_with_the_gate(stage: Stage) -> None:
    """The other pod is recreated at the old revision, since the preparing one is the one that moves."""
    preparing, successor = await _one_preparing_of_two(stage)
    assert images_of(await stage.pod(successor)) == {"main": OLD}
    await stage.set_labels(preparing, UNHOOKED)
    await stage.in_state(preparing, "Updated")
    await stage.reaches(updatedReplicas=1)


@scenario("CS-112", gates={"PreparingUpdateAsUpdate": False})
async def a_preparing_pod_counts_as_old_without_the_gate(stage: Stage) -> None:
    """The other pod is recreated at the new revision, and that is all that the partition lets through."""
    _, successor = await _one_preparing_of_two(stage)
    assert images_of(await stage.pod(successor)) == {"main": NEW}
    await stage.reaches(updatedReplicas=1)


@scenario("IPU-103", "CS-102")
async def a_pod_on_its_way_out_is_not_updated(stage: Stage) -> None:
    """PreparingDelete: a new template does not touch it, whatever the other pods do."""
    pods = names(await stage.start(replicas=3, labels=HOOKED, lifecycle=by_label("preDelete")))
    await stage.scale(2)
    held = await _one_in_state(stage, "PreparingDelete")
    await stage.roll({"maxUnavailable": 3})
    await stage.set_image(NEW)
    await stage.reaches(replicas=3, updatedReplicas=2, updatedAvailableReplicas=2)

    async def keeps_its_image() -> None:
        assert images_of(await stage.pod(held)) == {"main": OLD}

    await stage.stays(keeps_its_image, seconds=stage.pace.calm / 4)
    await stage.set_labels(held, UNHOOKED)
    await stage.is_gone(PODS, held)
    assert set(names(await stage.complete())) == set(pods) - {held}


@scenario("IPU-102", "IPU-2")
async def a_lifecycle_without_an_update_hook_ends_normal(stage: Stage) -> None:
    """Only preDelete is hooked: an update in place ends in Normal; so does one with an empty hook."""
    before = await stage.start(replicas=1, labels=HOOKED, lifecycle=by_label("preDelete"))
    await stage.set_image(NEW)
    [pod] = await stage.complete()
    assert state_of(pod) == "Normal"
    await stage.change({"lifecycle": {"preDelete": None, "inPlaceUpdate": {}}})
    await stage.set_image("nginx:1.27")
    [pod] = await stage.complete()
    assert (state_of(pod), uids([pod])) == ("Normal", uids(before))


@scenario("IPU-72", "IPU-93")
async def a_probe_holds_back_the_end_of_an_update(stage: Stage) -> None:
    """A pod whose own gate is shut is updated in place, but serves only when the gate opens again."""
    gated = {"readinessGates": [{"conditionType": OK_GATE}]}
    await stage.create(replicas=1, pod=gated)
    await stage.reaches(replicas=1)
    [name] = names(await stage.pods())
    await stage.open_gate(name)
    await stage.complete()
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.open_gate(name, status="False")

        async def is_updated() -> None:
            pod = await stage.pod(name)
            assert restarts_of(pod) == {"main": 1}
            assert has_condition(pod, keys.IN_PLACE_READY)
            assert state_of(pod) == "Normal"
            assert has_condition(pod, "Ready", "False")

        await stage.until(is_updated)
    log.first(name, lambda pod: not is_true(pod, keys.IN_PLACE_READY))
    await stage.open_gate(name)
    await stage.complete()


@scenario("CS-72", "CS-78", "CS-102")
async def a_held_pod_uses_the_budget_up(stage: Stage) -> None:
    """A pod in PreparingDelete counts as unavailable: with maxUnavailable 1 no other one is updated meanwhile."""
    pods = names(await stage.start(labels=HOOKED, lifecycle=by_label("preDelete"), rolling={"maxUnavailable": 1}))
    await stage.set_labels(pods[0], {keys.SPECIFIED_DELETE_LABEL: "true"})
    await stage.in_state(pods[0], "PreparingDelete")
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=0)

    async def nothing_moves() -> None:
        assert names(await stage.pods()) == pods
        assert {images_of(pod)["main"] for pod in await stage.pods()} == {OLD}

    await stage.stays(nothing_moves)
    await stage.set_labels(pods[0], UNHOOKED)
    await stage.is_gone(PODS, pods[0])
    after = await stage.complete()
    assert set(pods[1:]) < set(names(after))


@scenario("IPU-123", "CS-102")
async def a_pod_that_prepares_its_update_keeps_its_turn(stage: Stage) -> None:
    """Priorities that change meanwhile do not let another pod overtake it."""
    weights = [{"weight": 100, "matchSelector": {"matchLabels": {"rank": "first"}}}]
    rolling = {"partition": 2, "maxUnavailable": 3, "priorityStrategy": {"weightPriority": weights}}
    pods = names(await stage.start(labels=HOOKED, lifecycle=by_label("inPlaceUpdate"), rolling=rolling))
    await stage.set_image(NEW)
    preparing = await _one_in_state(stage, "PreparingUpdate")
    for name in pods:
        if name != preparing:
            await stage.set_labels(name, {"rank": "first"})
    await stage.world.sleep(stage.pace.calm / 4)
    await stage.set_labels(preparing, UNHOOKED)
    await stage.in_state(preparing, "Updated")
    assert {name: state_of(await stage.pod(name)) for name in pods if name != preparing} == dict.fromkeys(
        (name for name in pods if name != preparing), "Normal"
    )
    await stage.reaches(updatedReplicas=1)
