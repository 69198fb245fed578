"""What can go wrong with a patch, apart from the network."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class PatchError(ValueError):
    """The patch is malformed or does not fit the document."""


class TestFailedError(PatchError):
    """A `test` operation of a JSON patch met another value: the document is not the one that the patch was made for."""

    __test__ = False  # the name begins with "Test", which test collectors take for a test class


def refuse_deep_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Documents come from anyone; one that is nested beyond the interpreter's stack is a bad patch, not a crash."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise PatchError("the document or the patch is nested too deeply") from None

    return run
