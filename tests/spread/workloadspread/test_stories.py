"""Every story on the local cluster and virtual time."""

from __future__ import annotations

import pytest

from tests.spread.workloadspread.stories import STORIES
from tests.support.world import run_local


@pytest.mark.parametrize("name", list(STORIES))
def test_story(name: str) -> None:
    run_local(STORIES[name])
