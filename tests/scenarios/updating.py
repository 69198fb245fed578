"""Updates of CloneSets: which pods move, how many at a time, and what holds them (CS section 9, IPU section 14)."""

from __future__ import annotations

import asyncio
import itertools
import json
from datetime import datetime

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from tests.scenarios.podlog import image_of, is_serving, is_there
from tests.scenarios.stage import (
    ALPHA,
    OK_GATE,
    Stage,
    hash_in,
    hash_of,
    images_of,
    names,
    restarts_of,
    scenario,
    state_of,
    uids,
)

NEW = "nginx:1.26"
OLD = "nginx:1.25"
GATED = {"readinessGates": [{"conditionType": OK_GATE}]}


@scenario("CS-104", "CS-102", "CS-83", smoke=True)
async def recreated_pods_come_one_after_the_other(stage: Stage) -> None:
    """ReCreate: pods are marked, deleted within maxUnavailable, and made anew; events tell it."""
    before = await stage.start(replicas=3, policy="ReCreate", rolling={"maxUnavailable": 1})
    async with stage.watching() as log:
        await stage.set_image(NEW)
        after = await stage.complete()
    assert not set(uids(before)) & set(uids(after))
    assert {image for pod in after for image in images_of(pod).values()} == {NEW}
    assert log.lowest(is_serving) >= 2
    assert log.highest(is_there) <= 3
    revision = (await stage.status())["updateRevision"]
    for name in names(before):
        text = f"successfully patch pod {name} specified-delete for update(revision {revision})"
        await stage.has_event("SuccessfulUpdatePodReCreate", text)
        await stage.has_event("SuccessfulDelete", f"succeed to delete pod {name}")


@scenario("CS-102", "CS-79", "CS-112")
async def in_place_updates_keep_the_promised_pods_serving(stage: Stage) -> None:
    """maxUnavailable 2 of 6: at no moment do fewer than 4 pods serve, and never are more pods there than wanted."""
    before = await stage.start(replicas=6, rolling={"maxUnavailable": 2}, minReadySeconds=1)
    async with stage.watching() as log:
        await stage.set_image(NEW)
        after = await stage.complete()
    assert uids(after) == uids(before)
    assert log.lowest(is_serving) == 4
    assert log.highest(is_there) == 6


@scenario("CS-70", "CS-116", "CS-102", smoke=True)
async def a_percentage_below_100_lets_one_pod_move(stage: Stage) -> None:
    """Partition 99 % of 4: exactly one pod is updated, and the rollout is reported as ready (edge case 2)."""
    await stage.start(replicas=4, rolling={"partition": "99%", "maxUnavailable": "50%"}, progressDeadlineSeconds=600)
    await stage.set_image(NEW)
    status = await stage.reaches(updatedReplicas=1, updatedAvailableReplicas=1, expectedUpdatedReplicas=1)
    assert status["currentRevision"] != status["updateRevision"]

    async def stays_there() -> None:
        assert len(await stage.at_update_revision()) == 1

    await stage.stays(stays_there)
    assert await stage.progressing() == "ProgressPartitionAvailable"
    await stage.roll({"partition": "100%"})
    await stage.reaches(expectedUpdatedReplicas=0)


@scenario("CS-70", "CS-76", "CS-77", "CS-90", "CS-105")
async def a_partition_moves_step_by_step_and_scaling_keeps_it(stage: Stage) -> None:
    """Partition 3, 1, 0 of 4; pods that scaling adds or takes away keep to the partition."""
    await stage.start(replicas=4, rolling={"partition": 3, "maxUnavailable": "100%"})
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=1, updatedAvailableReplicas=1)
    await stage.scale(6)
    await stage.reaches(replicas=6, updatedReplicas=3, availableReplicas=6)
    await stage.scale(4)
    await stage.reaches(replicas=4, updatedReplicas=1, availableReplicas=4)
    # An old pod that goes is replaced by an old one, a new one by a new one.
    new = names(await stage.at_update_revision())
    old = [name for name in names(await stage.pods()) if name not in new]
    for name in (old[0], new[0]):
        await stage.delete_pod(name)
        await stage.is_gone(PODS, name)
        await stage.reaches(replicas=4, updatedReplicas=1, availableReplicas=4)
    await stage.roll({"partition": 1})
    await stage.reaches(updatedReplicas=3, updatedAvailableReplicas=3)
    await stage.roll({"partition": 0})
    await stage.complete()


