"""Regular expressions of users, without those that can take for ever.

They are searched in names while a pod is made, so one that tries every way to split a name again and again would hold
up everybody. RE2, which reads them elsewhere, has neither back references nor look-around; nor have we.
"""

from __future__ import annotations

import functools
import importlib
import re
import warnings
from typing import Any

constants: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")

LONGEST = 512
_REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)
_FOREIGN = (constants.GROUPREF, constants.GROUPREF_EXISTS, constants.ASSERT, constants.ASSERT_NOT)


class PatternError(ValueError):
    """A pattern that cannot be used."""


@functools.lru_cache(maxsize=1024)
def compiled(text: str) -> re.Pattern[str]:
    """Raises PatternError."""
    if len(text) > LONGEST:
        raise PatternError(f"it is longer than {LONGEST} characters")
    if "[:" in text:
        raise PatternError("classes such as [[:alpha:]] are not supported: list the characters, such as [a-z]")
    try:
        with warnings.catch_warnings():
            # A bracket within brackets is a bracket, as in RE2. Python only says that it may mean more one day.
            warnings.simplefilter("ignore", FutureWarning)
            _check(parser.parse(text), repeated=False)
            return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"it is no regular expression: {error}") from error


def _check(part: Any, *, repeated: bool) -> None:
    """What is repeated has one length: else there are ever more ways to split a name, and all of them are tried."""
    for operator, argument in part:
        if operator in _FOREIGN:
            raise PatternError("back references and look-around are not supported")
        if repeated and operator in _REPEATS:
            raise PatternError(
                "something repeated or optional is repeated as a whole: say it with one repetition, such as [a-z-]+ "
                "for ([a-z]+-?)+"
            )
        if repeated and operator is constants.BRANCH:
            raise PatternError(
                "a choice of more than single characters is repeated: say it with one set of characters, such as "
                "[a-z]+ for (ab|cd)+, or with several expressions"
            )
        again = repeated or (operator in _REPEATS and argument[1] > 1)
        for inner in _parts(argument):
            _check(inner, repeated=again)


def _parts(argument: Any) -> list[Any]:
    if isinstance(argument, parser.SubPattern):
        return [argument]
    if isinstance(argument, (list, tuple)):
        return [found for item in argument for found in _parts(item)]
    return []
