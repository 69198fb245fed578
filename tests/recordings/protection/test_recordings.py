"""Every recording of budgets, deletion protection and distributions, played again on ours (virtual time)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.recordings.checking import check_texts
from tests.recordings.protection.differences import CHOSEN
from tests.recordings.protection.directions import BUDGETS, DELETIONS, DISTRIBUTIONS
from tests.recordings.protection.playing import Answer, play

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.stem for path in DATA.glob("*-*.md"))
DOCUMENTS = Path(__file__).parents[3] / "docs"
PAGES = {"deletionprotection": "deletion-protection"}
TEST = {"group": "test"}
KINDS: Mapping[str, tuple[Mapping[str, Answer], str]] = {
    "podunavailablebudget": (BUDGETS, ""),
    "deletionprotection": (DELETIONS, "ResourcesDeletionProtection=true"),
    "resourcedistribution": (DISTRIBUTIONS, "ResourceDistributionGate=true"),
}
GATES = {
    "podunavailablebudget-update-gate": "PodUnavailableBudgetUpdateGate=true",
    "resourcedistribution-gate-off": "",
}
BEFORE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "resourcedistribution-configmap": {"team-1": {}, "team-2": TEST, "team-3": TEST, "team-4": TEST, "team-5": {}},
    "resourcedistribution-all-namespaces": {"all-1": {}, "all-2": {}, "all-3": {}},
    "resourcedistribution-conflict": {"conf-1": {}, "conf-2": {}, "conf-3": {}},
}


@pytest.mark.parametrize("name", NAMES)
def test_recording_plays_the_same(name: str) -> None:
    """What whoever acts is told, and what is there after each step, is equal but for what is listed.

    PUB-40, PUB-41, PUB-52, PUB-60, PUB-62, PUB-70, PUB-90; DP-15, DP-18, DP-40, DP-50, DP-51; RD-20, RD-33, RD-34,
    RD-37, RD-39, RD-41, RD-50.
    """
    directions, gates = KINDS[name.partition("-")[0]]
    found = play(DATA / f"{name}.md", directions, gates=GATES.get(name, gates), before=BEFORE.get(name, {}))
    check_texts(CHOSEN.get(name, ()), found)


def test_every_recording_is_there() -> None:
    assert len(NAMES) == 11
    assert set(CHOSEN) <= set(NAMES)


def test_the_documents_tell_every_chosen_difference() -> None:
    for name, entries in CHOSEN.items():
        kind = name.partition("-")[0]
        text = " ".join((DOCUMENTS / f"{PAGES.get(kind, kind)}-differences.md").read_text("utf-8").split())
        assert f"`{name}`" in text
        for entry in entries:
            assert entry.reason in text