@scenario("CS-70", "CS-74", "CS-106")
async def a_partition_beyond_the_replicas_makes_no_surge(stage: Stage) -> None:
    """A partition above replicas is cut before surge is worked out: nothing is created or updated (edge case 10)."""
    before = await stage.start(replicas=3, rolling={"partition": 10, "maxSurge": 2, "maxUnavailable": 1})
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=0, expectedUpdatedReplicas=0)

    async def nothing_moves() -> None:
        assert uids(await stage.pods()) == uids(before)

    await stage.stays(nothing_moves)


@scenario("CS-101", "CS-108", "CS-89", "CS-100", smoke=True)
async def a_paused_rollout_rests_but_scales(stage: Stage) -> None:
    """Paused at creation: pods become ready. A new template waits, scaling goes on, and resuming updates all."""
    before = await stage.start(replicas=2, rolling={"paused": True}, progressDeadlineSeconds=600)
    assert {state_of(pod) for pod in before} == {"Normal"}
    await stage.set_image(NEW)
    await stage.scale(4)
    await stage.reaches(replicas=4, availableReplicas=4, updatedReplicas=2)
    assert await stage.progressing() == "CloneSetPaused"

    async def old_ones_stay() -> None:
        old = [pod for pod in await stage.pods() if images_of(pod)["main"] == OLD]
        assert uids(old) == uids(before)

    await stage.stays(old_ones_stay)
    await stage.roll({"paused": False})
    after = await stage.complete()
    assert set(uids(before)) <= set(uids(after))
    assert await stage.progressing() == "CloneSetAvailable"


@scenario("CS-107", "CS-116", "CS-43", "CS-20")
async def on_delete_updates_only_what_is_made_anew(stage: Stage) -> None:
    """OnDelete: two of five deleted are two updated; 5 to 3 keeps them, 3 to 5 makes four (edge case 6)."""
    before = names(await stage.start(replicas=5, strategy={"type": "OnDelete"}, progressDeadlineSeconds=600))
    await stage.set_image(NEW)
    await stage.reaches(replicas=5, updatedReplicas=0)
    assert await stage.progressing() == "CloneSetUpdated"

    async def nothing_moves() -> None:
        assert names(await stage.pods()) == before

    await stage.stays(nothing_moves, seconds=stage.pace.calm / 4)
    for name in before[:2]:
        await stage.delete_pod(name)
    await stage.reaches(replicas=5, updatedReplicas=2, updatedAvailableReplicas=2)
    updated = names(await stage.at_update_revision())
    await stage.scale(3)
    await stage.reaches(replicas=3, updatedReplicas=2)
    assert set(updated) <= set(names(await stage.pods()))
    await stage.scale(5)
    await stage.reaches(replicas=5, updatedReplicas=4, availableReplicas=5)
    [last] = set(names(await stage.pods())) & set(before)
    await stage.delete_pod(last)
    await stage.complete()
    assert await stage.progressing() == "CloneSetAvailable"


@scenario("CS-102", "CS-73")
async def a_third_revision_takes_over_a_rollout(stage: Stage) -> None:
    """Changed again in mid-rollout: pods of both old revisions move, and maxUnavailable holds over all (edge case
    17)."""
    before = await stage.start(replicas=6, rolling={"maxUnavailable": 2}, minReadySeconds=2)
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.reaches(updatedReplicas=2)
        await stage.set_image("nginx:1.27")
        after = await stage.complete()
    assert uids(after) == uids(before)
    assert {images_of(pod)["main"] for pod in after} == {"nginx:1.27"}
    assert log.lowest(is_serving) >= 4


