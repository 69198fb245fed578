"""Every recording of images, restarts and probes of the original, played again on ours, on virtual time."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from kruise.api.native.nodes import NAMESPACES
from kruise.kinds import features
from kruise.local.nodes.spec import NodeSpec
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import run_virtual
from tests.recordings.checking import check
from tests.recordings.course import CourseRecording, read
from tests.recordings.environment import recorded_world
from tests.recordings.operations.differences import CHOSEN
from tests.recordings.operations.playing import COMPONENTS, Player
from tests.recordings.operations.stages import STAGES
from tests.recordings.player import Played
from tests.support.world import LocalWorld, run_local

DATA = Path(__file__).parent / "data"
FEATURES = (
    "containerrecreaterequest",
    "imagelistpulljob",
    "imagepulljob",
    "nodeimage",
    "nodepodprobe",
    "podprobemarker",
    "readiness",
)
"""What real nodes had to do with; more would only make it slower."""
NAMES = sorted(path.stem for path in DATA.glob("*.md"))
DOCUMENTS = Path(__file__).parents[3] / "docs"


def gates_of(recording: CourseRecording) -> dict[str, bool]:
    """Those that are on beside the defaults."""
    listed = re.search(r"(?:gates beside the default: |feature gates )((?:\w+, )*\w+)", recording.environment)
    return dict.fromkeys(listed[1].split(", "), True) if listed is not None else {}


def played(name: str, recording: CourseRecording | None = None) -> Played:
    recording, stage = recording or read(DATA / f"{name}.md", COMPONENTS), STAGES[name]
    gates = gates_of(recording)
    if stage.is_real:
        found: list[Played] = []

        async def story(world: LocalWorld) -> None:
            body = b'{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}'
            await world.client.send(Request(Verb.CREATE, NAMESPACES, body=body))
            world.namespace = "demo"
            nodes = world.cluster.nodes
            assert nodes is not None
            for number in (1, 2, 3):
                cidr = f"10.244.{number}.0/24"
                await nodes.add_node(NodeSpec(name=f"node{number}", pod_cidr=cidr, address=f"172.18.0.{number}"))
            found.append(await Player(recording, stage, world).run())

        chosen = tuple(one for one in features() if one.name in FEATURES)
        run_local(story, nodes=0, features=chosen, feature_gates=",".join(f"{gate}=true" for gate in gates))
        return found[0]

    async def main() -> Played:
        added = (re.match(r"ADDED node=(\S+)", one.text) for one in recording.moments)
        places = [found[1] for found in added if found is not None]
        async with recorded_world(places, late={}, gates=gates, with_pool=False) as (world, _, _):
            return await Player(recording, stage, world).run()

    return run_virtual(main())


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    """IPJ-31 to IPJ-61, ILPJ-11 to ILPJ-19, NI-10 to NI-23, CRR-12 to CRR-16, CRR-22 to CRR-34, CRR-41 to CRR-52,
    PPM-21 to PPM-28, NPP-3, NPP-10 to NPP-14, PRB-1 to PRB-10: as recorded, but for what is listed."""
    result = played(name)
    check(CHOSEN.get(name, ()), result)
    assert result.compared > 1


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 30
    assert set(NAMES) == set(STAGES)
    assert set(CHOSEN) <= set(NAMES)


def test_the_documents_tell_every_chosen_difference() -> None:
    pages = {"containerrecreaterequest": "containerrecreaterequest", "podprobemarker": "podprobemarker"}
    for name, entries in CHOSEN.items():
        page = pages.get(name.partition("-")[0], "images")
        text = " ".join((DOCUMENTS / f"{page}-differences.md").read_text(encoding="utf-8").split())
        for entry in entries:
            assert entry.reason in text, entry.reason


def test_a_difference_is_noticed() -> None:
    """What is compared can fail: another order of the same pictures, another last one, an event too many."""
    recording = read(DATA / "imagepulljob-always.md", COMPONENTS)
    lines = [one for one in recording.moments if not one.target.startswith("#") and "progress 66.7%" in one.text]
    assert len(lines) == 1
    told = lines[0].text.replace("66.7%", "66.6%")
    changed = tuple(dataclasses.replace(one, text=told) if one is lines[0] else one for one in recording.moments)
    events = {("NodeImage/sim-0", "Normal", "PullImageSucceed", "Image nginx:1.29"): 1}
    found = played("imagepulljob-always", dataclasses.replace(recording, moments=changed, events=events))
    assert [difference.aspect for difference in found.differences] == ["status", "events"]
