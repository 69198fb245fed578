"""The answer in one line: what a workload waits for in the end. For lists of workloads, and for whoever follows a
rollout."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.machinery.causes import Act
from kruise.machinery.wording import namespace_flag
from kruise.reasons.links import OBJECT, Answer, Link
from kruise.reasons.words import Group, groups

_STATES = {
    Act.SOMEBODY: "is stuck",
    Act.NOBODY: "is on its way",
    Act.INTENDED: "waits, as asked for",
}
_ACTS = tuple(Act)


def line_of(answer: Answer) -> str:
    """`cloneset/web is stuck: pod web-1: no node takes it: ... [unscheduled]`; empty where nothing waits."""
    told = _first(answer)
    if told is None:
        return ""
    group, end = told
    state, hidden = _STATES[group.act], ""
    if group.act is Act.NOBODY and answer.hidden_manager:
        state, hidden = "waits", f"; {answer.hidden_manager}"
    return f"{answer.target} {state}: {_holder(answer, group, end)}{end.message} [{end.code}]{hidden}"


def end_of(answer: Answer) -> Link | None:
    """The link that the line is about; None: nothing waits."""
    told = _first(answer)
    return told[1] if told is not None else None


def _first(answer: Answer) -> tuple[Group, Link] | None:
    """What asks most of anybody."""
    found = groups(answer)
    if not found:
        return None
    group = min(found, key=lambda one: _ACTS.index(one.act))
    return group, min(answer.ends(group.pods[0]), key=lambda link: _ACTS.index(link.act))


def _holder(answer: Answer, group: Group, end: Link) -> str:
    if end in group.links:
        held: tuple[str, ...] = group.pods
    else:
        held = tuple(name for name, waiting in answer.waiting.items() if end in waiting.links)
    if not held or OBJECT in held:
        return ""
    return f"pod {held[0]}: " if len(held) == 1 else f"{len(held)} pods: "


def list_lines(answers: Sequence[Answer], looked_at: int, namespace: str) -> list[str]:
    """The lines of `kruise why --all`. `answers` are those that wait, of so many that were looked at."""
    workloads = "1 workload" if looked_at == 1 else f"{looked_at} workloads"
    if not answers:
        return [f"nothing waits: {workloads} in namespace {namespace}"]
    flags = namespace_flag(namespace)
    return [
        *(line_of(answer) for answer in answers),
        "",
        f"{len(answers)} of {workloads} in namespace {namespace}; more about one: kruise why KIND/NAME{flags}",
    ]
