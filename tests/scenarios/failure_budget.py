"""Failure budget: rollouts that stop or go back by themselves, and broken pods that are repaired first."""

from __future__ import annotations

import json
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import ANNOTATION
from tests.scenarios.stage import OK_GATE, Stage, hash_in, hash_of, images_of, names, scenario, uids

RULE = "failure budget"
OLD, NEW, BAD, WORSE = "nginx:1.25", "nginx:1.26", "nginx:no-such-tag", "nginx:no-such-tag-either"
PULLS = {"sim.kruise.io/images": json.dumps({BAD: {"error": "not found"}, WORSE: {"error": "not found"}})}
"""On simulated nodes these images cannot be pulled."""
CRASHES = "sim.kruise.io/crash-loop"
GATED = {"readinessGates": [{"conditionType": OK_GATE}]}


def asking(budget: str) -> dict[str, Any]:
    return {"annotations": {ANNOTATION: budget}}


async def ask(stage: Stage, budget: str | None) -> None:
    await stage.world.patch(CLONE_SETS, "web", {"metadata": {"annotations": {ANNOTATION: budget}}})


async def is_stopped(stage: Stage, reason: str, *words: str) -> str:
    async def told() -> str:
        condition = await stage.condition(FAILURE_BUDGET)
        assert (condition["status"], condition["reason"]) == ("True", reason), condition
        for word in words:
            assert word in condition["message"], condition
        return str(condition["message"])

    found: str = await stage.until(told)
    return found


async def is_not_stopped(stage: Stage) -> None:
    async def silent() -> None:
        conditions = (await stage.status()).get("conditions", [])
        assert FAILURE_BUDGET not in {item["type"] for item in conditions}, conditions

    await stage.until(silent)


async def failed_pods(stage: Stage) -> list[str]:
    """Names of the pods whose image cannot be pulled, once all moved pods are there."""

    async def are_told() -> list[str]:
        pods = await stage.at_update_revision()
        waiting = [
            item["state"].get("waiting", {}).get("reason", "")
            for pod in pods
            for item in pod.get("status", {}).get("containerStatuses", [])
        ]
        assert waiting
        assert all("Image" in reason for reason in waiting), waiting
        return names(pods)

    found: list[str] = await stage.until(are_told)
    return found


@scenario(RULE, smoke=True)
async def too_many_failed_pods_stop_a_rollout(stage: Stage) -> None:
    """Two pods fail, one may: nobody follows although there is room; new pods are made at the old revision."""
    await stage.start(replicas=5, annotations=PULLS, rolling={"maxUnavailable": 2}, metadata=asking("1"))
    await stage.set_image(BAD)
    ill = await failed_pods(stage)
    assert len(ill) == 2
    message = await is_stopped(stage, "Paused", "2 pods failed", "failure budget 1 allows 1", "rollout undo", *ill)
    assert "Image" in message
    await stage.has_event(FAILURE_BUDGET, "2 pods failed", type="Warning")
    await stage.roll({"maxUnavailable": "100%"})
    await stage.scale(6)
    await stage.reaches(replicas=6, updatedReplicas=2, readyReplicas=4)

    async def nobody_follows() -> None:
        moved = names(await stage.at_update_revision())
        assert sorted(moved) == sorted(ill)
        assert len(await stage.pods()) == 6

    await stage.stays(nobody_follows)
    await ask(stage, "2")
    await stage.has_event("FailureBudgetCleared", "allows 2 failed pods")
    await stage.reaches(updatedReplicas=6)


@scenario(RULE, smoke=True)
async def a_rollout_goes_back_by_itself(stage: Stage) -> None:
    """The moved pods return in place to the old revision; the spec is not touched, and a newer template ends it."""
    before = await stage.start(
        replicas=4, annotations=PULLS, rolling={"maxUnavailable": 2}, metadata=asking("1:rollback")
    )
    revision = (await stage.status())["currentRevision"]
    await stage.set_image(BAD)
    await is_stopped(stage, "RolledBack", "2 pods failed", f"go back to {revision}")
    status = await stage.reaches(updatedReplicas=0, availableReplicas=4)
    assert status["currentRevision"] == revision
    after = await stage.pods()
    assert uids(after) == uids(before)
    assert {hash_of(pod) for pod in after} == {hash_in(revision)}
    assert (await stage.world.cloneset())["spec"]["template"]["spec"]["containers"][0]["image"] == BAD

    async def stays_back() -> None:
        assert not await stage.at_update_revision()

    await stage.stays(stays_back)
    await is_stopped(stage, "RolledBack")
    await stage.set_image(NEW)
    await is_not_stopped(stage)
    assert {image for pod in await stage.complete() for image in images_of(pod).values()} == {NEW}
    await stage.has_event("FailureBudgetCleared", "is rolled out now")


@scenario(RULE)
async def pods_that_all_crash_are_replaced_by_old_ones(stage: Stage) -> None:
    """ReCreate with everything at once: even then there is a revision to go back to, the last that was complete."""
    await stage.start(replicas=3, policy="ReCreate", rolling={"maxUnavailable": "100%"}, metadata=asking("0:rollback"))
    revision = (await stage.status())["currentRevision"]
    change = {"metadata": {"annotations": {CRASHES: "true"}}, "spec": {"containers": [{"name": "main", "image": NEW}]}}
    await stage.edit_template(change)
    await is_stopped(stage, "RolledBack", f"go back to {revision}")
    await stage.reaches(updatedReplicas=0, availableReplicas=3, replicas=3)
    assert {hash_of(pod) for pod in await stage.pods()} == {hash_in(revision)}


