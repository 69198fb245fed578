"""Answers that are kept with the object they are about.

Passes follow each other closely while thousands of pods stay as they are. What a pure function told of an object that
cannot change need not be worked out again; the answer goes when the object goes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def once_per_object(function: Callable[[T], R]) -> Callable[[T], R]:
    """The function, asked once for each object.

    It depends on nothing but the object, whose class has room for answers (`dict=True`). An answer that held the object
    would keep both alive.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @functools.wraps(function)
    def remembered(obj: T) -> R:
        answers = obj.__dict__
        try:
            answer: R = answers[name]
        except KeyError:
            answer = answers[name] = function(obj)
        return answer

    return remembered