@scenario("CS-102")
async def a_broken_old_revision_is_replaced_in_small_waves(stage: Stage) -> None:
    """Nothing of the old revision is available: still at most maxUnavailable pods of the new one are unavailable at a
    time (edge case 18)."""
    await stage.create(replicas=6, image="nginx:missing", rolling={"maxUnavailable": 2})
    await stage.reaches(replicas=6, readyReplicas=0)
    await stage.edit_template({"spec": {"containers": [{"name": "main", "image": NEW}], **GATED}})
    await stage.reaches(updatedReplicas=2, updatedReadyReplicas=0)

    async def only_two() -> None:
        assert len(await stage.at_update_revision()) == 2

    await stage.stays(only_two)
    opened: set[str] = set()

    async def all_open() -> None:
        updated = names(await stage.at_update_revision())
        assert len([name for name in updated if name not in opened]) <= 2
        for name in updated:
            if name not in opened:
                await stage.open_gate(name)
                opened.add(name)
        assert len(opened) == 6

    await stage.until(all_open)
    await stage.complete()


@scenario("IPU-17", "IPU-12", "IPU-15", smoke=True)
async def going_back_uses_the_old_revision_again(stage: Stage) -> None:
    """A, B, A: two revisions exist, A's number rises to 3, and pods that never left A are untouched (edge cases CS 19
    and IPU 15)."""
    before = await stage.start(replicas=3, rolling={"partition": 2, "maxUnavailable": 1})
    first = (await stage.status())["updateRevision"]
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=1, updatedAvailableReplicas=1)
    [moved] = names(await stage.at_update_revision())
    await stage.roll({"partition": 0, "paused": True})
    await stage.set_image(OLD)
    await stage.roll({"paused": False})
    after = await stage.complete()
    assert uids(after) == uids(before)
    assert (await stage.status())["updateRevision"] == first
    for pod in after:
        assert restarts_of(pod)["main"] == (2 if pod["metadata"]["name"] == moved else 0)
    assert [(item["metadata"]["name"] == first, item["revision"]) for item in await stage.revisions()] == [
        (False, 2),
        (True, 3),
    ]


@scenario("CS-152", "IPU-10", "IPU-11", "IPU-17")
async def undo_by_the_data_of_a_revision(stage: Stage) -> None:
    """`kubectl-kruise rollout undo` sends a revision's data as a merge patch: its `$patch` reaches no pod, and the
    revision is used again, also where somebody took its annotations away (regression 16)."""
    before = await stage.start(replicas=2)
    [first] = await stage.revisions()
    await stage.set_image(NEW)
    await stage.complete()
    await stage.world.patch(CONTROLLER_REVISIONS, first["metadata"]["name"], {"metadata": {"annotations": None}})
    assert first["data"]["spec"]["template"]["$patch"] == "replace"
    await stage.world.patch(CLONE_SETS, "web", first["data"])
    await stage.seen()
    after = await stage.complete()
    assert uids(after) == uids(before)
    assert {images_of(pod)["main"] for pod in after} == {OLD}
    assert (await stage.status())["updateRevision"] == first["metadata"]["name"]
    revisions = await stage.revisions()
    assert [item["revision"] for item in revisions] == [2, 3]
    assert revisions[1]["metadata"]["name"] == first["metadata"]["name"]
    assert revisions[1]["metadata"]["annotations"][keys.CLAIM_TEMPLATES_HASH] == ""


