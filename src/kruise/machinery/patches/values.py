"""Equality of JSON values.

Python holds that `True == 1 == 1.0`. The API server does not: a patch from `1` to `true` is a change.
"""

from __future__ import annotations

from typing import Any


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal, types included."""
    return left is right or (bool(left == right) and _same_types(left, right))


def _same_types(left: Any, right: Any) -> bool:
    """Of values that Python holds for equal. Nothing but a text equals a text, and most values are texts: to pass over
    them matters, since every admission review that changes a pod compares the whole pod."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        for key, value in left.items():
            if type(value) is not str and not _same_types(value, right[key]):
                return False
    elif isinstance(left, list):
        return all(map(_same_types, left, right))
    return True


def without_nulls(value: Any) -> Any:
    """The value with all null members of its objects left out, at any depth. Null elements of lists stay."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
