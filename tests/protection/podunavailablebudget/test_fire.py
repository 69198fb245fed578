"""The budget holds under fire; `KRUISE_FIRE=1000 pytest ...` plays more of it, `tests...fire N` tells of each run."""

from __future__ import annotations

import os

import pytest

from tests.protection.podunavailablebudget.fire import play

SEEDS = range(1, 1 + int(os.environ.get("KRUISE_FIRE", "2")))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_promise_holds_and_nothing_leaks(seed: int) -> None:
    """PUB-62, PUB-64, PUB-120, PUB-130."""
    result = play(seed)
    assert not result.wrong, result
    assert result.kills > 0
    refused = sum(count for answer, count in result.answers.items() if answer.endswith((" 403", " 429")))
    done = sum(count for answer, count in result.answers.items() if answer.endswith(" done"))
    assert min(refused, done) > 0