@scenario("IPU-19", "IPU-15", "IPU-16")
async def old_revisions_are_cut_to_the_limit(stage: Stage) -> None:
    """revisionHistoryLimit 2 keeps two that nobody uses; a revision that a pod has stays whatever its age."""
    await stage.start(replicas=2, revisionHistoryLimit=2, metadata={"annotations": {"kubernetes.io/change-cause": "a"}})
    [revision] = await stage.revisions()
    assert revision["metadata"]["annotations"]["kubernetes.io/change-cause"] == "a"
    assert revision["metadata"]["annotations"][keys.CLAIM_TEMPLATES_HASH] == ""
    name = revision["metadata"]["name"]
    assert revision["metadata"]["labels"] == {"app": "web", "controller.kubernetes.io/hash": hash_in(name)}
    assert [owner["kind"] for owner in revision["metadata"]["ownerReferences"]] == ["CloneSet"]
    for number in range(26, 30):
        await stage.set_image(f"nginx:1.{number}")
        await stage.complete()

    async def is_cut() -> None:
        assert [item["revision"] for item in await stage.revisions()] == [3, 4, 5]

    await stage.until(is_cut)
    await stage.roll({"partition": 1})
    for number in range(30, 34):
        await stage.set_image(f"nginx:1.{number}")
        await stage.reaches(updatedReplicas=1, updatedAvailableReplicas=1)

    async def keeps_the_used_one() -> None:
        # 5 is still on one pod, 9 is the newest, and two more are kept.
        assert [item["revision"] for item in await stage.revisions()] == [5, 7, 8, 9]

    await stage.until(keeps_the_used_one)


@scenario("CS-106", "CS-74", "CS-71", "CS-45")
async def surge_brings_new_pods_before_old_ones_go(stage: Stage) -> None:
    """ReCreate with maxSurge 1 and maxUnavailable 0: never fewer pods serve than wanted, never more than one extra."""
    before = await stage.start(replicas=3, policy="ReCreate", rolling={"maxSurge": 1, "maxUnavailable": 0})
    async with stage.watching() as log:
        await stage.set_image(NEW)
        after = await stage.complete()
    assert not set(uids(before)) & set(uids(after))
    assert log.lowest(is_serving) >= 3
    assert log.highest(is_there) == 4


@scenario("CS-106", "CS-74", "CS-77")
async def surge_with_updates_in_place_ends_with_the_wanted_number(stage: Stage) -> None:
    """InPlaceIfPossible with surge: an extra pod comes first, others are updated in place, the surplus goes."""
    before = await stage.start(replicas=4, rolling={"maxSurge": 1, "maxUnavailable": 0}, minReadySeconds=1)
    async with stage.watching() as log:
        await stage.set_image(NEW)
        after = await stage.complete()
    assert log.highest(is_there) == 5
    assert log.lowest(is_serving) >= 4
    assert {images_of(pod)["main"] for pod in after} == {NEW}
    assert len(set(uids(before)) & set(uids(after))) >= 3


@scenario("CS-71", "CS-89")
async def a_paused_rollout_has_no_surge(stage: Stage) -> None:
    """Paused with maxSurge 1: a marked pod is replaced without an extra one."""
    before = names(await stage.start(rolling={"paused": True, "maxSurge": 1, "maxUnavailable": 1}))
    async with stage.watching() as log:
        await stage.set_labels(before[0], {keys.SPECIFIED_DELETE_LABEL: "true"})
        await stage.is_gone(PODS, before[0])
        await stage.complete()
    assert log.highest(is_there) == 3


@scenario("CS-71", "CS-45")
async def percentages_of_surge_and_unavailability(stage: Stage) -> None:
    """maxSurge 10 % of 3 is 1 (up), and then maxUnavailable 20 % is 0 (down): no pod less than wanted serves."""
    await stage.start(replicas=3, rolling={"maxSurge": "10%", "maxUnavailable": "20%"}, minReadySeconds=1)
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.complete()
    assert log.lowest(is_serving) >= 3
    assert log.highest(is_there) == 4


