"""Recordings of rollouts on real nodes, played again on ours with the node model under them (virtual time)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.recordings.sets.playing import play, read

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    """ST-40, ST-59, ST-63, DS-50, DS-53, DS-64, DS-66: the same happens to pods, in the same order, and the
    status counts the same in the end."""
    recording = read(DATA / f"{name}.md")
    assert any(step.signs for step in recording.steps)
    assert play(recording) == []


def test_a_difference_is_noticed() -> None:
    recording = read(DATA / "statefulset-reserveordinals-ordered.md")
    first, second, third, *rest = recording.steps
    other = dataclasses.replace(second, signs=tuple(reversed(second.signs)))
    wrong = dataclasses.replace(recording, steps=(first, other, third, *rest), counters={"replicas": 5})
    found = play(wrong)
    assert [text.partition(":")[0] for text in found] == ["step 2, reserve 1", "status.replicas"]


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 6
