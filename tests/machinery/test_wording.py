"""Texts that stay short."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.wording import listed, plural, shortened, without_middle


@pytest.mark.parametrize(
    ("names", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c", "d"], "a, b and 2 more")]
)
def test_the_first_names_and_how_many_more(names: list[str], text: str) -> None:
    assert listed(names, 2) == text


@given(st.text(max_size=40), st.integers(3, 40))
def test_a_text_is_never_longer_than_allowed_and_short_ones_stay(text: str, longest: int) -> None:
    short = shortened(text, longest)
    assert len(short) <= longest
    assert short == text or (len(text) > longest and short == f"{text[: longest - 3]}...")


@given(st.text(max_size=40), st.integers(6, 40))
def test_a_chain_of_errors_keeps_both_ends(text: str, longest: int) -> None:
    short = without_middle(text, longest)
    assert len(short) <= longest
    if short != text:
        head, tail = short[: (longest - 3) // 3], short[-(longest - 3 - (longest - 3) // 3) :]
        assert (len(text) > longest, text.startswith(head), text.endswith(tail)) == (True, True, True)


def test_one_is_not_many() -> None:
    assert [plural(count, "pod") for count in (0, 1, 2)] == ["0 pods", "1 pod", "2 pods"]
    assert [plural(count, "ready pod", "is", "are") for count in (1, 2)] == ["1 ready pod is", "2 ready pods are"]
