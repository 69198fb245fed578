"""Condition Progressing (CS section 11)."""

from __future__ import annotations

from datetime import datetime

from tests.scenarios.stage import OK_GATE, Stage, names, scenario

NEW = "nginx:1.26"
GATED = {"readinessGates": [{"conditionType": OK_GATE}]}


async def _is(stage: Stage, reason: str, status: str = "True") -> None:
    async def told() -> None:
        condition = await stage.condition("Progressing")
        assert (condition["reason"], condition["status"]) == (reason, status)

    await stage.until(told)


@scenario("CS-115", "CS-116", "CS-119", "CS-26", smoke=True)
async def progress_is_told_through_a_rollout(stage: Stage) -> None:
    """Updated, Available, Paused, PartitionAvailable; the messages are those of the original."""
    await stage.create(replicas=2, pod=GATED, progressDeadlineSeconds=600, rolling={"maxUnavailable": 1})
    await _is(stage, "CloneSetUpdated")
    assert (await stage.condition("Progressing"))["message"] == "CloneSet is progressing"
    await stage.reaches(replicas=2)
    for name in names(await stage.pods()):
        await stage.open_gate(name)
    await _is(stage, "CloneSetAvailable")
    condition = await stage.condition("Progressing")
    assert condition["message"] == "CloneSet is available"
    assert datetime.fromisoformat(condition["lastUpdateTime"]) >= datetime.fromisoformat(
        condition["lastTransitionTime"]
    )
    # A drop in availability shows.
    first = names(await stage.pods())[0]
    await stage.open_gate(first, status="False")
    await _is(stage, "CloneSetUpdated")
    await stage.open_gate(first)
    await _is(stage, "CloneSetAvailable")
    await stage.roll({"paused": True, "partition": 1})
    await stage.set_image(NEW)
    await _is(stage, "CloneSetPaused")
    assert (await stage.condition("Progressing"))["message"] == "CloneSet is paused"
    await stage.roll({"paused": False})
    await _is(stage, "ProgressPartitionAvailable")
    text = "CloneSet has been paused due to partition ready"
    assert (await stage.condition("Progressing"))["message"] == text
    await stage.roll({"partition": 0})
    await _is(stage, "CloneSetAvailable")


@scenario("CS-117", "CS-118", "CS-119")
async def a_late_rollout_is_told_until_it_is_done(stage: Stage) -> None:
    """The deadline passes, never early; the report stays through scaling and new templates, and goes with success."""
    seconds = stage.pace.seconds
    await stage.create(replicas=1, pod=GATED)
    await stage.reaches(replicas=1)
    [name] = names(await stage.pods())
    await stage.open_gate(name)
    await stage.complete()
    assert await stage.progressing() == ""
    await stage.change({"progressDeadlineSeconds": seconds})
    await _is(stage, "CloneSetAvailable")
    # Having been stable for longer than the deadline does not count against a rollout.
    await stage.world.sleep(seconds + 2)
    await stage.open_gate(name, status="False")
    await stage.set_image(NEW)
    await _is(stage, "CloneSetUpdated")
    began = datetime.fromisoformat((await stage.condition("Progressing"))["lastUpdateTime"])
    await _is(stage, "ProgressDeadlineExceeded", "False")
    ended = datetime.fromisoformat((await stage.condition("Progressing"))["lastUpdateTime"])
    assert seconds <= (ended - began).total_seconds() <= seconds + 1 + stage.pace.slack
    await stage.scale(2)
    await stage.set_image("nginx:1.27")
    await stage.reaches(replicas=2)

    async def is_still_told() -> None:
        assert await stage.progressing() == "ProgressDeadlineExceeded"

    await stage.stays(is_still_told, seconds=stage.pace.calm / 4)
    for pod in names(await stage.pods()):
        await stage.open_gate(pod)
    await _is(stage, "CloneSetAvailable")
    await stage.change({"progressDeadlineSeconds": None})

    async def is_removed() -> None:
        assert await stage.progressing() == ""

    await stage.until(is_removed)


@scenario("CS-115", "CS-48")
async def the_greatest_deadline_means_none(stage: Stage) -> None:
    """2147483647 switches the condition off; v1alpha1 refuses a deadline that minReadySeconds cannot meet."""
    await stage.start(replicas=1, progressDeadlineSeconds=2147483647)
    assert await stage.progressing() == ""
    impossible = {"minReadySeconds": 5, "progressDeadlineSeconds": 5}
    await stage.is_refused(stage.change(impossible, version="v1alpha1"), "progressDeadlineSeconds")
