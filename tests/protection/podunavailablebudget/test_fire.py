"""The budget holds under fire; `python -m tests.protection.podunavailablebudget.fire N` plays more of it."""

from __future__ import annotations

import pytest

from tests.protection.podunavailablebudget.fire import play


@pytest.mark.parametrize("seed", [1])
def test_the_promise_holds_and_nothing_leaks(seed: int) -> None:
    """PUB-62, PUB-64, PUB-120, PUB-130."""
    result = play(seed)
    assert not result.wrong, result
    assert result.kills > 0
    assert result.answers["evict done"] > 0
    assert result.answers["evict 429"] > 0
