"""Completion indexes of Indexed Jobs: the text form of the status, and the index that a pod stands for (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from kruise.api.native.pod import Pod

INDEX = "batch.kubernetes.io/job-completion-index"
"""Label and annotation of the pods of an Indexed Job."""
ENVIRONMENT_NAME = "JOB_COMPLETION_INDEX"


def parse(text: str, completions: int) -> set[int]:
    """`0-2,4` as numbers; what is beyond the completions, or no number at all, does not count."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            continue
        found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def to_text(indexes: Iterable[int]) -> str:
    """Numbers as intervals: runs of two are listed, longer ones joined."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(indexes), None]:
        if index is not None and run and index == run[-1] + 1:
            run.append(index)
            continue
        if run:
            parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}")
        run = [index] if index is not None else []
    return ",".join(parts)


def index_of(pod: Pod, completions: int) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() and int(text) < completions else None


def first_missing(taken: set[int], count: int, completions: int) -> list[int]:
    found: list[int] = []
    candidate = 0
    while len(found) < count and candidate < completions:
        if candidate not in taken:
            found.append(candidate)
        candidate += 1
    return found
