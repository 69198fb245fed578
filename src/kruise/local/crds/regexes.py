"""Patterns of schemas are written for Go's regular expressions; this reads them for Python's.

Both know the same core. Go has no look-around and no back references, its classes are ASCII, `$` means the very end,
and it has POSIX and Unicode classes.
"""

from __future__ import annotations

import functools
import re

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
# Letters roughly: Python has no class for them.
_UNICODE = {"L": "A-Za-z\u00aa-\uffdc", "Lu": "A-ZÀ-ÖØ-Þ", "Ll": "a-zß-öø-ÿ", "N": "0-9", "Nd": "0-9"}
_UNSUPPORTED = ("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(", "(?#")


class PatternError(ValueError):
    """Go would not compile the pattern; the text is Go's as far as it can be told."""


@functools.lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern for `search`. Raises `PatternError`."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except re.error as error:
        raise PatternError(f"error parsing regexp: {error.msg}: `{pattern}`") from error


def _translated(pattern: str) -> str:
    out: list[str] = []
    position, in_class = 0, False
    while position < len(pattern):
        rest = pattern[position:]
        if rest[0] == "\\" and len(rest) > 1:
            text, used = _escape(rest, in_class)
            out.append(text)
            position += used
            continue
        posix = re.match(r"\[:(\^?)(\w+):\]", rest) if in_class else None
        if posix is not None and not posix[1] and posix[2] in _POSIX:
            out.append(_POSIX[posix[2]])
            position += posix.end()
            continue
        if in_class:
            if rest[0] == "]":
                in_class = False
            out.append("\\[" if rest[0] == "[" else rest[0])
        elif rest[0] == "[":
            in_class = True
            start = re.match(r"\[\^?\]?", rest)
            assert start is not None
            out.append(start[0].replace("]", "\\]"))
            position += start.end()
            continue
        elif rest[0] == "$":
            out.append("\\Z")
        else:
            for syntax in _UNSUPPORTED:
                if rest.startswith(syntax):
                    raise PatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{syntax}`")
            out.append(rest[0])
        position += 1
    return "".join(out)


def _escape(rest: str, in_class: bool) -> tuple[str, int]:
    """The translation of what begins with a backslash, and how much of the pattern it is."""
    char = rest[1]
    if char == "z":
        return "\\Z", 2
    if char.isdigit() and char != "0" and not in_class:
        raise PatternError(f"error parsing regexp: invalid escape sequence: `\\{char}`")
    if char in "pP":
        found = re.match(r"\\[pP](?:\{(\^?)(\w+)\}|(\w))", rest)
        name = (found[2] or found[3]) if found is not None else ""
        if found is None or name not in _UNICODE:
            raise PatternError(f"error parsing regexp: invalid character class range: `{rest[:3]}`")
        content = _UNICODE[name]
        return (content if in_class else f"[{content}]"), found.end()
    if char == "Q":
        end = rest.find("\\E")
        literal = rest[2:] if end < 0 else rest[2:end]
        return re.escape(literal), len(rest) if end < 0 else end + 2
    return rest[:2], 2
