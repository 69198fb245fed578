"""Every recording of BroadcastJobs and AdvancedCronJobs of the original, played again on ours, on virtual time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kruise.api.native.nodes import NAMESPACES
from kruise.machinery.client.requests import Request, Verb
from tests.recordings.checking import check
from tests.recordings.course import read
from tests.recordings.jobs.differences import CHOSEN
from tests.recordings.jobs.playing import COMPONENTS, Player, Stage
from tests.recordings.player import Played
from tests.support.world import LocalWorld, run_local

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*.md"))
DOCUMENTS = Path(__file__).parents[3] / "docs"
_TAINT = {"key": "pool", "effect": "NoSchedule"}
_BY_HAND = Stage(nodes=("node-a", "node-b"), labels={"pool": "hand"}, taints=(_TAINT,))
STAGES = {
    "broadcastjob-complete": _BY_HAND,
    "broadcastjob-failure": _BY_HAND,
    "advancedcronjob": dataclasses.replace(_BY_HAND, begins=1794729954.0),
    "advancedcronjob-broadcastjob-replace": Stage(begins=1794830317.5),
    "advancedcronjob-imagelistpulljob": Stage(begins=1794830623.8),
    "advancedcronjob-job-forbid": Stage(begins=1794830261.0, runs_in_order=True),
}


def played(name: str) -> Played:
    found: list[Played] = []

    async def story(world: LocalWorld) -> None:
        body = b'{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}'
        await world.client.send(Request(Verb.CREATE, NAMESPACES, body=body))
        world.namespace = "demo"
        # Image lists are pulled as it was recorded, not by us.
        world.features = [one for one in world.features if one.name not in ("imagelistpulljob", "imagepulljob")]
        world.start_manager()
        await world.sleep(1)
        found.append(await Player(read(DATA / f"{name}.md", COMPONENTS), STAGES.get(name, Stage()), world).run())

    run_local(story, nodes=0, start=False, feature_gates="ImagePullJobGate=true")
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:  # BJ-8, BJ-10, BJ-36 to BJ-51, ACJ-46, ACJ-50 to ACJ-67
    result = played(name)
    check(CHOSEN.get(name, ()), result)
    assert result.compared > 1


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 11
    assert set(CHOSEN) <= set(NAMES)


def test_the_documents_tell_every_chosen_difference() -> None:
    for name, entries in CHOSEN.items():
        kind = name.partition("-")[0]
        text = " ".join((DOCUMENTS / f"{kind}-differences.md").read_text(encoding="utf-8").split())
        for entry in entries:
            assert entry.reason in text, entry.reason
