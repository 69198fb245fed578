"""Every CloneSet recording of the original, played again on ours (virtual time).

Compared after every step that came to rest: the answer of the API server; spec, status and progress of the CloneSet;
revisions; claims; pods with labels, annotations, images, conditions, restarts, the lifecycle states they went through
and the order in which they were updated and deleted. In the end: the events, and the objects that the recording prints
in full. Promises about availability, partition and surge are checked at every event of our watch.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.checking import check
from tests.recordings.cloneset.differences import CHOSEN
from tests.recordings.cloneset.directions import DIRECTIONS
from tests.recordings.cloneset.kind import KIND
from tests.recordings.parsing import read
from tests.recordings.player import Played, play

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("cloneset-*.md"))
ALPHA_ONLY = {
    "cloneset-inplaceonly": "v1beta1 does not look at the template of an InPlaceOnly CloneSet (CS-50)",
    "cloneset-ondelete-third-revision": "OnDelete is a type beside RollingUpdate there",
    "cloneset-podstodelete": "v1beta1 does not look at the pods that are named (CS-47)",
}
"""Recordings whose point is a refusal that only v1alpha1 has."""
DOCUMENT = Path(__file__).parents[3] / "docs" / "cloneset-differences.md"


@pytest.fixture(scope="module")
def played() -> dict[str, Played]:
    """What was played so far in this module."""
    return {}


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str, played: dict[str, Played]) -> None:
    recording = read(DATA / f"{name}.md")
    assert "default feature gates" in recording.environment  # the world below has them
    result = played[name] = play(recording, KIND, DIRECTIONS.get(name))
    check(CHOSEN.get(name, ()), result)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ALPHA_ONLY])
def test_recording_plays_the_same_in_v1beta1(name: str) -> None:
    """CS-2: the same, written in the other version."""
    check(CHOSEN.get(name, ()), play(read(DATA / f"{name}.md"), KIND, DIRECTIONS.get(name), version="v1beta1"))


def test_every_recording_is_played(played: dict[str, Played], capsys: pytest.CaptureFixture[str]) -> None:
    """38 recordings; all but the listed ones are equal."""
    if len(played) < len(NAMES):
        pytest.skip("only a part of the recordings was selected")
    equal = [name for name, result in played.items() if not result.differences]
    with capsys.disabled():
        print(
            f"\nrecordings: played {len(played)}, equal {len(equal)}, with listed differences {len(CHOSEN)}; "
            f"{sum(result.compared for result in played.values())} states compared, "
            f"promises checked at {sum(result.checked for result in played.values())} events"
        )
    assert len(NAMES) == 38
    assert set(played) - set(equal) == set(CHOSEN)


def test_golden_revision_names(played: dict[str, Played]) -> None:
    """IPU-14: names as they really were, all five of them."""
    name = "cloneset-golden-revisions"
    result = played.get(name) or play(read(DATA / f"{name}.md"), KIND)
    assert result.revisions == [
        "sample-d4d4fb5bd",
        "sample-7b66b966b7",
        "sample-56dfb978d4",
        "cs-7cb9c88699",
        "cs-7c4d79f5bc",
    ]


@pytest.mark.parametrize(("name", "writes"), [("cloneset-create", 5 * 2), ("cloneset-inplace-image", 5 * 2 + 5 * 3)])
def test_few_writes(name: str, writes: int, played: dict[str, Played]) -> None:
    """Two for a pod created, three for a pod updated in place."""
    result = played.get(name) or play(read(DATA / f"{name}.md"), KIND)
    assert result.pod_writes == writes


def test_the_document_tells_every_chosen_difference() -> None:
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    for name, entries in CHOSEN.items():
        assert f"`{name}`" in text
        for entry in entries:
            assert entry.reason in text
