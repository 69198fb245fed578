"""Recordings of the original at work: a Markdown file read into manifests, steps, log lines, objects and events.

The files are facts, kept as they were written down. Names are normalised in them: pods `pod-1`, `pod-2`, ... in the
order of creation, revision hashes `rev-1`, ..., times `<time>`, image ids `<imageID image>`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

_LINE = re.compile(r"\+(?P<at>[0-9.]+) (?P<text>.*)")
UPDATED = re.compile(
    r"Normal SuccessfulUpdatePodInPlace .* update pod (?P<pod>\S+) in-place\(revision (?P<revision>\S+)\)"
)
_BODY = re.compile(r"^(?P<title>.*?)(?: \((?P<form>merge|json)\): (?P<body>[\[{].*))?$")
_TOLD_APART = re.compile(r"^(?P<number>\d+)\. .*: `(?P<body>[\[{].*)`$", re.MULTILINE)
"""Recordings on real nodes have the bodies of patches in the list of steps, not in the log."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    code: int
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    number: int
    at: float
    title: str
    form: str
    """`merge` or `json` for a patch, empty for anything else."""
    body: Any
    refusal: Refusal | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    at: float
    step: int
    """The number of the step before it."""
    target: str
    """`Pod/pod-1`."""
    text: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    target: str
    type: str
    reason: str
    message: str
    count: int
    component: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    name: str
    environment: str
    """The first line: release, Kubernetes, feature gates."""
    revision_example: str
    """The name of the first revision as it really was."""
    manifests: tuple[Json, ...]
    steps: tuple[Step, ...]
    lines: tuple[Line, ...]
    objects: tuple[tuple[str, Json], ...]
    """Title and content."""
    events: tuple[EventRow, ...]
    left_out_at: int | None
    """After so many lines the start of the pods was left out."""
    gap_at: int | None
    """After so many lines some more were left out."""
    sparse: bool
    """Readiness was left out everywhere."""
    terse: bool
    """Of most updates only the event is told."""

    @property
    def nodes(self) -> list[str]:
        """The nodes that the pods were bound to, in the order of creation; empty: never bound."""
        added = [re.search(r"^ADDED node=(\S+)", line.text) for line in self.lines if line.target.startswith("Pod/")]
        return [found.group(1).removeprefix("None") for found in added if found]

    @property
    def gates(self) -> dict[str, bool]:
        """Those that are on beside the defaults."""
        named = re.search(r"feature gates ([\w, ]+) on|gates beside the default: ([\w, ]+)$", self.environment)
        return dict.fromkeys((named[1] or named[2]).split(", "), True) if named else {}

    @property
    def has_real_nodes(self) -> bool:
        return "real nodes" in self.environment

    @property
    def end(self) -> float:
        return self.lines[-1].at


def read(path: Path, gap: Sequence[str] = ()) -> Recording:
    """`gap`: steps and lines that stand where the log leaves some out, as the rest of the file proves them."""
    text = path.read_text(encoding="utf-8")
    if gap:
        text = re.sub(r"^… .*\n", "".join(f"{line}\n" for line in gap).replace("\\", r"\\"), text, flags=re.MULTILINE)
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    log = _log(sections["Log"])
    example = re.search(r"revision name `([^`]+)`", parts[0])
    return Recording(
        name=path.stem,
        environment=text.splitlines()[0],
        revision_example=example.group(1) if example else "",
        manifests=tuple(yaml.safe_load(block) for block in _blocks(sections["Manifest"])),
        steps=tuple(_with_bodies(log.steps, sections.get("Steps", ""))),
        lines=tuple(log.lines),
        objects=_objects(sections["Final objects"]),
        events=_events(sections["Events"]),
        left_out_at=log.left_out_at,
        gap_at=log.gap_at,
        sparse=log.sparse,
        terse=_is_terse(log.lines),
    )


@dataclasses.dataclass(slots=True)
class _Log:
    steps: list[Step] = dataclasses.field(default_factory=list)
    lines: list[Line] = dataclasses.field(default_factory=list)
    left_out_at: int | None = None
    gap_at: int | None = None
    sparse: bool = False


def _is_terse(lines: list[Line]) -> bool:
    told = {
        (line.target.removeprefix("Pod/"), revision)
        for line in lines
        for revision in re.findall(r'"controller-revision-hash":"([^"]+)"', line.text)
    }
    updates = [UPDATED.match(line.text) for line in lines if line.target == "Event"]
    return any((found["pod"], found["revision"]) not in told for found in updates if found)


def _blocks(section: str) -> list[str]:
    return re.findall(r"^```(?:yaml)?\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


def _log(section: str) -> _Log:
    log = _Log()
    for raw in _blocks(section)[0].splitlines():
        found = _LINE.match(raw)
        if found is None:
            if "pods starting up" in raw:
                log.left_out_at = len(log.lines)
            elif raw.startswith("…"):
                log.gap_at = len(log.lines)
            elif "left out" in raw:
                log.sparse = True
            continue
        at, text = float(found["at"]), found["text"]
        if text.startswith("#### "):
            log.steps.append(_step(len(log.steps) + 1, at, text.removeprefix("#### ")))
        elif text.lstrip().startswith("-> HTTP"):
            refused = re.match(r"-> HTTP (\d+) \w*: (.*)", text.strip())
            assert refused is not None, f"an answer that cannot be read: {raw}"
            refusal = Refusal(code=int(refused[1]), message=refused[2])
            log.steps[-1] = dataclasses.replace(log.steps[-1], refusal=refusal)
        elif not text.startswith(" "):  # what a command printed
            target, _, change = text.partition(" ")
            log.lines.append(Line(at=at, step=len(log.steps), target=target, text=change))
    return log


def _step(number: int, at: float, text: str) -> Step:
    found = _BODY.match(text)
    assert found is not None
    body = json.loads(found["body"]) if found["body"] else None
    return Step(number=number, at=at, title=found["title"], form=found["form"] or "", body=body)


def _with_bodies(steps: Sequence[Step], section: str) -> Iterator[Step]:
    bodies = {int(found["number"]): json.loads(found["body"]) for found in _TOLD_APART.finditer(section)}
    for step in steps:
        body = bodies.get(step.number)
        if step.body is None and body is not None:
            yield dataclasses.replace(step, body=body, form="json" if isinstance(body, list) else "merge")
        else:
            yield step


def _objects(section: str) -> tuple[tuple[str, Json], ...]:
    found = re.findall(r"^(\S[^\n]*):\n\n```yaml\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    return tuple((title, yaml.safe_load(block)) for title, block in found)


def _events(section: str) -> tuple[EventRow, ...]:
    rows: list[EventRow] = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 6 or cells[0] in ("Object", "type", "---", "none"):
            continue
        if cells[0] in ("Normal", "Warning"):  # on real nodes: type, reason, object, message, source, count / objects
            message, count = "|".join(cells[3:-2]).strip(), int(cells[-1].partition("/")[0])
            row = EventRow(
                target=cells[2], type=cells[0], reason=cells[1], message=message, count=count, component=cells[-2]
            )
            rows.append(row)
            continue
        count = int(cells[-2].rpartition("/")[2])
        message = "|".join(cells[3:-2]).strip()
        rows.append(
            EventRow(target=cells[0], type=cells[1], reason=cells[2], message=message, count=count, component=cells[-1])
        )
    return tuple(rows)
