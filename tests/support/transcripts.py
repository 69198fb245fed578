"""Console blocks of documents: the commands in them, and what they say these print."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_VARYING = (
    (re.compile(r"sha256:[0-9a-f]{12,}"), "sha256:H"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "URL"),
    (re.compile(r"pid \d+"), "pid N"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "IP"),
    (re.compile(r"\b(\d+[dhms])+\b( \(x\d+ over (\d+[dhms])+\))?"), "AGE"),
    (re.compile(r"\s+"), " "),
)
REST = "..."
"""A line that stands for any number of lines."""


@dataclass(frozen=True)
class Step:
    command: str
    expected: tuple[str, ...]


def steps(document: Path) -> list[Step]:
    """The commands of all console blocks, in order."""
    found: list[Step] = []
    for block in re.findall(r"^```console\n(.*?)^```", document.read_text(), re.MULTILINE | re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *expected = part.rstrip("\n").split("\n")
            found.append(Step(command, tuple(expected)))
    return found


def normal(text: str) -> list[str]:
    """Lines without what differs from run to run."""
    lines = []
    for line in text.splitlines():
        for pattern, word in _VARYING:
            line = pattern.sub(word, line)
        if line.strip():
            lines.append(line.strip())
    return lines


def matches(expected: tuple[str, ...], output: str) -> bool:
    """Whether the output is as the document shows it."""
    wanted = normal("\n".join(expected))
    pattern = "".join(r"(?:.*\n)*?" if line == REST else re.escape(line) + "\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in normal(output))) is not None
