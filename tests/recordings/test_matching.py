"""Renaming pods: an assignment is found when there is one, and keeps what is bound."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recordings.matching import match
from tests.support.examples import EXAMPLES

PAIRS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@settings(max_examples=50 * EXAMPLES)
@given(size=st.integers(0, 5), pairs=PAIRS, bound=st.dictionaries(st.integers(0, 4), st.integers(0, 4), max_size=1))
def test_finds_an_assignment_exactly_when_there_is_one(
    size: int, pairs: set[tuple[int, int]], bound: dict[int, int]
) -> None:
    recorded, ours = [f"pod-{n}" for n in range(size)], [f"web-{n}" for n in range(size)]
    named = {f"pod-{name}": f"web-{our}" for name, our in bound.items() if name < size and our < size}
    fitting = {(f"pod-{name}", f"web-{our}") for name, our in pairs}

    def is_good(assignment: dict[str, str]) -> bool:
        return set(assignment.items()) <= fitting and all(assignment[name] == our for name, our in named.items())

    found = match(recorded, ours, lambda name, our: (name, our) in fitting, named)
    exists = any(is_good(dict(zip(recorded, order, strict=True))) for order in itertools.permutations(ours))
    assert (found is not None) == exists
    assert found is None or is_good(found)


def test_different_numbers_do_not_match() -> None:
    assert match(["pod-1"], [], lambda name, our: True, {}) is None
