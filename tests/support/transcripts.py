"""Console blocks of documents: the commands in them, what they say these print, and a shell to run them in.

A document may hold parts for one kind of cluster: a heading that ends in `(... only)` says so, up to the next heading.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ID = "[bcdfghjklmnpqrstvwxz2456789]{5}"
_VARYING: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"sha256:[0-9a-f]{12,}"), "sha256:H"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "H"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UID"),
    # Runs are named after their second.
    (re.compile(r"(?<=[a-z]-)1\d{9}\b"), "moment"),
    (re.compile(rf"(?<=[a-z]-){_ID}\b"), "ID"),
    (re.compile(rf"(?<=instance-id=){_ID}\b"), "ID"),
    (re.compile(r"(?<=, on )node-\d+\b"), "NODE"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "DIGEST"),
    (re.compile(r"(?<=TIME )( +)[0-9a-f]{8}\b"), "DIGEST"),
    (re.compile(r"(?<=decision )[0-9a-f]{14}\b|\b[0-9a-f]{14}$"), "PASS"),
    # Spelt as the daemon's event is.
    (re.compile(r"(?<=ecalpsedTime )\S+"), "DURATION"),
    (re.compile(r"\b\d+\.\d+ms\b"), "MS"),
    # Whether an answer was waited for is a matter of milliseconds.
    (re.compile(r"\b(\d+) done, (\d+) pending\b"), lambda found: f"{int(found[1]) + int(found[2])} done"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "URL"),
    (re.compile(r"pid \d+"), "pid N"),
    # Only newer kubectls say where it was.
    (re.compile(r"(?<= deleted) from [a-z0-9-]+ namespace$"), ""),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "IP"),
    (re.compile(r"\b(\d+[dhms])+\b( \(x\d+ over (\d+[dhms])+\))?"), "AGE"),
    # Behind the number of restarts, where the kubelet still knows how the container before ended.
    (re.compile(r"(?<=\d) \(AGE ago\)"), ""),
    (re.compile(r"\s+"), " "),
)
# Rows that tell of a pod or of an event come in an order that depends on random names or on the second.
_MOVABLE = re.compile(r"-ID\b|^(AGE )?(Normal|Warning) ")
REST = "..."
"""A line that stands for any number of lines."""


@dataclass(frozen=True)
class Step:
    command: str
    expected: tuple[str, ...]
    section: str = ""


def steps(document: Path) -> list[Step]:
    """The commands of all console blocks, in order. A backslash at the end of a line continues a command."""
    found: list[Step] = []
    section = ""
    text = document.read_text()
    for part in re.finditer(r"^```(\w*)\n(.*?)^```|^#+ ([^\n]*)$", text, re.MULTILINE | re.DOTALL):
        language, block, heading = part.groups()
        if heading is not None:
            section = heading
        elif language == "console":
            found += (_step(each, section) for each in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return found


def _step(text: str, section: str) -> Step:
    command, *lines = text.rstrip("\n").split("\n")
    while command.endswith("\\"):
        command = f"{command[:-1].rstrip()} {lines.pop(0).strip()}"
    return Step(command, tuple(lines), section)


def normal(text: str) -> list[str]:
    """Lines without what differs from run to run, and rows that may change places in one order."""
    lines = []
    for line in text.splitlines():
        for pattern, word in _VARYING:
            line = pattern.sub(word, line)
        if line.strip():
            lines.append(line.strip())
    return _in_one_order(lines)


def _in_one_order(lines: list[str]) -> list[str]:
    ordered: list[str] = []
    rows: list[str] = []
    for line in lines:
        if _MOVABLE.search(line):
            rows.append(line)
            continue
        ordered += [*sorted(rows), line]
        rows.clear()
    return ordered + sorted(rows)


def matches(expected: tuple[str, ...], output: str) -> bool:
    """Whether the output is as the document shows it."""
    wanted = normal("\n".join(expected))
    pattern = "".join(r"(?:.*\n)*?" if line == REST else re.escape(line) + "\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in normal(output))) is not None


class Shell:
    """One bash that stays, so that variables live on from command to command."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[int, str]:
        [done] = self.paste([command])
        return done

    def paste(self, commands: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Hand over all commands at once, as somebody who pastes a page; yields the exit code and output of each."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write("".join(f'{command}\necho "[exit $?]"\n' for command in commands))
        stdin.flush()
        for _ in commands:
            lines: list[str] = []
            while not (line := stdout.readline()).startswith("[exit "):
                assert line, "the shell ended"
                lines.append(line)
            yield int(line.removeprefix("[exit ").rstrip("]\n")), "".join(lines)

    def close(self) -> None:
        """End it, and what it has left in the background."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


def walk(document: Path, shell: Shell, *, leave_out: Collection[str] = ()) -> int:
    """Paste a document: all its commands at once. Each must succeed and print what is shown, at the first try.

    What has to be waited for, the document waits for: nobody who pastes it pauses in between. Sections whose headings
    end with one of `leave_out` are not for this cluster. Returns how many commands there were.
    """
    chosen = [step for step in steps(document) if not step.section.endswith(tuple(leave_out))]
    for step, (code, output) in zip(chosen, shell.paste([step.command for step in chosen]), strict=True):
        told = f"{step.section}\n$ {step.command}\n{output}"
        assert code == 0, told
        shown = "\n".join(step.expected)
        assert not shown or matches(step.expected, output), f"{told}\nThe document shows:\n{shown}"
    return len(chosen)
