"""Every StatefulSet recording of the original on simulated nodes, played again on ours (virtual time)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.checking import check
from tests.recordings.parsing import read
from tests.recordings.player import play
from tests.recordings.statefulset.differences import CHOSEN
from tests.recordings.statefulset.directions import DIRECTIONS, GAPS
from tests.recordings.statefulset.kind import KIND

DATA = Path(__file__).parent / "data"
DOCUMENT = Path(__file__).parents[3] / "docs" / "statefulset-differences.md"
NAMES = sorted(path.stem for path in DATA.glob("statefulset-*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    recording = read(DATA / f"{name}.md", GAPS.get(name, ()))
    check(CHOSEN.get(name, ()), play(recording, KIND, DIRECTIONS.get(name)))


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 16
    assert CHOSEN.keys() <= set(NAMES)


def test_the_document_tells_every_chosen_difference() -> None:
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    for name, entries in CHOSEN.items():
        assert f"`{name}`" in text
        for entry in entries:
            assert entry.reason in text, entry.reason
