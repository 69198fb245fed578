"""What the daemon remembers of its decisions: told in its log, and decided over again elsewhere."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest

from kruise.api.apps.images import NODE_IMAGES
from kruise.api.meta import Key
from kruise.daemon.parts import parts
from kruise.daemon.recent import MOST, log_decisions, small_journal
from kruise.machinery import plan as plans
from kruise.machinery.journal import replay
from kruise.machinery.plan import Job, Plan, Target, Wake
from kruise.manager import logs
from tests.operations.recreate.scenes import Scene, container, play, pod, request

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_decisions_are_told_in_one_line_each(caplog: pytest.LogCaptureFixture) -> None:
    journal = small_journal()
    write = plans.status_patch(Target(NODE_IMAGES, "", "n1"), {}, uid="u", reason="what the node has pulled")
    plan = Plan(
        phases=(plans.single("status", write),),
        jobs=(Job(name="0 nginx:1 0", call=Target(NODE_IMAGES, "", "n1")),),
        wakes=(Wake(after=1.0, reason="it is told that the node pulls"),),
    )
    about = {"key": Key("", "n1"), "time": NOW, "duration": 0.1}
    journal.record(controller="imagepuller", reconcile_id="1", plan=plan, **about)
    journal.record(controller="crr", reconcile_id="2", error="no container runtime", **about | {"key": Key("ns", "p")})
    with caplog.at_level(logging.INFO):
        log_decisions(journal)
    first, second = (
        logs.fields_of(record) for record in sorted(caplog.records, key=lambda one: one.part, reverse=True)
    )
    assert first == {
        "part": "imagepuller",
        "object": "n1",
        "decided": "2030-01-01T12:00:00Z",
        "actions": "1 patch nodeimages.apps.kruise.io/status",
        "jobs": "0 nginx:1 0",
        "wakes": "in 1.0 s: it is told that the node pulls",
    }
    assert (second["object"], second["error"]) == ("ns/p", "no container runtime")


def test_no_more_is_told_than_can_be_read(caplog: pytest.LogCaptureFixture) -> None:
    journal = small_journal()
    for part in ("a", "b", "c"):
        for number in range(1000):
            journal.record(
                controller=part, key=Key("", str(number)), reconcile_id="", time=NOW, duration=0.0, plan=Plan()
            )
    with caplog.at_level(logging.INFO):
        log_decisions(journal)
    assert len(caplog.records) == MOST


def test_a_decision_is_made_again_elsewhere() -> None:
    """The same plan of the same snapshot, read back from JSON."""

    async def story(scene: Scene) -> None:
        await scene.ready(pod(container("app"), container("side")))
        await scene.world.create(request("app", "side", strategy={"orderedRecreate": True}))
        daemon = scene.world.cluster.nodes.daemon
        assert daemon is not None
        specs = [part.spec(daemon.place) for part in parts({})]
        again: set[str] = set()
        while (await scene.request()).get("status", {}).get("phase") != "Completed":
            for controller, key in daemon.journal.dumps():
                if controller == "crr":
                    done = replay(daemon.journal.dump(controller, key), specs)
                    assert (done.plan_equal, done.digest_equal) == (True, True), done
                    again.add(done.digest)
            await scene.world.sleep(0.02)
        assert len(again) > 5

    play(story)
