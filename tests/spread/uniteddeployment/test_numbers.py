"""How many pods each subset gets: the examples of the rules, and what holds for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.uniteddeployment import UnitedDeploymentSpec
from kruise.machinery.codec import convert
from kruise.spread.uniteddeployment.numbers import Seen, SizeError, allocated, parsed, partition_of, total_of

ADAPTIVE: Mapping[str, Any] = {"type": "Adaptive"}
RESERVING: Mapping[str, Any] = {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}
NONE = (None, None, None, None)


def spec(replicas: int | None, subsets: Sequence[Mapping[str, Any]], **schedule: Any) -> UnitedDeploymentSpec:
    named = [{"name": f"s{place}", **subset} for place, subset in enumerate(subsets)]
    body: dict[str, Any] = {"topology": {"subsets": named, "scheduleStrategy": schedule}}
    return convert(body if replicas is None else {**body, "replicas": replicas}, UnitedDeploymentSpec)


def sizes(wanted: UnitedDeploymentSpec, seen: Mapping[str, Seen] | None = None) -> list[int]:
    return [share.pods for share in allocated(wanted, seen or {}).values()]


def capacities(least: Sequence[int | None], most: Sequence[int | None]) -> list[dict[str, Any]]:
    return [{"minReplicas": low, "maxReplicas": high} for low, high in zip(least, most, strict=True)]


@pytest.mark.parametrize(
    ("size", "total", "pods"),
    [
        ("25%", 3, 1),
        ("25%", 2, 1),
        ("25%", 1, 0),
        ("50%", 5, 3),
        ("50%", 10, 5),
        (7, 3, 7),
        ("0%", 9, 0),
        ("100%", 9, 9),
    ],
)
def test_percentages_are_rounded_half_up(size: int | str, total: int, pods: int) -> None:
    """UD-40."""
    assert parsed(size, total) == pods


@pytest.mark.parametrize("size", [-1, "abc", "5", "120%", "12.5%", "-5%", "", True])
def test_what_is_no_size(size: Any) -> None:
    """UD-40."""
    with pytest.raises(SizeError):
        parsed(size, 10)


@pytest.mark.parametrize(
    ("total", "given", "current", "pods"),
    [
        (10, (2, "50%", None), (0, 0, 0), [2, 5, 3]),
        (6, (1, "50%", None), (0, 0, 0), [1, 3, 2]),
        (5, (None, None, None), (0, 0, 0), [1, 2, 2]),
        (5, NONE, (1, 4, 2, 2), [1, 2, 1, 1]),
        (17, NONE, (1, 4, 2, 2), [4, 5, 4, 4]),
        (19, (None, None), (0, 10), [9, 10]),
        (27, (4, None, 4, None), (1, 4, 2, 2), [4, 10, 4, 9]),
        (8, (4, None, 4, None), (1, 4, 2, 2), [4, 0, 4, 0]),
        (3, ("25%", "25%", None), (0, 0, 0), [1, 1, 1]),
        (4, ("25%", "25%", None), (0, 0, 0), [1, 1, 2]),
        (1, ("25%", "25%", None), (0, 0, 0), [0, 0, 1]),
    ],
)
def test_sizes_that_are_given(total: int, given: Any, current: Any, pods: list[int]) -> None:
    """UD-42 to UD-44."""
    wanted = spec(total, [{} if size is None else {"replicas": size} for size in given])
    seen = {f"s{place}": Seen(exists=True, size=size) for place, size in enumerate(current)}
    assert sizes(wanted, seen) == pods


def test_sizes_that_do_not_add_up() -> None:
    """UD-45."""
    with pytest.raises(SizeError, match="come to 6, more than the 5"):
        sizes(spec(5, [{"replicas": "50%"}, {"replicas": "50%"}]))
    with pytest.raises(SizeError, match="they must come to 5"):
        sizes(spec(5, [{"replicas": 1}, {"replicas": 1}]))
    assert sizes(spec(None, [{"replicas": 1}, {"replicas": 3}])) == [1, 3]
    assert total_of(spec(None, [{"replicas": 1}, {"replicas": 3}])) == 4  # UD-20
    assert sizes(spec(5, [])) == []


@pytest.mark.parametrize(
    ("total", "least", "most", "pods"),
    [
        (5, (2, 2), (4, None), [3, 2]),
        (10, (2,) * 5, (5, 5, 5, 5, None), [2] * 5),
        (14, (2,) * 5, (5, 5, 5, 5, None), [5, 3, 2, 2, 2]),
        (5, (2,) * 5, (5, 5, 5, 5, None), [2, 2, 1, 0, 0]),
        (3, (1, 1, 1), (2, 2, None), [1, 1, 1]),
        (7, (1, 1, 1), (2, 2, None), [2, 2, 3]),
        (1, (1, 1, 1), (2, 2, None), [1, 0, 0]),
        (5, (0, 0), (4, None), [4, 1]),
    ],
)
def test_between_minimum_and_maximum(total: int, least: Any, most: Any, pods: list[int]) -> None:
    """UD-41, UD-46."""
    assert sizes(spec(total, capacities(least, most))) == pods


@pytest.mark.parametrize(
    ("total", "least", "most", "ready", "stuck", "pods"),
    [
        (10, (3, None), (5, None), (0, 5), (0,), [3, 7]),
        (10, (3, None), (5, None), (3, 5), (0,), [3, 7]),
        (10, (3, None), (5, None), (5, 5), (), [5, 5]),
        (4, NONE, (2, None, None, None), (2, 0, None, None), (1,), [2, 0, 2, 0]),
        (4, NONE, (2, None, None, None), (2, 0, 0, None), (1, 2), [2, 0, 0, 2]),
        (8, NONE, (2, None, None, None), (2, 0, 0, 2), (1, 2), [2, 0, 0, 6]),
        (8, NONE, (2, None, None, None), (2, 0, 0, 2), (), [2, 4, 0, 2]),
        (4, NONE, NONE, (2, 0, 0, 6), (), [2, 0, 0, 2]),
        (3, (0, None), (2, None), (0, 3), (0,), [0, 3]),
        (3, (1, None), (2, None), (0, 3), (0,), [1, 2]),
        (1, (1, None), (2, None), (2, 1), (), [1, 0]),
    ],
)
def test_adaptive(total: int, least: Any, most: Any, ready: Any, stuck: Any, pods: list[int]) -> None:
    """UD-63, UD-65."""
    wanted = spec(total, capacities(least, most), **ADAPTIVE)
    seen = {
        f"s{place}": Seen(exists=True, size=count, ready=count, is_unschedulable=place in stuck)
        for place, count in enumerate(ready)
        if count is not None
    }
    assert sizes(wanted, seen) == pods


@pytest.mark.parametrize(
    ("total", "least", "most", "current", "reserved", "pods"),
    [
        (2, NONE[:3], NONE[:3], (0, 0, 0), "0,0,0", [2, 0, 0]),
        (2, NONE[:3], NONE[:3], (2, 0, 0), "2,0,0", [2, 2, 0]),
        (2, NONE[:3], NONE[:3], (2, 2, 0), "2,2,0", [2, 2, 2]),
        (4, NONE[:3], NONE[:3], (2, 2, 2), "2,2,0", [2, 2, 4]),
        (2, NONE[:3], NONE[:3], (2, 2, 2), "2,1,0", [2, 2, 1]),
        (2, NONE[:3], NONE[:3], (2, 2, 1), "0,1,0", [2, 0, 0]),
        (4, NONE[:3], NONE[:3], (2, 2, 4), "m,2,0", [4, 2, 2]),
        (8, (1,) * 4, (2, 2, 2, None), (2, 2, 2, 2), "0,2,2,0", [2, 2, 2, 6]),
        (8, (1,) * 4, (2, 2, 2, None), (2, 2, 2, 6), "0,1,1,0", [2, 2, 2, 4]),
        (16, (2,) * 4, (4, 4, 4, None), (2, 2, 2, 6), "0,1,1,0", [4, 2, 2, 10]),
        (16, (2,) * 4, (4, 4, 4, None), (4, 2, 2, 10), "0,m,m,0", [4, 4, 4, 8]),
        (16, (2,) * 4, (4, 4, 4, None), (4, 4, 4, 8), "0,2,2,0", [4, 4, 4, 8]),
        (16, (2,) * 4, (4, 4, 4, None), (4, 4, 4, 8), "0,m,m,0", [4, 4, 4, 4]),
        (2, (1, 1, 0), NONE[:3], (1, 1, 0), "1,1,0", [1, 1, 2]),
        (2, (1, 1, 0), NONE[:3], (1, 1, 2), "m,1,0", [2, 1, 1]),
        (2, (1, 1, 0), NONE[:3], (2, 1, 1), "0,1,0", [2, 1, 0]),
    ],
)
def test_beside_stuck_pods(total: int, least: Any, most: Any, current: Any, reserved: str, pods: list[int]) -> None:
    """UD-70, UD-72; `m` is marked, with no pod that is stuck."""
    wanted = spec(total, capacities(least, most), **RESERVING)
    seen = {
        f"s{place}": Seen(
            exists=True,
            size=size,
            ready=size,
            is_unschedulable=mark not in "0m",
            was_marked=mark != "0",
            reserved=0 if mark in "0m" else int(mark),
        )
        for place, (size, mark) in enumerate(zip(current, reserved.split(","), strict=True))
    }
    assert sizes(wanted, seen) == pods


def test_a_lower_maximum_holds_for_a_subset_with_stuck_pods() -> None:
    """UD-70: pods that are stuck are no reason to keep more than maxReplicas."""
    wanted = spec(4, capacities((0, 0), (1, None)), **RESERVING)
    stuck = Seen(exists=True, size=3, is_unschedulable=True, was_marked=True, reserved=3)
    assert sizes(wanted, {"s0": stuck, "s1": Seen(exists=True, size=4, ready=4)}) == [1, 4]


def test_partitions_fit_their_subset() -> None:
    """UD-81."""
    wanted = convert({"updateStrategy": {"manualUpdate": {"partitions": {"s0": 9, "s1": -2}}}}, UnitedDeploymentSpec)
    assert [partition_of(wanted, name, 2) for name in ("s0", "s1", "s2")] == [2, 0, 0]


# What holds for all

SIZE = st.one_of(st.none(), st.integers(0, 6), st.integers(0, 100).map(lambda number: f"{number}%"))
SEEN = st.builds(
    Seen,
    exists=st.just(True),
    size=st.integers(0, 6),
    ready=st.integers(0, 6),
    is_unschedulable=st.booleans(),
)


@settings(max_examples=60)
@given(st.integers(0, 30), st.lists(SIZE, min_size=1, max_size=5), st.lists(SEEN, min_size=5, max_size=5))
def test_given_sizes_come_to_the_whole(total: int, given_sizes: list[Any], seen: list[Seen]) -> None:
    """UD-43, UD-45: sums are exact, or nothing is allocated; shares of the rest differ by one at most."""
    wanted = spec(total, [{} if size is None else {"replicas": size} for size in given_sizes])
    try:
        found = sizes(wanted, {f"s{place}": one for place, one in enumerate(seen)})
    except SizeError:
        fixed = sum(parsed(size, total) for size in given_sizes if size is not None)
        assert fixed > total or (None not in given_sizes and fixed < total)
        return
    assert sum(found) == total
    assert all(pods == parsed(size, total) for pods, size in zip(found, given_sizes, strict=True) if size is not None)
    rest = [pods for pods, size in zip(found, given_sizes, strict=True) if size is None]
    assert not rest or max(rest) - min(rest) <= 1


@settings(max_examples=60)
@given(
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(4, 9))), min_size=1, max_size=5),
    st.one_of(st.none(), st.lists(SEEN, min_size=5, max_size=5)),
)
def test_capacities_are_kept(total: int, limits: list[tuple[int, int | None]], seen: list[Seen] | None) -> None:
    """UD-46, UD-63: never above a maximum, minimums as long as there are pods, and a healthy subset never starves while
    one without a maximum takes what is left."""
    wanted = spec(
        total, [{"minReplicas": low, "maxReplicas": high} for low, high in limits], **(ADAPTIVE if seen else {})
    )
    known = {f"s{place}": one for place, one in enumerate(seen or ()) if place < len(limits)}
    found = sizes(wanted, known)
    assert sum(found) <= total
    for pods, (_, high) in zip(found, limits, strict=True):
        assert high is None or pods <= high
    if sum(low for low, _ in limits) <= total:
        assert all(pods >= low for pods, (low, _) in zip(found, limits, strict=True)) or known
    open_ended = [
        place
        for place, (_, high) in enumerate(limits)
        if high is None and not known.get(f"s{place}", Seen()).is_unschedulable
    ]
    if open_ended:
        assert sum(found) == total


STUCK = st.integers(0, 6).flatmap(
    lambda size: st.builds(
        lambda reserved, marked: Seen(
            exists=True,
            size=size,
            ready=size - reserved,
            is_unschedulable=reserved > 0,
            was_marked=marked or reserved > 0,
            reserved=reserved,
        ),
        st.integers(0, size),
        st.booleans(),
    )
)


@settings(max_examples=80)
@given(
    st.integers(0, 30),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=0, max_size=4),
    st.lists(STUCK, min_size=4, max_size=4),
)
def test_beside_stuck_pods_all_that_is_asked_for_serves(
    total: int, limits: list[tuple[int, int]], seen: list[Seen]
) -> None:
    """UD-70: maximums are kept, and what is stuck is made up for where there is room: neither too few nor too many."""
    subsets = [{"minReplicas": low, "maxReplicas": low + more} for low, more in limits]
    wanted = spec(total, [*subsets, {}], **RESERVING)
    known = {f"s{place}": seen[place] for place in range(len(limits))}
    given_sizes = sizes(wanted, known)
    for pods, (low, more) in zip(given_sizes, limits, strict=False):
        assert pods <= low + more
    healthy = [
        min(pods, here.size - here.reserved) if here.was_marked else pods
        for pods, here in zip(given_sizes, known.values(), strict=False)
    ]
    assert sum(healthy) + given_sizes[-1] == total