@scenario("CS-109", "CS-73", gates={"CloneSetPartitionRollback": False})
async def raising_the_partition_does_nothing_without_the_gate(stage: Stage) -> None:
    """Pods that were updated stay so."""
    await _two_updated_of_four(stage)
    await stage.roll({"partition": 4})
    await stage.reaches(expectedUpdatedReplicas=0)

    async def stay_updated() -> None:
        assert len(await stage.at_update_revision()) == 2

    await stage.stays(stay_updated)


@scenario("CS-109", "CS-73", "CS-79", "CS-105", gates={"CloneSetPartitionRollback": True})
async def raising_the_partition_takes_pods_back_with_the_gate(stage: Stage) -> None:
    """As many pods as the partition wants return to the current revision, in place, within maxUnavailable."""
    before = await _two_updated_of_four(stage)
    async with stage.watching() as log:
        await stage.roll({"partition": 3})
        await stage.reaches(updatedReplicas=1, availableReplicas=4)
        await stage.roll({"partition": 4})
        await stage.reaches(updatedReplicas=0, availableReplicas=4)
    assert log.lowest(is_serving) >= 3
    after = await stage.pods()
    assert uids(after) == before
    assert {images_of(pod)["main"] for pod in after} == {OLD}
    current = (await stage.status())["currentRevision"]
    assert {hash_of(pod) for pod in after} == {hash_in(current)}


async def _two_updated_of_four(stage: Stage) -> dict[str, str]:
    before = await stage.start(replicas=4, rolling={"partition": 2, "maxUnavailable": 1})
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=2, updatedAvailableReplicas=2)
    return uids(before)


@scenario("CS-103", "CS-25", "CS-27", smoke=True)
async def in_place_only_refuses_what_needs_a_new_pod(stage: Stage) -> None:
    """InPlaceOnly in v1beta1: FailedUpdate tells what cannot be done, no pod is touched, and it goes with the cause."""
    before = await stage.start(replicas=2, policy="InPlaceOnly")
    changed = [{"name": "main", "env": [{"name": "MODE", "value": "new"}]}]
    await stage.edit_template({"spec": {"containers": changed}})

    async def is_told() -> None:
        condition = await stage.condition("FailedUpdate")
        assert condition["status"] == "True"
        assert "update strategy is InPlaceOnly but can not update in-place" in condition["message"]
        assert uids(await stage.pods()) == uids(before)

    await stage.until(is_told)
    await stage.stays(is_told, seconds=stage.pace.calm / 4)
    await stage.edit_template({"spec": {"containers": [{"name": "main", "env": None, "image": NEW}]}})
    after = await stage.complete()
    assert uids(after) == uids(before)

    async def is_well_again() -> None:
        assert "conditions" not in await stage.status()

    await stage.until(is_well_again)


@scenario("CS-50", "CS-45")
async def in_place_only_is_guarded_at_admission_in_v1alpha1(stage: Stage) -> None:
    """v1alpha1 refuses a template change that no pod could take in place, and surge."""
    await stage.start(version=ALPHA, replicas=1, policy="InPlaceOnly")
    cloneset = await stage.world.cloneset()
    containers = cloneset["spec"]["template"]["spec"]["containers"]
    added = {"template": {"spec": {"containers": [{**containers[0], "env": [{"name": "A", "value": "b"}]}]}}}
    await stage.is_refused(stage.change(added, version=ALPHA), "InPlaceOnly", "/containers/0/env")
    await stage.is_refused(stage.change({"updateStrategy": {"maxSurge": 1}}, version=ALPHA), "maxSurge")
    image = {"template": {"spec": {"containers": [{**containers[0], "image": NEW}]}}}
    await stage.change(image, version=ALPHA)
    [pod] = await stage.complete()
    assert restarts_of(pod) == {"main": 1}


