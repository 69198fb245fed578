"""Every DaemonSet recording of the original, played again on ours (virtual time), compared as those of CloneSets are.

The pods are told apart by their nodes. Promises about pods for each node and availability are checked at every event.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.checking import check
from tests.recordings.daemonset.differences import CHOSEN
from tests.recordings.daemonset.directions import DIRECTIONS
from tests.recordings.daemonset.kind import KIND
from tests.recordings.parsing import read
from tests.recordings.player import play

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("daemonset-*.md"))
DOCUMENT = Path(__file__).parents[3] / "docs" / "daemonset-differences.md"


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str, version: str) -> None:
    """DS-2: both versions have the same fields where the recordings write."""
    recording = read(DATA / f"{name}.md")
    assert "default feature gates" in recording.environment
    result = play(recording, KIND, DIRECTIONS.get(name), version=version)
    check(CHOSEN.get(name, ()), result)
    assert result.checked > 0


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 6
    assert set(CHOSEN) <= set(NAMES)


def test_the_document_tells_every_chosen_difference() -> None:
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    for name, entries in CHOSEN.items():
        assert f"`{name}`" in text
        for entry in entries:
            assert entry.reason in text
