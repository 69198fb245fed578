"""Expressions over amounts of resources (SCS-54, SCS-28)."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.sidecars.sidecarset.expressions import DEEPEST, LONGEST, ExpressionError, Milli, evaluate
from kruise.sidecars.sidecarset.patterns import PatternError, compiled
from tests.support.examples import story_settings

CPU = {"cpu": Milli(600)}
MEBI = 1024 * 1024 * 1000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max(cpu*50%, 50m)", 300),
        ("min(cpu, 50m)", 50),
        ("max(40m, 20)", 20_000),
        ("cpu - 100m - 100m", 400),
        ("cpu / 2 * 3", 900),
        ("2 + 3 * 4", 14_000),
        ("(2 + 3) * 4", 20_000),
        ("--1", 1000),
        ("-(-cpu)", 600),
        (".5 + 1e1", 10_500),
        ("1Ki", 1024_000),
        ("CPU", 600),
        ("0.0005", 0),
        (" cpu ", 600),
    ],
)
def test_values(text: str, value: int) -> None:
    assert evaluate(text, CPU) == value


@pytest.mark.parametrize("text", ["cpu*1", "cpu/2", "cpu*1e308", "cpu/1e-320", "-cpu", "max(cpu*2, 1)"])
def test_amounts_beyond_all_bounds(text: str) -> None:
    """What a pod asks for is checked only after it has its sidecars."""
    with pytest.raises(ExpressionError):
        evaluate(text, {"cpu": Milli(10**400)})


def test_memory() -> None:
    assert evaluate("max(memory*20% + 100Mi, 200Mi)", {"memory": Milli(1000 * MEBI)}) == 300 * MEBI


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "it is empty"),
        ("cpu*cpu", "two quantities"),
        ("cpu/50m", "divided by a quantity"),
        ("cpu/0", "divided by 0"),
        ("cpu - 1", "negative"),
        ("memory", "there is no variable memory here: use cpu"),
        ("sum(1, 2)", "there is no function sum"),
        ("max(1)", "is missing"),
        ("max(1, 2, 3)", "is missing"),
        ("5..5", "stands where nothing can"),
        ("5%%", "nobody can read"),
        ("5Ei", "no unit Ei"),
        ("cpu +", "it ends too early"),
        ("1e999", "too large"),
        ("9P*9999", "too large"),
        ("__import__('os')", "nobody can read"),
        ("cpu.real", "nobody can read"),
        ("(" * (DEEPEST + 1) + "1" + ")" * (DEEPEST + 1), "nested deeper"),
        ("1" * (LONGEST + 1), "longer than"),
    ],
)
def test_what_has_no_value(text: str, complaint: str) -> None:
    with pytest.raises(ExpressionError, match=complaint):
        evaluate(text, CPU)


@story_settings(300)
@given(st.text(alphabet="cpu0123456789.%+-*/(),mKi eMa xn", max_size=80))
def test_no_text_does_anything_but_have_a_value_or_none(text: str) -> None:
    with contextlib.suppress(ExpressionError):
        assert evaluate(text, CPU) >= 0


RUNAWAY = ("^(a{1,32}){1,32}$", "^(a|aa)+$", "^([a-z]{1,20}-?){1,9}$", "^(aa?)+$", "^(a?){30}a{30}$", "(ab|cd)*")


ACCEPTED = {
    ".*": True,
    "^(main|app-.*)$": False,
    "a.*b.*c": False,
    "[a-z]+-[0-9]+": False,
    "(abc)?x{1,3}": False,
    "^(a|b)+$": True,
    "^(abc)*$": False,
}


def test_patterns_that_could_take_for_ever_are_refused() -> None:
    for text in ("(a+)+$", "(a*)*", "((ab)+c*)+", r"(a)\1", "(?=a)", "(", "a" * 600, *RUNAWAY):
        with pytest.raises(PatternError):
            compiled(text)
    # What is let in ends at once, on the longest name that there is.
    for text, is_found in ACCEPTED.items():
        assert (compiled(text).search("a" * 253) is not None) is is_found, text


def test_patterns_never_mean_something_else_than_in_re2() -> None:
    """SCS-28: what Python reads in another way is refused; a bracket within brackets is a bracket."""
    for text in ("[[:alpha:]]+", r"\pL+", r"a\z", "(?U)a+"):
        with pytest.raises(PatternError):
            compiled(text)
    assert compiled("^[a[]+$").search("a[")
