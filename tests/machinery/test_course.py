"""How a plan goes on: the same rules with a server and without one."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.machinery.course import NOT_SUCCEEDED, STALE, Course, ends_phase, rest_of, skipped, together
from kruise.machinery.plan import Chain, OnError, Outcome, Phase, PhaseOutcomes, Result, Target, patch

CHAIN: Chain = tuple(patch(Target(PODS, "demo", name), {}, uid=name, reason="r") for name in ("a", "b", "c"))


def phase(name: str = "one", on_error: OnError = OnError.STOP_PLAN, **options: object) -> Phase:
    return Phase(name=name, chains=(CHAIN,), on_error=on_error, **options)  # type: ignore[arg-type]


def ended(*results: Result) -> PhaseOutcomes:
    chain = tuple(Outcome(action=action, result=result) for action, result in zip(CHAIN, results, strict=False))
    return PhaseOutcomes("one", (chain,))


@pytest.mark.parametrize(("on_error", "result"), list(itertools.product(OnError, Result)))
def test_a_plan_stops_where_its_phase_says_so(on_error: OnError, result: Result) -> None:
    course = Course()
    assert course.reason_to_skip(phase()) == ""
    course.ended(phase(on_error=on_error), ended(Result.DONE, result))
    stops = on_error is OnError.STOP_PLAN and result not in (Result.DONE, Result.PENDING)
    assert course.reason_to_skip(phase("two")) == (NOT_SUCCEEDED if stops else "")


@pytest.mark.parametrize("result", list(Result))
def test_a_phase_is_stale_after_what_changed_before(result: Result) -> None:
    course = Course()
    course.ended(phase(on_error=OnError.CONTINUE), ended(result))
    is_unchanged = result in (Result.FAILED, Result.SKIPPED, Result.DEFERRED)
    assert course.reason_to_skip(phase("two", unless_done=("one",))) == ("" if is_unchanged else STALE)
    assert course.reason_to_skip(phase("two", unless_done=("another",))) == ""


def test_what_ends_a_phase() -> None:
    ending = {result for result in Result if ends_phase(phase(on_error=OnError.STOP_PHASE), result)}
    assert ending == {Result.FAILED, Result.UNKNOWN}
    assert not any(ends_phase(phase(on_error=OnError.CONTINUE), result) for result in Result)
    slowly = {result for result in Result if ends_phase(phase(slow_start=True), result)}
    assert slowly == set(Result) - {Result.DONE, Result.DEFERRED}


@given(st.lists(st.booleans()))
def test_phases_that_begin_together_keep_their_order(alongside: list[bool]) -> None:
    phases = [phase(str(number), alongside=beside) for number, beside in enumerate(alongside)]
    groups = together(phases)
    assert [item for group in groups for item in group] == phases
    assert all(item.alongside for group in groups for item in group[1:])
    assert not any(group[0].alongside for group in groups[1:])


def test_the_rest_of_a_chain_says_why() -> None:
    [outcome] = rest_of(CHAIN, 1)
    assert (outcome.action, outcome.result) == (CHAIN[2], Result.SKIPPED)
    assert "patch of" in outcome.error
    assert "demo/b did not succeed" in outcome.error
    assert [item.error for item in skipped(CHAIN, "why")] == ["why"] * 3
