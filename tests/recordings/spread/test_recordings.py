"""Every recording of UnitedDeployment, WorkloadSpread and PersistentPodState, played again on ours (virtual time)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recordings.spread.differences import CHOSEN, CLOSED
from tests.recordings.spread.playing import play

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*-*.md"))
DOCUMENTS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    """What users see after each step is equal, but for what is listed."""
    found, places = play(DATA / f"{name}.md", CLOSED.get(name, frozenset()))
    chosen = CHOSEN.get(name, ())
    unexplained = [text for text in found if not any(entry.covers(text) for entry in chosen)]
    assert not unexplained, "\n".join(unexplained)
    stale = [entry.pattern for entry in chosen if not any(entry.covers(text) for text in found)]
    assert not stale, f"listed, but not found any more: {stale}"
    if name == "persistentpodstate-recreate":
        assert len(places["web-0"]) == 1, places  # PPS-30: it came back to its node


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 14
    assert set(CHOSEN) <= set(NAMES)


def test_the_documents_tell_every_chosen_difference() -> None:
    for name, entries in CHOSEN.items():
        kind = name.partition("-")[0]
        document = DOCUMENTS / f"{kind}-differences.md"
        text = " ".join((document if document.exists() else DOCUMENTS / f"{kind}.md").read_text("utf-8").split())
        assert f"`{name}`" in text
        for entry in entries:
            assert entry.reason in text