@scenario(RULE)
async def broken_pods_are_repaired_before_all_others(stage: Stage) -> None:
    """A newer template goes to the pods that failed, whatever the priorities say, and they do not block each other."""
    pods = names(
        await stage.start(
            replicas=4,
            annotations=PULLS,
            rolling={
                "maxUnavailable": 2,
                "partition": 2,
                "priorityStrategy": {
                    "weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"first": "yes"}}}]
                },
            },
            metadata=asking("1"),
        )
    )
    await stage.set_image(BAD)
    ill = await failed_pods(stage)
    await is_stopped(stage, "Paused", *ill)
    for name in set(pods) - set(ill):
        await stage.set_labels(name, {"first": "yes"})
    await stage.set_image(NEW)
    await stage.reaches(updatedReplicas=2, updatedAvailableReplicas=2, availableReplicas=4)
    assert sorted(names(await stage.at_update_revision())) == sorted(ill)
    await is_not_stopped(stage)


@scenario(RULE)
async def a_pod_that_never_becomes_ready_counts_when_its_time_is_over(stage: Stage) -> None:
    """Nothing happens at that moment but time: the deadline of the rollout, counted from the pod's own move."""
    seconds = stage.pace.seconds + 2
    await stage.create(
        replicas=2, pod=GATED, progressDeadlineSeconds=seconds, rolling={"maxUnavailable": 1}, metadata=asking("0")
    )
    await stage.reaches(replicas=2)
    for name in names(await stage.pods()):
        await stage.open_gate(name)
    [first, second] = names(await stage.complete())
    for name in (first, second):
        await stage.open_gate(name, status="False")
    await stage.reaches(readyReplicas=0)
    await stage.set_image(NEW)
    await is_stopped(stage, "Paused", f"not ready for {seconds} s")
    assert await stage.progressing() == "ProgressDeadlineExceeded"


@scenario(RULE)
async def the_first_rollout_can_only_be_reported(stage: Stage) -> None:
    """There is nothing to go back to, and that is said; a newer template repairs the pods."""
    await stage.create(replicas=2, image=BAD, annotations=PULLS, metadata=asking("0:rollback"))
    await is_stopped(stage, "Paused", "2 pods failed", "no earlier revision")
    status = await stage.status()
    assert status["currentRevision"] == status["updateRevision"]
    await stage.set_image(NEW)
    await stage.complete()
    await is_not_stopped(stage)


@scenario(RULE)
async def whoever_is_quick_goes_back_to_what_just_worked(stage: Stage) -> None:
    """Each template comes as soon as the pods of the one before are available, before anybody believes them."""
    await stage.create(replicas=2, annotations=PULLS, rolling={"maxUnavailable": 2}, metadata=asking("0:rollback"))
    await stage.reaches(availableReplicas=2)
    await stage.set_image(BAD)
    await is_stopped(stage, "RolledBack")
    await stage.reaches(updatedReplicas=0, availableReplicas=2)
    await stage.set_image(NEW)
    await stage.reaches(updatedAvailableReplicas=2)
    worked = (await stage.status())["updateRevision"]
    await stage.set_image(BAD)
    await is_stopped(stage, "RolledBack", f"go back to {worked}")
    await stage.reaches(updatedReplicas=0, availableReplicas=2)
    assert {hash_of(pod) for pod in await stage.pods()} == {hash_in(worked)}


@scenario(RULE)
async def nothing_goes_back_to_what_never_worked(stage: Stage) -> None:
    """A first revision that failed is none to go back to, though it is the one before."""
    await stage.create(
        replicas=2, image=BAD, annotations=PULLS, rolling={"maxUnavailable": 2}, metadata=asking("0:rollback")
    )
    await is_stopped(stage, "Paused", "no earlier revision")
    await stage.set_image(WORSE)
    status = await stage.reaches(observedGeneration=2, updatedReplicas=2)
    await is_stopped(stage, "Paused", "no earlier revision", status["updateRevision"])
    assert len(await stage.at_update_revision()) == 2


@scenario(RULE)
async def a_wrong_budget_is_refused(stage: Stage) -> None:
    """At creation and when it changes; the message names the annotation and the allowed forms."""
    words = (ANNOTATION, '"lots"', '"10%:rollback"')
    await stage.is_refused(stage.create(replicas=1, metadata=asking("lots")), *words)
    await stage.start(replicas=1, metadata=asking("50%:pause"))
    await stage.is_refused(ask(stage, "lots"), *words)
    await stage.is_refused(ask(stage, "1:explode"), "1:explode")
    await stage.is_refused(ask(stage, "101%"), "100 %")
    await ask(stage, None)
    await stage.complete()


@scenario("waiting")
async def a_rollout_that_hangs_says_so_in_its_status(stage: Stage) -> None:
    """Condition Waiting: not while a rollout flows, but when a pod has been down for a minute; gone with the cause."""

    async def waits() -> dict[str, Any]:
        condition = await stage.condition("Waiting")
        assert (condition["status"], condition["reason"]) == ("True", "MaxUnavailable")
        return condition

    async def does_not_wait() -> None:
        conditions = (await stage.status()).get("conditions", [])
        assert "Waiting" not in {item["type"] for item in conditions}, conditions

    await stage.start(replicas=3, annotations=PULLS, rolling={"maxUnavailable": 1})
    await stage.set_image(BAD)
    [ill] = await failed_pods(stage)
    await does_not_wait()
    found = await stage.until(waits, within=60 + stage.pace.within)
    assert ill in found["message"]
    assert len(found["message"]) <= 512
    await stage.set_image(NEW)
    await stage.complete()
    await stage.until(does_not_wait)
