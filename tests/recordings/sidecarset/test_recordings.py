"""The recordings of OpenKruise's sidecars, start order and terminator, played again on ours, on virtual time."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from kruise.api.native.nodes import NODES
from kruise.machinery.clock import run_virtual
from tests.recordings.checking import check
from tests.recordings.environment import recorded_world
from tests.recordings.parsing import Recording, read
from tests.recordings.player import Played
from tests.recordings.sidecarset.differences import CHOSEN
from tests.recordings.sidecarset.playing import NodePlayer, Player, Stage
from tests.support.world import LocalWorld, run_local

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*.md"))
DOCUMENTS = Path(__file__).parents[3] / "docs"
_SLOW, _NEVER_READY = "sim.kruise.io/slow-start.main", "sim.kruise.io/never-ready."
_NO_SUCH_TAG = json.dumps({"busybox:no-such-tag": {"error": True}})
STAGES = {
    # Pods became ready one after the other, and two were made in the next second: the order of updates begins there.
    "sidecarset-priority-scatter": Stage(
        knobs={f"p{number}": {_SLOW: text} for number, text in ((1, "2"), (3, "3"), (4, "2"), (5, "1.8"), (6, "1.8"))},
        later={"p5": 1.0},
    ),
    # The pause is to catch the rollout at its first pod, as it did there.
    "sidecarset-pause-hotupgrade": Stage(seconds={3: 0.6}),
    "sidecarset-resources-policy": Stage(settled=0.9),
    "launch-priority-blocked": Stage(knobs={"p": {f"{_NEVER_READY}{name}": "true" for name in ("first", "second")}}),
    "terminator-onfailure": Stage(
        knobs={"good": {"sim.kruise.io/crash-loop.main": "1", "sim.kruise.io/crash-count.main": "1"}}
    ),
}


def played(recording: Recording) -> Played:
    return _on_nodes(recording) if recording.has_real_nodes else _on_simulated_nodes(recording)


def _on_simulated_nodes(recording: Recording) -> Played:
    async def main() -> Played:
        async with recorded_world(recording.nodes, late={}, gates=recording.gates) as (world, _, _):
            return await Player(recording, world).run()

    return run_virtual(main())


def _on_nodes(recording: Recording) -> Played:
    found: list[Played] = []

    async def story(world: LocalWorld) -> None:
        for node in await world.list(NODES):
            body = {"metadata": {"annotations": {"sim.kruise.io/images": _NO_SUCH_TAG}}}
            await world.patch(NODES, node["metadata"]["name"], body)
        found.append(await NodePlayer(recording, world, STAGES.get(recording.name)).run())

    run_local(story, nodes=3, feature_gates=",".join(f"{gate}=true" for gate in recording.gates))
    return found[0]


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    """SCS-1, SCS-3, SCS-12, SCS-14, SCS-16, SCS-18, SCS-21, SCS-22, SCS-24 to SCS-28, SCS-30, SCS-31, SCS-35, SCS-36,
    SCS-40, SCS-42, SCS-47 to SCS-54, SCS-58 to SCS-61, SCS-63 to SCS-65, SCS-70, SCS-72 to SCS-76, SCS-90, SCS-91,
    SCS-93 to SCS-95, SCS-100 to SCS-103, SCS-106, SCS-107, SCS-110, SCS-111, SCS-113, SCS-115, SCS-120 to SCS-123,
    SCS-132; CLP-2 to CLP-9, CLP-13 to CLP-16, CLP-19, CLP-20; JST-3 to JST-5, JST-7, JST-10, JST-13, JST-14, JST-14a,
    JST-14b, JST-15, JST-16, JST-23: the same, or listed."""
    result = played(read(DATA / f"{name}.md"))
    check([entry for _, entry in CHOSEN.get(name, ())], result)
    assert result.compared >= 2


def test_every_recording_is_there() -> None:
    real = [name for name in NAMES if read(DATA / f"{name}.md").has_real_nodes]
    assert (len(NAMES), len(real)) == (31, 23)
    assert set(CHOSEN) <= set(NAMES)


def test_the_documents_tell_every_chosen_difference() -> None:
    for entries in CHOSEN.values():
        for document, entry in entries:
            text = " ".join((DOCUMENTS / document).read_text(encoding="utf-8").split())
            assert entry.reason in text, (document, entry.reason)


def test_a_difference_is_noticed() -> None:
    recording = read(DATA / "sidecarset-bad-image.md")
    assert played(recording).differences == []
    lines = list(recording.lines)
    place = max(number for number, line in enumerate(lines) if '"updatedPods":2' in line.text)
    lines[place] = dataclasses.replace(
        lines[place], text=lines[place].text.replace('"updatedPods":2', '"updatedPods":3')
    )
    place = next(number for number, line in enumerate(lines) if "restartCount=1" in line.text)
    lines[place] = dataclasses.replace(lines[place], text=lines[place].text.replace("restartCount=1", "restartCount=4"))
    found = [str(one) for one in played(dataclasses.replace(recording, lines=tuple(lines))).differences]
    assert any(text.startswith("[set] after step 4, lab-bad: counts") for text in found), found
    assert any("side restarts: recorded 4, ours 1" in text for text in found), found
