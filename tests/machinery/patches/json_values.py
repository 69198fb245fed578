"""JSON documents for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

names = st.sampled_from(["a", "b", "c", "name", "x/y", "m~n", "", "~1"])
scalars = st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "b"]), st.sampled_from([0.5, 1.0]))


def documents(*, nulls: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects that are small, nested and alike, so that pairs of them share parts."""
    leaves = st.one_of(st.none(), scalars) if nulls else scalars
    values = st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
        max_leaves=12,
    )
    return st.dictionaries(names, values, max_size=5)