@scenario("IPU-121", "IPU-120", "CS-46")
async def weights_say_which_pods_are_updated_first(stage: Stage) -> None:
    """priorityStrategy by weight: pods of higher weight go first, one at a time."""
    weights = [
        {"weight": 80, "matchSelector": {"matchLabels": {"rank": "first"}}},
        {"weight": 30, "matchSelector": {"matchExpressions": [{"key": "rank", "operator": "Exists"}]}},
    ]
    ranks = {0: None, 1: "second", 2: "first", 3: "second"}
    pods = await _ranked(stage, ranks, {"priorityStrategy": {"weightPriority": weights}})
    order = await _order_of_update(stage)
    assert order[0] == pods[2]
    assert set(order[1:3]) == {pods[1], pods[3]}
    assert order[3] == pods[0]


@scenario("IPU-121", "CS-46")
async def numbers_in_a_label_say_which_pods_are_updated_first(stage: Stage) -> None:
    """priorityStrategy by order: the greatest number at the end of the label's value goes first, pods without the label
    before all."""
    ranks = {0: "group-2", 1: "group-10", 2: None, 3: "group-9"}
    pods = await _ranked(stage, ranks, {"priorityStrategy": {"orderPriority": [{"orderedKey": "rank"}]}})
    assert await _order_of_update(stage) == [pods[2], pods[1], pods[3], pods[0]]


@scenario("IPU-122", "CS-46")
async def scattered_pods_are_spread_over_the_rollout(stage: Stage) -> None:
    """scatterStrategy: of ten pods with three that match, these are the 1st, 6th and 10th to go. So of the first five
    one matches, of the first six two."""
    for count, partition in ((1, 5), (2, 4)):
        name = f"scatter-{partition}"
        scatter = [{"key": "rank", "value": "x"}]
        rolling = {"maxUnavailable": "100%", "partition": partition, "scatterStrategy": scatter}
        pods = names(await stage.start(name, replicas=10, rolling=rolling))
        for pod in pods[:3]:
            await stage.set_labels(pod, {"rank": "x"})
        await stage.set_image(NEW, name)
        await stage.reaches(name, updatedReplicas=10 - partition)
        assert len(set(pods[:3]) & set(names(await stage.at_update_revision(name)))) == count


async def _ranked(stage: Stage, ranks: dict[int, str | None], rolling: dict[str, object]) -> list[str]:
    pods = names(await stage.start(replicas=len(ranks), rolling={"maxUnavailable": 1, **rolling}))
    for number, rank in ranks.items():
        if rank is not None:
            await stage.set_labels(pods[number], {"rank": rank})
    return pods


async def _order_of_update(stage: Stage) -> list[str]:
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.complete()
    return log.updated_order(hash_in((await stage.status())["updateRevision"]))


@scenario("IPU-120")
async def pods_that_are_not_ready_are_updated_first(stage: Stage) -> None:
    """Default order: a pod that does not serve goes first, even where maxUnavailable is used up by it."""
    await stage.create(replicas=4, pod=GATED, rolling={"maxUnavailable": 1})
    await stage.reaches(replicas=4)
    pods = names(await stage.pods())
    for name in (pods[0], pods[1], pods[3]):
        await stage.open_gate(name)
    await stage.reaches(availableReplicas=3)
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=1)

    async def just_that_one() -> None:
        assert names(await stage.at_update_revision()) == [pods[2]]

    await stage.stays(just_that_one, seconds=stage.pace.calm / 4)
    await stage.open_gate(pods[2])
    await stage.complete()


