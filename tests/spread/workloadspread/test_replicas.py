"""The count holds with several managers under fire; `tests.spread.workloadspread.fire N` tells of each of N runs."""

from __future__ import annotations

import pytest

from tests.spread.workloadspread.fire import play
from tests.support.examples import EXAMPLES


@pytest.mark.parametrize("seed", range(1, 1 + 2 * EXAMPLES))
def test_no_subset_has_more_than_it_may_and_no_place_is_lost(seed: int) -> None:
    """WS-22, WS-23, WS-27, WS-33, WS-47."""
    result = play(seed)
    assert not result.wrong, result
    assert result.kills > 0
    assert result.disturbed > 20, "nothing was disturbed"
    assert all(result.most[name] == limit for name, limit in result.limits.items()), result
