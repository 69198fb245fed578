"""Recordings of rollouts on real nodes, played again on ours with the node model under them (virtual time)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.recordings.checking import check_texts
from tests.recordings.sets.differences import CHOSEN
from tests.recordings.sets.playing import play, read

DATA = Path(__file__).parent / "data"
DOCUMENT = Path(__file__).parents[3] / "docs" / "cloneset-differences.md"
NAMES = sorted(path.stem for path in DATA.glob("*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    """The same happens to pods, in the same order, the same containers start again, and status and pods are the same in
    the end, but for what is listed.

    ST-40, ST-59, ST-63, DS-50, DS-53, DS-64, DS-66, ELP-1, ELP-2, ELP-4, IPU-34, IPU-63, DMN-75, DMN-77.
    """
    recording = read(DATA / f"{name}.md")
    assert any(step.signs for step in recording.steps)
    check_texts(CHOSEN.get(name, ()), play(recording))


def test_the_document_tells_every_difference() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, chosen in CHOSEN.items():
        row = next(line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(entry.reason in row for entry in chosen)


def test_a_difference_is_noticed() -> None:
    recording = read(DATA / "statefulset-reserveordinals-ordered.md")
    first, second, third, *rest = recording.steps
    other = dataclasses.replace(second, signs=tuple(reversed(second.signs)))
    wrong = dataclasses.replace(recording, steps=(first, other, third, *rest), counters={"replicas": 5})
    found = play(wrong)
    assert [text.partition(":")[0] for text in found] == ["step 2, reserve 1", "status.replicas"]


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 8
    assert CHOSEN.keys() <= set(NAMES)
