"""How a plan went, by phase and chain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.machinery.codec import Struct
from kruise.machinery.memo import RolloutMemo
from kruise.machinery.plan import Action, Outcome, Outcomes, Phase, Plan, Result, Target, failure_of, patch
from tests.support.outcomes import grouped


def action(name: str) -> Action:
    return patch(Target(PODS, "demo", name), {}, uid=f"uid-{name}", reason="differs")


@given(st.lists(st.lists(st.lists(st.sampled_from(list(Result)), max_size=3), max_size=3), max_size=4))
def test_outcomes_keep_the_shape_and_the_order_of_the_plan(results: list[list[list[Result]]]) -> None:
    plan = Plan(
        phases=tuple(
            Phase(name=str(number), chains=tuple(tuple(action("a") for _ in chain) for chain in chains))
            for number, chains in enumerate(results)
        )
    )
    flat = [result for chains in results for chain in chains for result in chain]
    outcomes = grouped(plan, (Outcome(action=action("a"), result=result) for result in flat))
    assert [item.result for item in outcomes] == flat
    for number, chains in enumerate(results):
        assert [[item.result for item in chain] for chain in outcomes.phase(str(number))] == chains
    assert outcomes.phase("another") == ()
    names = [phase.name for phase in plan.phases]
    assert list(outcomes.within(*names)) == list(outcomes)
    backwards = [result for chains in reversed(results) for chain in chains for result in chain]
    assert [item.result for item in outcomes.within(*reversed(names))] == backwards
    assert len(outcomes.failed) == flat.count(Result.FAILED)


def test_an_error_without_text_names_the_object() -> None:
    assert failure_of([Outcome(action=action("web-a"), result=Result.FAILED)]) == (
        "patch of pods demo/web-a failed, no reason was given"
    )


@given(st.lists(st.sampled_from(list(Result)), max_size=6))
def test_only_failed_writes_are_failures(results: list[Result]) -> None:
    outcomes = [Outcome(action=action("a"), result=result, error="refused") for result in results]
    done = all(result is Result.DONE for result in results)
    assert failure_of(outcomes) == ("refused" if Result.FAILED in results else "" if done else None)


def test_a_memo_is_read_as_what_its_kind_made() -> None:
    class Other(Struct):
        pass

    memo = RolloutMemo(update_revision="web-1")
    assert Plan(memo=memo).memo_as(RolloutMemo) is memo
    for plan in (Plan(), Plan(memo=Other())):
        with pytest.raises(TypeError, match="another kind's plan"):
            plan.memo_as(RolloutMemo)
    assert list(Outcomes()) == []
