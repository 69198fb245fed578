"""When a rollout begins and ends, and what it waited for."""

from __future__ import annotations

from kruise.faces.progress import Phase, Progress
from kruise.manager.courses import Course, Ended

THREE = {"wanted": 3, "expected": 3, "total": 3}


def moving(updated: int, **more: int) -> Progress:
    return Progress(**{**THREE, "updated": updated, "available": 3, **more})


def done(**more: int) -> Progress:
    return moving(3, **more).done("done")


def test_a_rollout_from_its_begin_to_its_end() -> None:
    course = Course()
    assert course.see(done(), "a", 0) is None
    assert course.age(5) is None
    assert course.see(moving(0), "b", 10) is None
    assert course.age(15) == 5
    assert course.see(moving(2), "b", 40) is None
    assert course.see(done(), "b", 70) == Ended(Phase.DONE, 60)
    assert (course.age(80), course.last, course.ends) == (None, 60, {Phase.DONE: 1})


def test_a_new_workload_rolls_out_for_the_first_time() -> None:
    course = Course()
    assert course.see(Progress(wanted=3, expected=3), "", 0) is None
    assert course.see(moving(3, available=1), "a", 4) is None
    assert course.see(done(), "a", 9) == Ended(Phase.DONE, 9)


def test_pods_that_crash_or_are_added_are_no_rollout() -> None:
    course = Course()
    course.see(done(), "a", 0)
    assert course.see(moving(3, available=2), "a", 10) is None
    assert course.age(20) is None
    assert course.see(done(), "a", 30) is None
    assert course.see(moving(3, wanted=5, expected=5), "a", 40) is None
    assert course.age(50) is None
    assert not course.ends


def test_pods_on_their_way_out_are_not_taken_for_older_ones() -> None:
    """A status may count them among all, and among the updated ones no more."""
    course = Course()
    course.see(done(), "a", 0)
    assert course.see(moving(2), "a", 10) is None
    assert course.age(10) is None, "one is made again"
    assert course.see(moving(2, wanted=1, expected=1), "a", 20) is None
    assert course.age(20) is None, "two are taken away"
    late = Course()
    late.see(moving(3, available=2), "a", 0)
    late.see(moving(2, available=2), "a", 10)
    assert late.age(10) is None, "seen first while a pod was not available"


def test_a_smaller_workload_keeps_fewer_under_a_partition_and_has_no_rollout() -> None:
    course = Course()
    course.see(moving(2, wanted=5, expected=2, total=5).done("partitioned"), "a", 0)
    assert course.see(moving(2, wanted=2, expected=0, total=5), "a", 10) is None
    assert course.age(10) is None


def test_a_workload_that_gets_larger_under_a_partition_has_no_rollout() -> None:
    course = Course()
    course.see(moving(1, expected=1).done("partitioned"), "a", 0)
    assert course.see(moving(1, wanted=5, expected=3), "a", 10) is None
    assert course.age(10) is None


def test_a_revision_that_no_pod_shall_get_yet_is_no_rollout() -> None:
    course = Course()
    course.see(done(), "a", 0)
    assert course.see(moving(0, expected=0).done("partitioned"), "b", 10) is None
    assert course.see(moving(0), "b", 20) is None
    assert course.age(25) == 5
    assert course.see(done(), "b", 30) == Ended(Phase.DONE, 10)


def test_what_nobody_updates_by_itself_neither_rolls_nor_fails() -> None:
    course = Course()
    course.see(done(), "a", 0)
    course.rest(moving(0).failed("OnDelete"), "b", 10)
    assert (course.age(20), course.ends) == (None, {})
    course.see(moving(1), "b", 30)  # RollingUpdate again
    course.hold({"next"}, 30)
    course.rest(moving(1).failed("OnDelete"), "b", 40)
    assert (course.age(50), course.ends, course.waited(50)) == (None, {}, {"next": 10})


def test_a_partition_that_is_lowered_lets_it_go_on() -> None:
    course = Course()
    course.see(done(), "a", 0)
    course.see(moving(0, expected=1), "b", 10)
    assert course.see(moving(1, expected=1).done("partitioned"), "b", 20) == Ended(Phase.DONE, 10)
    assert course.see(moving(1), "b", 100) is None
    assert course.see(done(), "b", 130) == Ended(Phase.DONE, 30)


def test_a_failure_counts_as_such_and_the_way_back_as_another_rollout() -> None:
    course = Course()
    course.see(done(), "a", 0)
    course.see(moving(0), "b", 10)
    assert course.see(moving(1).failed("budget"), "b", 50) == Ended(Phase.FAILED, 40)
    assert course.last is None
    course.see(moving(1), "b", 55)
    assert course.age(57) == 2, "the budget was raised"
    course.see(moving(2), "a", 60)
    assert course.see(done(), "a", 75) == Ended(Phase.DONE, 20)
    assert course.ends == {Phase.FAILED: 1, Phase.DONE: 1}


def test_what_went_on_when_a_manager_came_is_measured_from_then_on() -> None:
    course = Course()
    assert course.see(moving(1), "b", 100) is None
    assert course.see(done(), "b", 130) == Ended(Phase.DONE, 30)
    finished = Course()
    assert finished.see(done(), "b", 100) is None
    assert not finished.ends


def test_a_rollout_that_nobody_saw_under_way_counts_too() -> None:
    course = Course()
    course.see(done(), "a", 0)
    assert course.see(done(), "b", 10) == Ended(Phase.DONE, 0)


def test_time_is_counted_for_each_cause_while_it_holds_pods() -> None:
    course = Course()
    course.see(done(), "a", 0)
    course.hold({"partition"}, 1)
    assert course.waited(9) == {}, "there is no rollout"
    course.see(moving(0), "b", 10)
    course.hold({"max-unavailable"}, 10)
    course.hold({"max-unavailable", "hook"}, 15)
    assert course.waited(17) == {"hook": 2, "max-unavailable": 7}
    course.hold({"hook"}, 20)
    assert course.waited(25) == {"hook": 10, "max-unavailable": 10}
    course.see(done(), "b", 30)
    assert course.waited(99) == {"hook": 15, "max-unavailable": 10}
    # What keeps pods afterwards, such as a partition, is no time of a rollout.
    course.hold({"partition"}, 40)
    assert course.waited(99) == {"hook": 15, "max-unavailable": 10}


def test_what_a_decision_says_before_the_rollout_is_seen_counts_from_then_on() -> None:
    """The pass that finds the new revision decides first and writes the status then; there may be no further one."""
    course = Course()
    course.see(done(), "a", 0)
    course.hold({"max-unavailable"}, 9)
    course.see(moving(0), "b", 10)
    assert course.waited(60) == {"max-unavailable": 50}
