"""Which ordinals the pods have (ST-40 to ST-42)."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.apps.statefulset import StatefulSetOrdinals, StatefulSetSpec
from kruise.workloads.shared.ordinals import MOST_PODS, highest, ordinals, ordinals_of, reserved_of

ENTRIES = st.lists(
    st.one_of(
        st.integers(0, 12),
        st.tuples(st.integers(0, 12), st.integers(0, 5)).map(lambda pair: f"{pair[0]}-{pair[0] + pair[1]}"),
    ),
    max_size=5,
).map(tuple)


@pytest.mark.parametrize(
    ("replicas", "start", "reserved", "wanted"),
    [
        (4, 0, (1,), (0, 2, 3, 4)),
        (4, 0, (1, 3), (0, 2, 4, 5)),
        (3, 0, (1, 3), (0, 2, 4)),
        (3, 0, (0, "2-5"), (1, 6, 7)),
        (4, 2, (1, 3), (2, 4, 5, 6)),
        (3, 2, (), (2, 3, 4)),
        (1, 0, (0, "2-5"), (1,)),
        (0, 0, (0,), ()),
        (2, 0, ("0-2000000000",), (2000000001, 2000000002)),
        (2, 0, (0, "5-99999999999"), (1, 2)),
        (3, 2**31 - 2, (), (2**31 - 2, 2**31 - 1)),
        (3, 0, ("1-99999999999",), (0,)),
    ],
)
def test_reserved_ordinals_are_left_out(  # ST-40
    replicas: int, start: int, reserved: tuple[int | str, ...], wanted: tuple[int, ...]
) -> None:
    assert ordinals(replicas, start, reserved_of(reserved)) == wanted


@pytest.mark.parametrize("broken", ["5-2", "a-b", "1-2-3", "5", "", "-1-2", "1-" + "9" * 20])
def test_a_range_that_nobody_can_read_makes_the_whole_list_count_for_nothing(broken: str) -> None:  # ST-41
    assert reserved_of((1, broken)) == ()


@given(st.integers(0, 8), st.integers(0, 8), ENTRIES)
def test_the_first_free_ordinals_from_the_start_on(  # ST-40, ST-41
    replicas: int, start: int, entries: tuple[int | str, ...]
) -> None:
    taken: set[int] = set()
    for entry in entries:
        first, _, last = str(entry).partition("-")
        taken |= set(range(int(first), int(last or first) + 1))
    free = (number for number in itertools.count(start) if number not in taken)
    assert ordinals(replicas, start, reserved_of(entries)) == tuple(itertools.islice(free, replicas))


def test_the_start_counts_only_with_its_gate() -> None:  # ST-40
    spec = StatefulSetSpec(replicas=2, ordinals=StatefulSetOrdinals(start=3))
    assert ordinals_of(spec, start_counts=True) == (3, 4)
    assert ordinals_of(spec, start_counts=False) == (0, 1)


def test_a_slip_of_the_hand_does_not_fill_the_memory() -> None:
    assert len(ordinals_of(StatefulSetSpec(replicas=2**31 - 1), start_counts=False)) == MOST_PODS


def test_the_highest_come_from_the_top() -> None:
    assert highest((0, 2, 4), 2) == (4, 2)
    assert highest((0, 2, 4), 5) == (4, 2, 0)
    assert highest((0, 2, 4), 0) == ()
