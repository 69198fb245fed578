"""In-place updates of pods: what is written in which order, and what stays (IPU sections 5 to 12)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.machinery.client.requests import PatchType
from tests.scenarios.podlog import condition_of, image_of, is_serving, is_true
from tests.scenarios.stage import (
    Stage,
    has_condition,
    hash_in,
    hash_of,
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


def update_state(pod: Json) -> Json:
    state: Json = json.loads(pod["metadata"]["annotations"][keys.UPDATE_STATE_ANNOTATION])
    return state


@scenario("IPU-40", "IPU-42", "IPU-53", "IPU-72", "IPU-93", "IPU-164", smoke=True)
async def a_new_image_restarts_the_container_in_its_pod(stage: Stage) -> None:
    """uid, address and node stay; the pod is not ready before its image changes and ready only after it runs."""
    before = await stage.start(replicas=1)
    [old] = before
    name = old["metadata"]["name"]
    async with stage.watching() as log:
        await stage.set_image(NEW)
        [new] = await stage.complete()
    assert uids([new]) == uids([old])
    assert new["status"]["podIP"] == old["status"]["podIP"]
    assert new["spec"]["nodeName"] == old["spec"]["nodeName"]
    assert restarts_of(new) == {"main": 1}
    [was], [now] = old["status"]["containerStatuses"], new["status"]["containerStatuses"]
    assert was["containerID"] != now["containerID"]
    assert was["imageID"] != now["imageID"]
    # Endpoints lose the pod before anything happens to its container.
    changed = log.first(name, lambda pod: image_of(pod) == NEW)
    unready = log.first(name, lambda pod: not is_true(pod, keys.IN_PLACE_READY))
    assert unready < changed
    first = log.of(name)[unready]
    told = condition_of(first, keys.IN_PLACE_READY)
    assert told is not None
    assert (told.status, told.reason, told.message) == ("False", "StartInPlaceUpdate", "")
    ready = condition_of(first, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "ReadinessGatesNotReady")
    assert not any(is_serving(pod) and _runs(pod) != NEW for pod in log.of(name)[changed:])
    # What is left on the pod.
    revision = (await stage.status())["updateRevision"]
    assert hash_of(new) == hash_in(revision)
    assert state_of(new) == "Normal"
    state = update_state(new)
    assert state["revision"] == revision
    assert state["lastContainerStatuses"] == {"main": {"imageID": was["imageID"]}}
    assert state["updateImages"] is True
    assert [batch["containers"] for batch in state["containerBatchesRecord"]] == [["main"]]
    assert "nextContainerImages" not in state
    ended = next(item for item in new["status"]["conditions"] if item["type"] == keys.IN_PLACE_READY)
    assert (ended["status"], ended.get("reason", ""), ended.get("message", "")) == ("True", "", "")
    message = f"successfully update pod {name} in-place(revision {revision})"
    await stage.has_event("SuccessfulUpdatePodInPlace", message)


def _runs(pod: Pod, container: str = "main") -> str:
    return next((item.image for item in pod.status.container_statuses if item.name == container), "").rpartition("/")[2]


@scenario("IPU-36", "IPU-35", "IPU-40")
async def metadata_of_the_template_is_rewritten_without_a_restart(stage: Stage) -> None:
    """Labels and annotations: new ones come, removed ones go, those of others stay; nothing restarts (regression 1)."""
    before = await stage.start(replicas=2, labels={"keep": "1", "drop": "1"}, annotations={"note": "old"})
    name = before[0]["metadata"]["name"]
    await stage.annotate(name, {"others": "own"})
    await stage.edit_template({"metadata": {"labels": {"drop": None, "add": "1"}, "annotations": {"note": "new"}}})
    after = await stage.complete()
    assert uids(after) == uids(before)
    for pod in after:
        assert restarts_of(pod) == {"main": 0}
        labels, annotations = pod["metadata"]["labels"], pod["metadata"]["annotations"]
        assert (labels["keep"], labels["add"], annotations["note"]) == ("1", "1", "new")
        assert "drop" not in labels
        assert [batch["containers"] for batch in update_state(pod)["containerBatchesRecord"]] == [[]]
    assert (await stage.pod(name))["metadata"]["annotations"]["others"] == "own"


def env_of(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def reading(container: str, image: str, path: str) -> Json:
    return {"name": container, "image": image, "env": [env_of("MODE", path)]}


@scenario("IPU-34", "IPU-61", "IPU-66", gates={"InPlaceUpdateEnvFromMetadata": True}, smoke=True)
async def an_environment_from_a_label_restarts_its_reader_only(stage: Stage) -> None:
    """A label that the environment of one container reads: that container restarts once (regression 2)."""
    reader = reading("main", OLD, "metadata.labels['mode']")
    containers = [reader, {"name": "side", "image": "redis:6"}]
    before = await stage.start(replicas=2, containers=containers, labels={"mode": "a"})
    await stage.edit_template({"metadata": {"labels": {"mode": "b"}}})
    after = await stage.complete()
    assert uids(after) == uids(before)
    for pod in after:
        assert restarts_of(pod) == {"main": 1, "side": 0}
        assert pod["metadata"]["labels"]["mode"] == "b"
        assert update_state(pod)["updateEnvFromMetadata"] is True


@scenario("IPU-34", gates={"InPlaceUpdateEnvFromMetadata": False})
async def an_environment_from_a_label_restarts_nothing_without_the_gate(stage: Stage) -> None:
    """Without the gate the label is plain metadata."""
    reader = reading("main", OLD, "metadata.labels['mode']")
    before = await stage.start(replicas=1, containers=[reader], labels={"mode": "a"})
    await stage.edit_template({"metadata": {"labels": {"mode": "b"}}})
    [pod] = await stage.complete()
    assert uids([pod]) == uids(before)
    assert restarts_of(pod) == {"main": 0}
    assert pod["metadata"]["labels"]["mode"] == "b"


@scenario("IPU-68", "IPU-34", gates={"InPlaceUpdateEnvFromMetadata": True})
async def image_and_environment_together_restart_once(stage: Stage) -> None:
    """Both change in one update: one restart (edge case 11)."""
    reader = reading("main", OLD, "metadata.annotations['example.com/mode']")
    [old] = await stage.start(replicas=1, containers=[reader], annotations={"example.com/mode": "a"})
    changed = {"metadata": {"annotations": {"example.com/mode": "b"}}}
    await stage.edit_template({**changed, "spec": {"containers": [{"name": "main", "image": NEW}]}})
    [new] = await stage.complete()
    assert uids([new]) == uids([old])
    assert restarts_of(new) == {"main": 1}
    assert new["metadata"]["annotations"]["example.com/mode"] == "b"


@scenario("IPU-61")
async def a_new_tag_of_the_same_image_completes(stage: Stage) -> None:
    """The image id does not change, the container does (regression 3)."""
    images = json.dumps({NEW: {"same-as": OLD}})
    [old] = await stage.start(replicas=1, annotations={"sim.kruise.io/images": images})
    await stage.set_image(NEW)
    [new] = await stage.complete()
    [was], [now] = old["status"]["containerStatuses"], new["status"]["containerStatuses"]
    assert uids([new]) == uids([old])
    assert was["imageID"] == now["imageID"]
    assert was["containerID"] != now["containerID"]


@scenario("IPU-61")
async def an_image_without_a_tag_completes(stage: Stage) -> None:
    """`nginx` is told as `nginx:latest` by the node (regression 4)."""
    [old] = await stage.start(replicas=1)
    await stage.set_image("nginx")
    [new] = await stage.complete()
    assert uids([new]) == uids([old])
    assert images_of(new) == {"main": "nginx"}
    assert restarts_of(new) == {"main": 1}


@scenario("IPU-42", "IPU-70", "CS-100", smoke=True)
async def a_grace_period_lies_between_unready_and_the_new_image(stage: Stage) -> None:
    """The pod is taken out of service, the image changes no earlier than gracePeriodSeconds later."""
    seconds = stage.pace.seconds
    [old] = await stage.start(replicas=1, rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": seconds}})
    name = old["metadata"]["name"]
    async with stage.watching() as log:
        await stage.set_image(NEW)
        [new] = await stage.complete()
    assert uids([new]) == uids([old])
    waiting = log.of(name)[log.first(name, lambda pod: keys.UPDATE_GRACE_ANNOTATION in pod.metadata.annotations)]
    spec = json.loads(waiting.metadata.annotations[keys.UPDATE_GRACE_ANNOTATION])
    assert spec["containerImages"] == {"main": NEW}
    assert spec["graceSeconds"] == seconds
    assert image_of(waiting) == OLD
    assert waiting.metadata.labels[keys.STATE_LABEL] == "Updating"
    assert not is_true(waiting, keys.IN_PLACE_READY)
    state = update_state(new)
    begun = datetime.fromisoformat(state["updateTimestamp"])
    [batch] = state["containerBatchesRecord"]
    applied = datetime.fromisoformat(batch["timestamp"])
    assert seconds <= (applied - begun).total_seconds() <= seconds + stage.pace.slack
    unready = log.of(name)[log.first(name, lambda pod: not is_true(pod, keys.IN_PLACE_READY))]
    told = condition_of(unready, keys.IN_PLACE_READY)
    assert told is not None
    assert told.last_transition_time is not None
    assert told.last_transition_time <= begun
    assert keys.UPDATE_GRACE_ANNOTATION not in new["metadata"]["annotations"]


@scenario("IPU-70")
async def a_foreign_revision_label_in_grace_drops_the_update(stage: Stage) -> None:
    """What was prepared for one revision is not applied to a pod that somebody gave another (regression 5)."""
    seconds = stage.pace.seconds
    rolling = {"inPlaceUpdateStrategy": {"gracePeriodSeconds": seconds}}
    [old] = await stage.start(replicas=1, rolling=rolling)
    name = old["metadata"]["name"]
    await stage.set_image(NEW)
    await _in_grace(stage, name)
    await stage.roll({"paused": True})
    await stage.set_labels(name, {keys.REVISION_LABEL: old["metadata"]["labels"][keys.REVISION_LABEL]})

    async def is_dropped() -> None:
        assert keys.UPDATE_GRACE_ANNOTATION not in (await stage.pod(name))["metadata"]["annotations"]

    await stage.until(is_dropped)
    await stage.stays(lambda: _keeps_image(stage, name), seconds=seconds * 2)
    await stage.roll({"paused": False})
    [new] = await stage.complete()
    assert images_of(new) == {"main": NEW}


async def _in_grace(stage: Stage, name: str) -> None:
    async def waits() -> None:
        assert keys.UPDATE_GRACE_ANNOTATION in (await stage.pod(name))["metadata"]["annotations"]

    await stage.until(waits)


async def _keeps_image(stage: Stage, name: str, image: str = OLD) -> None:
    assert images_of(await stage.pod(name)) == {"main": image}


@scenario("CS-102", "IPU-70")
async def a_second_update_waits_for_the_grace_of_the_first(stage: Stage) -> None:
    """A template that changes in grace does not overwrite what is pending; both are applied in turn (regression 6)."""
    seconds = stage.pace.seconds
    [old] = await stage.start(replicas=1, rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": seconds}})
    name = old["metadata"]["name"]
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await _in_grace(stage, name)
        await stage.set_image("nginx:1.27")
        [new] = await stage.complete()
    seen = list(dict.fromkeys(image_of(pod) for pod in log.of(name)))
    assert seen == [OLD, NEW, "nginx:1.27"]
    assert uids([new]) == uids([old])


@scenario("IPU-32", "CS-103", "IPU-105")
async def what_cannot_be_done_in_place_recreates_the_pod(stage: Stage) -> None:
    """Environment, commands, added containers, images of init containers: InPlaceIfPossible makes new pods."""
    init = [{"name": "prepare", "image": "busybox:1", "command": ["true"]}]
    before = await stage.start(replicas=1, pod={"initContainers": init})
    changes: list[Json] = [
        {"containers": [{"name": "main", "env": [{"name": "A", "value": "b"}]}]},
        {"containers": [{"name": "side", "image": "redis:6"}]},
        {"initContainers": [{**init[0], "image": "busybox:2"}]},
        {"terminationGracePeriodSeconds": 5},
    ]
    for change in changes:
        await stage.edit_template({"spec": change})
        after = await stage.complete()
        assert not set(uids(after)) & set(uids(before))
        before = after


@scenario("IPU-53", "IPU-164")
async def only_the_changed_container_restarts(stage: Stage) -> None:
    """Two containers, one image changes: the other one keeps running."""
    containers = [{"name": "main", "image": OLD}, {"name": "side", "image": "redis:6"}]
    [old] = await stage.start(replicas=1, containers=containers)
    await stage.set_image("redis:7", container="side")
    [new] = await stage.complete()
    assert restarts_of(new) == {"main": 0, "side": 1}
    started = {item["name"]: item["state"] for item in old["status"]["containerStatuses"]}
    now = {item["name"]: item["state"] for item in new["status"]["containerStatuses"]}
    assert started["main"] == now["main"]
    assert list(update_state(new)["lastContainerStatuses"]) == ["side"]


def prioritized(name: str, image: str, priority: int, env: list[Json] | None = None) -> Json:
    """A container as the pod webhook leaves it: the barrier names the priority."""
    barrier = {"configMapKeyRef": {"name": "barrier", "key": f"p_{priority}", "optional": True}}
    return {"name": name, "image": image, "env": [{"name": keys.BARRIER_ENV, "valueFrom": barrier}, *(env or [])]}


@scenario("IPU-51", "IPU-54", "IPU-71")
async def containers_are_updated_by_priority(stage: Stage) -> None:
    """redis (10) goes before nginx (0); while the first batch fails the second does not begin (regression 11)."""
    containers = [prioritized("nginx", OLD, 0), prioritized("redis", "redis:6", 10)]
    [old] = await stage.start(replicas=1, containers=containers)
    name = old["metadata"]["name"]
    await stage.edit_template(_two_images("redis:missing", NEW))

    async def first_batch() -> Json:
        pod = await stage.pod(name)
        assert images_of(pod) == {"nginx": OLD, "redis": "redis:missing"}
        return pod

    state = update_state(await stage.until(first_batch))
    assert state["nextContainerImages"] == {"nginx": NEW}
    assert state["preCheckBeforeNext"] == {"containersRequiredReady": ["redis"]}
    assert [batch["containers"] for batch in state["containerBatchesRecord"]] == [["redis"]]
    await stage.stays(first_batch)
    assert restarts_of(await stage.pod(name))["nginx"] == 0
    # A newer template carries on with what the broken one had left (IPU-38).
    await stage.edit_template(_two_images("redis:7", NEW))
    async with stage.watching() as log:
        [new] = await stage.complete()
    assert images_of(new) == {"nginx": NEW, "redis": "redis:7"}
    assert uids([new]) == uids([old])
    assert [batch["containers"] for batch in update_state(new)["containerBatchesRecord"]] == [["redis"], ["nginx"]]
    assert "nextContainerImages" not in update_state(new)
    changed = log.of(name)[log.first(name, lambda pod: image_of(pod, "nginx") == NEW)]
    assert all(status.ready for status in changed.status.container_statuses if status.name == "redis")
    assert _runs(changed, "redis") == "redis:7"
    assert restarts_of(new)["nginx"] == 1


def _two_images(redis: str, nginx: str) -> Json:
    return {"spec": {"containers": [{"name": "redis", "image": redis}, {"name": "nginx", "image": nginx}]}}


@scenario("IPU-52", gates={"InPlaceUpdateEnvFromMetadata": True})
async def readers_of_one_annotation_restart_together(stage: Stage) -> None:
    """An annotation has one value: whoever reads it is in the first batch, whatever its priority (regression 12)."""
    reads = [env_of("MODE", "metadata.annotations['mode']")]
    containers = [
        prioritized("low", OLD, 0, reads),
        prioritized("high", "redis:6", 10, reads),
        prioritized("other", "memcached:1", 5),
    ]
    [old] = await stage.start(replicas=1, containers=containers, annotations={"mode": "a"})
    changed: Json = {"spec": {"containers": [{"name": "other", "image": "memcached:2"}]}}
    await stage.edit_template({"metadata": {"annotations": {"mode": "b"}}, **changed})
    [new] = await stage.complete()
    assert uids([new]) == uids([old])
    batches = [batch["containers"] for batch in update_state(new)["containerBatchesRecord"]]
    assert batches == [["high", "low"], ["other"]]
    assert restarts_of(new) == {"low": 1, "high": 1, "other": 1}


@scenario("IPU-70", "IPU-42")
async def old_spellings_of_annotations_are_read_and_replaced(stage: Stage) -> None:
    """A pod that an old controller left in grace goes on; the old keys are gone afterwards (regression 17)."""
    [old] = await stage.start(replicas=1, rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": stage.pace.seconds}})
    name = old["metadata"]["name"]
    await stage.set_image(NEW)
    await _in_grace(stage, name)
    annotations = (await stage.pod(name))["metadata"]["annotations"]
    await stage.annotate(
        name,
        {
            keys.UPDATE_STATE_ANNOTATION: None,
            keys.UPDATE_GRACE_ANNOTATION: None,
            keys.OLD_UPDATE_STATE_ANNOTATION: annotations[keys.UPDATE_STATE_ANNOTATION],
            keys.OLD_UPDATE_GRACE_ANNOTATION: annotations[keys.UPDATE_GRACE_ANNOTATION],
        },
    )
    [new] = await stage.complete()
    assert images_of(new) == {"main": NEW}
    assert uids([new]) == uids([old])
    left = set(new["metadata"]["annotations"])
    assert keys.UPDATE_STATE_ANNOTATION in left
    assert not left & {keys.OLD_UPDATE_STATE_ANNOTATION, keys.OLD_UPDATE_GRACE_ANNOTATION}


@scenario("IPU-82", "IPU-83")
async def a_foreign_reason_keeps_a_pod_unready(stage: Stage) -> None:
    """KruisePodReady has several writers: an update in place does not take away what another one wrote (regression
    18)."""
    [old] = await stage.start(replicas=1)
    name = old["metadata"]["name"]
    message = '[{"userAgent":"ContainerRecreateRequest","key":"demo/restart"}]'
    shut = {"type": keys.KRUISE_POD_READY, "status": "False", "message": message}
    await _set_condition(stage, name, shut)
    await stage.reaches(readyReplicas=0)
    await stage.set_image(NEW)

    async def is_updated() -> None:
        pod = await stage.pod(name)
        assert restarts_of(pod) == {"main": 1}
        assert has_condition(pod, keys.IN_PLACE_READY)
        assert has_condition(pod, keys.KRUISE_POD_READY, "False")

    await stage.until(is_updated)
    await stage.stays(is_updated, seconds=stage.pace.calm / 4)
    await _set_condition(stage, name, {"type": keys.KRUISE_POD_READY, "status": "True", "message": "[]"})
    await stage.complete()


async def _set_condition(stage: Stage, name: str, condition: dict[str, Any]) -> None:
    body = {"status": {"conditions": [condition]}}
    await stage.world.patch(PODS, name, body, subresource="status", patch_type=PatchType.STRATEGIC)


@scenario("IPU-80", "IPU-81", gates={"KruisePodReadinessGate": True})
async def every_pod_gets_the_gate_where_asked_for(stage: Stage) -> None:
    """With the gate on a plain pod has the readiness gate, and becomes ready."""
    gates = await _plain_pod(stage)
    assert gates == [keys.KRUISE_POD_READY]


@scenario("IPU-80", gates={"KruisePodReadinessGate": False})
async def plain_pods_are_left_alone(stage: Stage) -> None:
    """With the gate off only pods of our workloads have it."""
    assert await _plain_pod(stage) == []


async def _plain_pod(stage: Stage) -> list[str]:
    spec = {"containers": [{"name": "main", "image": OLD}]}
    await stage.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": spec})

    async def is_ready() -> Json:
        pod = await stage.pod("plain")
        assert has_condition(pod, "Ready")
        return pod

    pod = await stage.until(is_ready)
    return [gate["conditionType"] for gate in pod["spec"].get("readinessGates", [])]


@scenario("IPU-67", "IPU-34", gates={"InPlaceUpdateEnvFromMetadata": True})
async def metadata_edited_by_hand_restarts_nothing_until_a_rollout(stage: Stage) -> None:
    """An annotation that an environment reads, edited on the pod: no restart; a rollout to that value restarts once."""
    reader = reading("main", OLD, "metadata.annotations['mode']")
    [old] = await stage.start(replicas=1, containers=[reader], annotations={"mode": "a"})
    name = old["metadata"]["name"]
    await stage.annotate(name, {"mode": "b"})

    async def nothing_restarts() -> None:
        assert restarts_of(await stage.pod(name)) == {"main": 0}

    await stage.stays(nothing_restarts)
    await stage.edit_template({"metadata": {"annotations": {"mode": "b"}}})
    [new] = await stage.complete()
    assert uids([new]) == uids([old])
    assert restarts_of(new) == {"main": 1}


@scenario("IPU-113")
async def labels_for_budgets_do_not_make_a_pod_unavailable(stage: Stage) -> None:
    """`unavailable-pod.kruise.io/...` speaks to disruption budgets alone."""
    [name] = names(await stage.start(replicas=1))
    await stage.set_labels(name, {"unavailable-pod.kruise.io/maintenance": "true"})

    async def is_available() -> None:
        assert (await stage.status())["availableReplicas"] == 1

    await stage.stays(is_available, seconds=stage.pace.calm / 4)


@scenario("CS-100", "IPU-20")
async def a_lost_template_hash_label_is_put_back(stage: Stage) -> None:
    """Pods without `pod-template-hash` get it; a full name and a short hash in the revision label mean the same."""
    before = await stage.start(replicas=2)
    revision = (await stage.status())["updateRevision"]
    first, second = names(before)
    await stage.set_labels(first, {keys.TEMPLATE_HASH_LABEL: None, keys.REVISION_LABEL: revision})
    await stage.set_labels(second, {keys.REVISION_LABEL: hash_in(revision)})

    async def is_put_back() -> None:
        pods = await stage.pods()
        assert {pod["metadata"]["labels"].get(keys.TEMPLATE_HASH_LABEL) for pod in pods} == {hash_in(revision)}

    await stage.until(is_put_back)
    await stage.reaches(updatedReplicas=2, updatedAvailableReplicas=2)

    async def nothing_restarts() -> None:
        pods = await stage.pods()
        assert uids(pods) == uids(before)
        assert {restarts_of(pod)["main"] for pod in pods} == {0}

    await stage.stays(nothing_restarts, seconds=stage.pace.calm / 4)
