"""A command line in the style of Go programs, from a table.

The manager takes over the flags of the system it replaces, so that existing manifests start it unchanged: `--flag=x`,
`--flag x` and `-flag=x` mean the same, `--switch` alone means true, and `--switch=false` is possible.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kruise.machinery.times import parse_go_duration

T = TypeVar("T")


class FlagError(ValueError):
    """The command line cannot be understood; the text names the flag and the remedy."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    parse: Callable[[str], Any]
    default: Any
    meaning: str
    without_effect: str = ""
    """Why the flag changes nothing here; it is accepted all the same."""

    @property
    def is_switch(self) -> bool:
        return self.parse is boolean


@dataclasses.dataclass(frozen=True, slots=True)
class FeatureFlag(Generic[T]):
    """A flag that a feature declares, and reads from its settings. The type is that of its values."""

    name: str
    flag: Flag

    @property
    def default(self) -> T:
        value: T = self.flag.default
        return value


def boolean(text: str) -> bool:
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError("not a boolean, use true or false")


def whole(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError("not a whole number") from None


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError("not a number") from None
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


def positive(text: str) -> int:
    value = whole(text)
    if value < 1:
        raise ValueError("must be at least 1")
    return value


def duration(text: str) -> float:
    """Seconds of a Go duration such as `15s` or `1m30s`."""
    return parse_go_duration(text)


def address(text: str) -> str:
    """`host:port`, `:port`, or `0` to switch the endpoint off."""
    if text in ("", "0"):
        return ""
    host, colon, port = text.rpartition(":")
    is_host = ":" not in host or host.startswith("[")
    if not colon or not port.isdigit() or int(port) > 65535 or not is_host:
        raise ValueError("not an address: write host:port or :port")
    return text


def text(value: str) -> str:
    return value


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"not one of {', '.join(choices)}")
        return value

    return parse


@dataclasses.dataclass(frozen=True, slots=True)
class Parsed:
    values: Mapping[str, Any]
    """Every flag of the table, given or default."""
    given: frozenset[str]
    rest: tuple[str, ...] = ()


def parse_flags(arguments: Sequence[str], table: Mapping[str, Flag]) -> Parsed:
    values = {name: flag.default for name, flag in table.items()}
    given: set[str] = set()
    queue = list(arguments)
    while queue:
        argument = queue.pop(0)
        if argument == "--":
            return Parsed(values, frozenset(given), tuple(queue))
        if not argument.startswith("-") or argument == "-":
            raise FlagError(f"unexpected argument {argument!r}: this command takes only flags")
        name, equals, value = argument.lstrip("-").partition("=")
        flag = table.get(name)
        if flag is None:
            raise FlagError(f"unknown flag --{name}{_suggestion(name, table)}")
        if not equals:
            if flag.is_switch:
                value = "true"
            elif queue:
                value = queue.pop(0)
            else:
                raise FlagError(f"flag --{name} needs a value: {flag.meaning}")
        values[name] = parse_value(name, flag, value)
        given.add(name)
    return Parsed(values, frozenset(given))


def parse_value(name: str, flag: Flag, value: str) -> Any:
    try:
        return flag.parse(value)
    except ValueError as error:
        raise FlagError(f"flag --{name}={value}: {error}") from error


def _suggestion(name: str, table: Mapping[str, Flag]) -> str:
    near = difflib.get_close_matches(name, table, n=1)
    return f"; did you mean --{near[0]}?" if near else "; see --help"


def usage(table: Mapping[str, Flag]) -> str:
    """One line a flag, for `--help`."""
    lines = []
    for name, flag in sorted(table.items()):
        default = "" if flag.default in ("", None) else f" (default {_shown(flag)})"
        note = f" [no effect: {flag.without_effect}]" if flag.without_effect else ""
        lines.append(f"  --{name}\n        {flag.meaning}{default}{note}")
    return "\n".join(lines)


def _shown(flag: Flag) -> str:
    if flag.is_switch:
        return str(flag.default).lower()
    if flag.parse is duration:
        return f"{flag.default:g}s"
    return str(flag.default)