@scenario("CS-50", "CS-124", "IPU-17")
async def a_change_of_strategy_restarts_nothing(stage: Stage) -> None:
    """Strategies, limits and lifecycle may change; no revision is made and no pod is touched (walk-through 10)."""
    before = await stage.start(replicas=3)
    rolling = {"partition": 1, "maxUnavailable": 2, "maxSurge": 0, "podUpdatePolicy": "ReCreate"}
    await stage.change(
        {
            "updateStrategy": {"rollingUpdate": rolling},
            "scaleStrategy": {"maxUnavailable": 1},
            "minReadySeconds": 1,
            "revisionHistoryLimit": 3,
            "lifecycle": {"preDelete": {"labelsHandler": {"example.com/hook": "true"}}},
            "progressDeadlineSeconds": 600,
        }
    )
    await stage.reaches(expectedUpdatedReplicas=2, availableReplicas=3)

    async def nothing_moves() -> None:
        now = await stage.pods()
        assert uids(now) == uids(before)
        assert {restarts_of(pod)["main"] for pod in now} == {0}
        assert len(await stage.revisions()) == 1

    await stage.stays(nothing_moves)


@scenario("CS-69a", "IPU-111", "IPU-112")
async def updates_are_spaced_by_min_ready_seconds(stage: Stage) -> None:
    """A pod is followed by the next one only after it was ready for minReadySeconds, and then soon."""
    seconds = stage.pace.seconds
    await stage.start(replicas=3, rolling={"maxUnavailable": 1}, minReadySeconds=seconds)
    async with stage.watching() as log:
        await stage.set_image(NEW)
        await stage.complete()
    order = log.updated_order(hash_in((await stage.status())["updateRevision"]))
    for former, later in itertools.pairwise(order):
        ready = log.of(former)[-1]
        since = next(item.last_transition_time for item in ready.status.conditions if item.type == "Ready")
        moved = log.of(later)[log.first(later, lambda pod: image_of(pod) == NEW)]
        state = json.loads(moved.metadata.annotations[keys.UPDATE_STATE_ANNOTATION])
        assert since is not None
        begun = datetime.fromisoformat(state["updateTimestamp"])
        assert seconds <= (begun - since).total_seconds() <= seconds + stage.pace.slack


@scenario("CS-102", "CS-100")
async def an_image_that_cannot_be_pulled_stops_the_rollout(stage: Stage) -> None:
    """Pods that cannot start use maxUnavailable up; a good template heals them first and goes on."""
    before = await stage.start(replicas=5, rolling={"maxUnavailable": 2})
    await stage.set_image("nginx:missing")
    await stage.reaches(updatedReplicas=2, updatedReadyReplicas=0, availableReplicas=3)

    async def only_two() -> None:
        assert len(await stage.at_update_revision()) == 2
        assert (await stage.status())["availableReplicas"] == 3

    await stage.stays(only_two)
    broken = names(await stage.at_update_revision())
    async with stage.watching() as log:
        await stage.set_image(NEW)
        after = await stage.complete()
    assert uids(after) == uids(before)
    assert set(log.updated_order(hash_in((await stage.status())["updateRevision"]))[:2]) == set(broken)
    assert log.lowest(is_serving) >= 3


@scenario("CS-107", "CS-101")
async def switching_from_on_delete_to_rolling_updates_the_rest(stage: Stage) -> None:
    """With type RollingUpdate the pods that OnDelete had left alone are updated."""
    before = await stage.start(replicas=2, strategy={"type": "OnDelete"})
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=0)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}}
    await stage.change({"updateStrategy": rolling})
    assert uids(await stage.complete()) == uids(before)


@scenario("CS-60", "CS-85")
async def two_clonesets_keep_out_of_each_others_way(stage: Stage) -> None:
    """CloneSets of one namespace update at the same time, each with its own pods and revisions."""
    await asyncio.gather(stage.start("left", replicas=2), stage.start("right", replicas=3))
    await asyncio.gather(stage.set_image(NEW, "left"), stage.set_image("nginx:1.27", "right"))
    left, right = await asyncio.gather(stage.complete("left"), stage.complete("right"))
    assert {images_of(pod)["main"] for pod in left} == {NEW}
    assert {images_of(pod)["main"] for pod in right} == {"nginx:1.27"}
    owners = {(await stage.world.get(CLONE_SETS, name))["metadata"]["uid"] for name in ("left", "right")}
    found = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in (*left, *right)}
    assert found == owners
