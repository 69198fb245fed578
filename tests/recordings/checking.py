"""Whether what was played is what was recorded, but for the differences that a kind lists."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from tests.recordings.player import Played


@dataclasses.dataclass(frozen=True, slots=True)
class Chosen:
    pattern: str
    """Matches the text of a difference from its beginning."""
    reason: str

    def covers(self, difference: str) -> bool:
        return re.match(self.pattern, difference) is not None


def check(chosen: Sequence[Chosen], result: Played) -> None:
    """Nothing differs but what is listed, and all that is listed does."""
    check_texts(chosen, [str(difference) for difference in result.differences])
    assert result.compared > 0


def check_texts(chosen: Sequence[Chosen], found: Sequence[str]) -> None:
    unexplained = [text for text in found if not any(entry.covers(text) for entry in chosen)]
    assert not unexplained, "\n".join(unexplained)
    stale = [entry.pattern for entry in chosen if not any(entry.covers(text) for text in found)]
    assert not stale, f"listed, but not found any more: {stale}"
