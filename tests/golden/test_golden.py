"""Golden decisions: each dump in this folder must decide today as it was recorded.

Add one with `kruise replay DUMP --golden FOLDER`. Where a change of a decision is meant,
`kruise replay FOLDER/*.json.gz --golden FOLDER --accept` records what is decided now: look at the difference first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kruise.replaying import SUFFIX, check

DUMPS = sorted(Path(__file__).parent.glob(f"*{SUFFIX}"))


@pytest.mark.parametrize("dump", DUMPS, ids=[path.name.removesuffix(SUFFIX) for path in DUMPS])
def test_decides_as_recorded(dump: Path) -> None:
    assert check(dump) == ()
