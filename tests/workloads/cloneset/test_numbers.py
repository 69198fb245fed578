"""How many pods to create, delete and update (CS-70 to CS-79)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.cloneset import (
    CloneSetScaleStrategy,
    CloneSetSpec,
    CloneSetUpdateStrategy,
    RollingUpdateCloneSetStrategy,
)
from kruise.api.apps.shared import IntOrPercent
from kruise.machinery import codec
from kruise.workloads.cloneset.numbers import (
    Census,
    Counts,
    Limits,
    ScaleNumbers,
    UpdateNumbers,
    counts_of,
    limits_of,
    partition_of,
    scale_numbers,
    update_numbers,
    updates_everything_at_once,
)
from kruise.workloads.shared.pod_facts import PodFacts
from tests.support.pods import make_pod


def spec_of(
    replicas: int | None, *, scale_max_unavailable: IntOrPercent | None = None, **rolling: object
) -> CloneSetSpec:
    strategy = RollingUpdateCloneSetStrategy(**rolling)  # type: ignore[arg-type]
    return CloneSetSpec(
        replicas=replicas,
        scale_strategy=CloneSetScaleStrategy(max_unavailable=scale_max_unavailable),
        update_strategy=CloneSetUpdateStrategy(type="RollingUpdate", rolling_update=strategy),
    )


def facts(kinds: str, *, state: str = "") -> list[PodFacts]:
    """One pod per word: `a` old or `b` new, then `-` unavailable, `!` specified for deletion, `~` PreparingDelete,
    `^` PreparingUpdate; `a*3` is three of them."""
    words = [word.partition("*") for word in kinds.split()]
    marks = [mark for mark, _, times in words for _ in range(int(times or 1))]
    return [
        PodFacts(
            pod=make_pod(f"web-{number}"),
            name=f"web-{number}",
            state="PreparingDelete" if "~" in mark else "PreparingUpdate" if "^" in mark else state,
            is_new=mark[0] == "b",
            is_available=not set(mark) & set("-~^"),
            is_ready="-" not in mark,
            is_specified="!" in mark,
            is_preparing_delete="~" in mark,
        )
        for number, mark in enumerate(marks)
    ]


def census(kinds: str) -> Census:
    return counts_of(facts(kinds), scaling=True, preparing_as_new=False)


def limits(partition: int, max_unavailable: int, max_surge: int, scale_max_unavailable: int | None = None) -> Limits:
    return Limits(
        partition=partition,
        max_unavailable=max_unavailable,
        max_surge=max_surge,
        scale_max_unavailable=scale_max_unavailable,
    )


def scaling(
    pods: str, replicas: int, given: Limits, *, same: bool = False, rollback: bool = False, exclude: bool = False
) -> ScaleNumbers:
    return scale_numbers(
        census(pods),
        given,
        replicas,
        same_revision=same,
        can_roll_back=rollback,
        exclude_preparing_delete=exclude,
    )


def updating(pods: str, replicas: int, given: Limits, *, same: bool = False, rollback: bool = False) -> UpdateNumbers:
    return update_numbers(census(pods), given, replicas, same_revision=same, can_roll_back=rollback)


# Partition and limits


@pytest.mark.parametrize(
    ("value", "replicas", "wanted"),
    [
        (None, 5, 0),
        (0, 5, 0),
        (3, 5, 3),
        (5, 5, 5),
        (9, 5, 5),
        (-1, 5, 0),
        ("0%", 5, 0),
        ("50%", 5, 3),
        ("99%", 4, 3),
        ("99.9%", 4, 3),
        ("100%", 4, 4),
        ("100.0%", 4, 3),
        ("150%", 4, 3),
        ("1%", 4, 1),
        ("0.5%", 1000, 5),
        ("0.1%", 1000, 1),
        ("33.34%", 3, 2),
        ("99%", 1, 1),
        ("100%", 1, 1),
        ("50%", 0, 0),
        ("100%", 0, 0),
        ("-10%", 5, 0),
        ("5", 5, 0),
        ("x%", 5, 0),
        ("%", 5, 0),
        ("inf%", 5, 0),
        ("nan%", 5, 0),
    ],
)
def test_partition(value: IntOrPercent | None, replicas: int, wanted: int) -> None:
    # CS-70; edge case 10: clamped before anything else looks at it.
    assert partition_of(value, replicas) == wanted


@settings(max_examples=100, deadline=None)
@given(
    value=st.one_of(
        st.none(),
        st.integers(-10, 3000),
        st.floats(0, 200, allow_nan=False).map("{:.3f}%".format),
        st.integers(0, 120).map("{}%".format),
        st.text(max_size=6),
    ),
    replicas=st.integers(0, 2000),
)
def test_a_partition_lies_between_none_and_all(value: IntOrPercent | None, replicas: int) -> None:
    """And a percentage other than 100 leaves something to update, where there is more than one pod."""
    count = partition_of(value, replicas)
    assert 0 <= count <= replicas
    if isinstance(value, str) and value != "100%" and replicas > 1:
        assert count < replicas


@settings(max_examples=100, deadline=None)
@given(percent=st.integers(0, 100), replicas=st.integers(0, 2000))
def test_a_partition_does_not_depend_on_how_the_percentage_is_written(percent: int, replicas: int) -> None:
    if percent < 100:
        assert partition_of(f"{percent}%", replicas) == partition_of(f"{percent}.00%", replicas)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        # CS-71: maxUnavailable is rounded up without surge, down with it; nil is 20%.
        (spec_of(5), Limits(max_unavailable=1)),
        (spec_of(6), Limits(max_unavailable=2)),
        (spec_of(6, max_surge=1), Limits(max_unavailable=1, max_surge=1)),
        (spec_of(4, max_surge="1%"), Limits(max_unavailable=0, max_surge=1)),
        (spec_of(10, max_unavailable="25%"), Limits(max_unavailable=3)),
        (spec_of(10, max_unavailable="25%", max_surge="25%"), Limits(max_unavailable=2, max_surge=3)),
        (spec_of(10, max_unavailable=4, max_surge=2), Limits(max_unavailable=4, max_surge=2)),
        (spec_of(10, max_unavailable="0.5%"), Limits(max_unavailable=1)),
        (spec_of(10, max_unavailable="0.5%", max_surge="0.5%"), Limits(max_unavailable=0, max_surge=1)),
        # CS-71: no surge while paused, and so maxUnavailable is rounded up.
        (
            spec_of(10, max_unavailable="25%", max_surge="25%", paused=True),
            Limits(max_unavailable=3, max_surge=0, is_paused=True),
        ),
        # CS-71: without a rollingUpdate section.
        (CloneSetSpec(replicas=9), Limits(max_unavailable=1)),
        (CloneSetSpec(replicas=4), Limits(max_unavailable=0)),
        # CS-71: scaleStrategy.maxUnavailable is rounded up; absent is no limit, 0 is one.
        (spec_of(6, scale_max_unavailable=2), Limits(max_unavailable=2, scale_max_unavailable=2)),
        (spec_of(6, scale_max_unavailable="10%"), Limits(max_unavailable=2, scale_max_unavailable=1)),
        (spec_of(6, scale_max_unavailable=0), Limits(max_unavailable=2, scale_max_unavailable=0)),
        (spec_of(6, scale_max_unavailable="many"), Limits(max_unavailable=2, scale_max_unavailable=0)),
        (
            CloneSetSpec(replicas=9, scale_strategy=CloneSetScaleStrategy(max_unavailable=3)),
            Limits(max_unavailable=1, scale_max_unavailable=3),
        ),
        # CS-70: the partition of the rolling update; one replica where none is said.
        (spec_of(4, partition="99%", max_unavailable="50%"), Limits(partition=3, max_unavailable=2)),
        (spec_of(None, partition=5), Limits(partition=1, max_unavailable=1)),
        (spec_of(0), Limits()),
        # What cannot be read or is negative allows nothing.
        (spec_of(9, max_unavailable="5", max_surge="x"), Limits()),
        (spec_of(9, max_unavailable=-1, max_surge=-2), Limits()),
    ],
)
def test_limits(spec: CloneSetSpec, wanted: Limits) -> None:
    assert limits_of(spec) == wanted


def test_on_delete_has_no_surge() -> None:  # CS-107
    """Pods above the number would be made at the update revision, and as many old ones go that nobody deleted."""
    spec = spec_of(4, max_surge=2)
    on_delete = codec.evolve(spec, update_strategy=codec.evolve(spec.update_strategy, type="OnDelete"))
    assert (limits_of(spec).max_surge, limits_of(on_delete).max_surge) == (2, 0)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (spec_of(10, max_unavailable="100%"), True),
        (spec_of(10, max_unavailable=10), True),
        (spec_of(10, max_unavailable=9), False),
        (spec_of(10, max_unavailable="99.9%"), False),
        (spec_of(10, max_unavailable="100%", partition=1), False),
        (spec_of(10), False),
        (CloneSetSpec(replicas=10), False),
    ],
)
def test_a_rollout_in_one_step(spec: CloneSetSpec, wanted: bool) -> None:
    # IPU-151: partition 0 and maxUnavailable, rounded down, reaches the replicas.
    assert updates_everything_at_once(spec) is wanted


# Counting


def test_counts() -> None:
    """Each pod is in the columns of CS section 7 that name it, and in no other."""
    counted = census("a*3 a- a! a-! a~ a~! b*2 b- b!")
    assert counted.old == Counts(total=8, preparing_delete=2, active=6, to_delete=2, unavailable=1)
    assert counted.new == Counts(total=4, preparing_delete=0, active=4, to_delete=1, unavailable=1)
    assert (counted.total, counted.preparing_delete, counted.to_delete) == (12, 2, 3)
    # CS-72: PreparingDelete counts as unavailable, what is specified for deletion does not.
    assert counted.unavailable == 2 + 2


@pytest.mark.parametrize(
    ("is_scaling", "gate", "new"), [(True, True, 2), (True, False, 1), (False, True, 1), (False, False, 1)]
)
def test_a_pod_that_prepares_its_update(is_scaling: bool, gate: bool, new: int) -> None:
    """CS section 7, CS-112: with the gate it counts as new for scaling, never for updating (CS-79)."""
    counted = counts_of(facts("a a^ b"), scaling=is_scaling, preparing_as_new=gate)
    assert (counted.old.total, counted.new.total) == (3 - new, new)


# The worked values of CS section 7


def test_worked_plain_rollout() -> None:
    assert updating("a*5", 5, limits(3, 1, 0)) == UpdateNumbers(count=2, budget=1)
    assert scaling("a*5", 5, limits(3, 1, 0)) == ScaleNumbers(delete_budget=1)


def test_worked_rollout_with_surge() -> None:
    assert scaling("a*5", 5, limits(3, 1, 1)) == ScaleNumbers(up=1, limit=1, surge=1, delete_budget=1)
    assert updating("a*5", 5, limits(3, 1, 1)) == UpdateNumbers(count=2, budget=1)


def test_worked_rollout_with_the_surge_pod_there() -> None:
    numbers = scaling("a*5 b-", 5, limits(3, 1, 1))
    assert (numbers.up, numbers.down, numbers.surge) == (0, 0, 1)
    assert updating("a*5 b-", 5, limits(3, 1, 1)) == UpdateNumbers(count=1, budget=2)


def test_worked_specified_deletion_with_surge() -> None:
    # No rollout: one revision, all pods at it.
    given = limits(0, 0, 1)
    assert scaling("b*4 b!", 5, given, same=True) == ScaleNumbers(up=1, limit=1, surge=1, delete_budget=0)
    assert scaling("b*5 b!", 5, given, same=True) == ScaleNumbers(surge=1, delete_budget=1)
    assert scaling("b*4 b- b!", 5, given, same=True) == ScaleNumbers(surge=1, delete_budget=0)


def test_worked_partition_rollback() -> None:
    # CS-73, CS-109
    assert updating("a*2 b*3", 5, limits(4, 2, 0), rollback=True) == UpdateNumbers(count=-2, budget=2)
    assert updating("a*2 b*3", 5, limits(4, 2, 0)) == UpdateNumbers(count=0, budget=2)
    assert updating("a*2 b*3", 5, limits(4, 2, 0), rollback=True, same=True).count == 0


def test_worked_limited_scale_up() -> None:
    numbers = scaling("b*2 b-", 6, limits(0, 1, 0, 2), same=True)
    assert (numbers.up, numbers.limit) == (3, 1)


def test_worked_99_percent() -> None:
    given = limits_of(spec_of(4, partition="99%", max_unavailable="50%"))
    assert updating("a*4", 4, given) == UpdateNumbers(count=1, budget=2)


def test_worked_preparing_delete() -> None:
    # CS-88: no substitute while the pod is on its way out, unless it is left out of the count.
    assert scaling("b*2 b~!", 3, limits(0, 1, 0), same=True) == ScaleNumbers(delete_budget=0)
    excluded = scaling("b*2 b~!", 3, limits(0, 1, 0), same=True, exclude=True)
    assert (excluded.up, excluded.limit, excluded.down) == (1, 1, 0)


# More of the rules


def test_missing_pods_keep_the_partition() -> None:
    """CS-76: a scale-up makes up for missing old pods first, the rest is new (CS-105)."""
    numbers = scaling("a b", 6, limits(3, 1, 0))
    assert (numbers.up, numbers.up_current) == (4, 2)
    limited = scaling("a b", 6, limits(3, 1, 0, 1))
    assert (limited.up, limited.limit, limited.create_current) == (4, 1, 1)


def test_a_scale_up_without_a_limit() -> None:
    assert scaling("b-*50", 100, limits(0, 1, 0), same=True).limit == 50


def test_a_pod_on_its_way_out_uses_the_scale_limit() -> None:
    # CS-76 with CS-72
    assert scaling("b*2 b~", 6, limits(0, 1, 0, 1), same=True).limit == 0


def test_scale_down_takes_old_pods_first() -> None:
    # CS-77
    numbers = scaling("a*3 b*3", 4, limits(0, 1, 0))
    assert (numbers.down, numbers.down_old) == (2, 2)
    numbers = scaling("a*3 b*3", 2, limits(2, 1, 0))
    assert (numbers.down, numbers.down_old) == (4, 1)
    numbers = scaling("a*3 b*3", 5, limits(3, 1, 0))
    assert (numbers.down, numbers.down_old) == (1, 0)


def test_pods_that_are_specified_are_not_scaled_in_twice() -> None:
    # CS-77, CS-87: with replicas lowered by the same number only the named pod goes.
    assert scaling("b*4 b!", 4, limits(0, 1, 0), same=True).down == 0


def test_the_deletion_budget_counts_what_is_unavailable() -> None:
    # CS-78
    assert scaling("b*6", 5, limits(0, 1, 0), same=True).delete_budget == 2
    assert scaling("b*5 b-", 5, limits(0, 1, 0), same=True).delete_budget == 1
    assert scaling("b*3 b-*3", 5, limits(0, 1, 0), same=True).delete_budget == 0


def test_surge_for_a_rollback_is_of_the_current_revision() -> None:
    # CS-74: all of the update need is old-revision surge when pods must go back.
    numbers = scaling("a*2 b*3", 5, limits(4, 1, 1), rollback=True)
    assert (numbers.up, numbers.up_current, numbers.surge) == (1, 1, 1)


def test_surge_for_deletion_replaces_the_revision_that_goes() -> None:
    # CS-74: old = D - toDel_new; the deletion need wins over an equal update need.
    numbers = scaling("a*3 a!*2 b*0", 5, limits(5, 0, 2))
    assert (numbers.up, numbers.up_current, numbers.surge) == (2, 2, 2)
    numbers = scaling("a*3 a! b!", 5, limits(4, 0, 2))
    assert (numbers.up, numbers.up_current, numbers.surge) == (2, 1, 2)


def test_surge_is_limited() -> None:
    assert scaling("a*10", 10, limits(0, 1, 3)).surge == 3
    assert scaling("b*5 b!*5", 10, limits(0, 0, 3), same=True).surge == 3
    # CS-74: only what maxUnavailable does not cover needs surge.
    assert scaling("b*5 b!*5", 10, limits(0, 4, 3), same=True).surge == 1


def test_a_broken_third_revision_is_updated_without_rollback() -> None:
    """Edge case 17: pods of two old revisions are old; when current and update are one, nothing goes back."""
    assert updating("a*2 b*3", 5, limits(0, 1, 0), same=True) == UpdateNumbers(count=2, budget=1)


def test_surplus_pods_raise_the_update_budget() -> None:
    # CS-79
    assert updating("a*6", 5, limits(0, 1, 0)) == UpdateNumbers(count=5, budget=2)


def test_pods_missing_lower_the_update_budget() -> None:
    assert updating("a*3", 5, limits(0, 1, 0)).budget == -1


@pytest.mark.parametrize(
    ("pods", "replicas", "partition"),
    [
        pytest.param("a", 4, 3, id="both sides lack pods: the old pod must not pass the partition"),
        pytest.param("a*2 b", 5, 3, id="both sides lack pods: the new pod has not to go back"),
        pytest.param("a*4 b*3", 4, 2, id="both sides have too many: scaling takes them"),
    ],
)
def test_no_update_where_only_scaling_helps(pods: str, replicas: int, partition: int) -> None:
    """With rollback, the smaller of two differences of the same sign would name a direction that is wrong."""
    assert updating(pods, replicas, limits(partition, 3, 0), rollback=True).count == 0


# Properties

marks = st.sampled_from(["a", "a-", "a!", "a-!", "a~", "a~!", "a^", "b", "b-", "b!", "b~"])
populations = st.lists(marks, max_size=30).map(" ".join)
some_limits = st.builds(
    lambda replicas, partition, *rest: (replicas, limits(min(partition, replicas), *rest)),
    st.integers(0, 25),
    st.integers(0, 25),
    st.integers(0, 10),
    st.integers(0, 10),
    st.one_of(st.none(), st.integers(0, 10)),
)


@settings(max_examples=100, deadline=None)
@given(pods=populations, given=some_limits, same=st.booleans(), rollback=st.booleans(), exclude=st.booleans())
def test_scaling_stays_within_the_limits(
    pods: str, given: tuple[int, Limits], same: bool, rollback: bool, exclude: bool
) -> None:
    replicas, bounds = given
    counted = census(pods)
    numbers = scaling(pods, replicas, bounds, same=same, rollback=rollback, exclude=exclude)
    assert 0 <= numbers.surge <= bounds.max_surge
    assert 0 <= numbers.limit <= numbers.up
    assert 0 <= numbers.create_current <= numbers.up_current <= numbers.up
    assert 0 <= numbers.down_old <= numbers.down
    assert not (numbers.up and numbers.down)
    counted_pods = counted.total - (counted.preparing_delete if exclude else 0)
    assert counted_pods + numbers.up <= max(replicas + numbers.surge, counted_pods)
    if bounds.scale_max_unavailable is not None and numbers.limit:
        assert counted.unavailable + numbers.limit <= bounds.scale_max_unavailable
    if not counted.to_delete and not counted.preparing_delete:
        assert numbers.down_old <= counted.old.total
        assert numbers.down - numbers.down_old <= counted.new.total


@settings(max_examples=100, deadline=None)
@given(pods=populations, given=some_limits, same=st.booleans(), rollback=st.booleans())
def test_the_deletion_budget_never_breaks_availability(
    pods: str, given: tuple[int, Limits], same: bool, rollback: bool
) -> None:
    """Deleting as many ready pods as the budget says leaves at least replicas - maxUnavailable pods that serve."""
    replicas, bounds = given
    counted = census(pods)
    numbers = scaling(pods, replicas, bounds, same=same, rollback=rollback)
    serving = counted.total - counted.unavailable
    if numbers.delete_budget:
        assert serving - numbers.delete_budget >= replicas - bounds.max_unavailable


@settings(max_examples=100, deadline=None)
@given(pods=populations, given=some_limits, same=st.booleans(), rollback=st.booleans())
def test_updating_keeps_the_partition(pods: str, given: tuple[int, Limits], same: bool, rollback: bool) -> None:
    replicas, bounds = given
    counted = counts_of(facts(pods), scaling=False, preparing_as_new=False)
    numbers = update_numbers(counted, bounds, replicas, same_revision=same, can_roll_back=rollback)
    if numbers.count > 0:
        assert counted.old.active - numbers.count >= bounds.partition
    if numbers.count < 0:
        assert rollback
        assert not same
        assert counted.new.active + numbers.count >= replicas - bounds.partition
        assert counted.old.active - numbers.count <= bounds.partition
    assert numbers.budget == bounds.max_unavailable + counted.total - replicas


@settings(max_examples=100, deadline=None)
@given(pods=st.lists(marks, max_size=30), given=some_limits, order=st.randoms())
def test_numbers_do_not_depend_on_the_order_of_pods(pods: list[str], given: tuple[int, Limits], order) -> None:  # type: ignore[no-untyped-def]
    replicas, bounds = given
    before = scaling(" ".join(pods), replicas, bounds)
    order.shuffle(pods)
    assert scaling(" ".join(pods), replicas, bounds) == before


@settings(max_examples=100, deadline=None)
@given(
    replicas=st.integers(1, 12), partition=st.integers(0, 12), surge=st.integers(0, 3), unavailable=st.integers(0, 3)
)
def test_a_rollout_by_these_numbers_ends(replicas: int, partition: int, surge: int, unavailable: int) -> None:
    """Pods that are created and updated as the numbers say end at the partition, with neither surge nor surplus left,
    and there are never fewer pods than promised."""
    if surge == 0 and unavailable == 0:
        unavailable = 1
    bounds = limits(min(partition, replicas), unavailable, surge)
    old, new = replicas, 0
    for _ in range(200):
        pods = " ".join(["a"] * old + ["b"] * new)
        numbers = scaling(pods, replicas, bounds)
        changed = bool(numbers.up or numbers.down)
        old += numbers.create_current
        new += numbers.limit - numbers.create_current
        gone = min(numbers.down, numbers.delete_budget)
        gone_old = min(numbers.down_old, gone)
        old, new = old - gone_old, new - (gone - gone_old)
        if not changed:
            update = updating(pods, replicas, bounds)
            moved = max(0, min(update.count, update.budget))
            old, new = old - moved, new + moved
            changed = moved > 0
        assert old + new >= replicas - unavailable
        assert old + new <= replicas + surge
        assert old >= bounds.partition
        if not changed:
            break
    assert (old, new) == (bounds.partition, replicas - bounds.partition)


def test_facts_of_this_test_are_what_they_say() -> None:
    built: Iterable[PodFacts] = facts("a*2 b-! b~")
    assert [(item.is_new, item.is_available, item.is_specified, item.state) for item in built] == [
        (False, True, False, ""),
        (False, True, False, ""),
        (True, False, True, ""),
        (True, False, False, "PreparingDelete"),
    ]
