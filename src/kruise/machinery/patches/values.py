"""Equality of JSON values.

Python holds that `True == 1 == 1.0`. The API server does not: a patch from `1` to `true` is a change.
"""

from __future__ import annotations

from typing import Any


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal, types included."""
    if left is right:
        return True
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, dict):
        return all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(same, left, right))
    return True


def without_nulls(value: Any) -> Any:
    """The value with all null members of its objects left out, at any depth. Null elements of lists stay."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
