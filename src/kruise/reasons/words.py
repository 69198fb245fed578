"""The answer for people: pods with the same causes in one paragraph, the chain below it, and what to do at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kruise.machinery.ages import age
from kruise.machinery.causes import Act
from kruise.machinery.codec import Struct
from kruise.machinery.wording import listed, plural
from kruise.reasons.links import OBJECT, Answer, Link, PodPlace, Source

GROUPS = 8
"""How many paragraphs are printed."""
_BELOW = 3
"""How many different causes are printed of the pods that a link leads to."""
_DEEPEST = 4

_HEADS = {
    Act.SOMEBODY: ("is stuck", "are stuck"),
    Act.NOBODY: ("is on its way", "are on their way"),
    Act.INTENDED: ("stays where it is, as asked for", "stay where they are, as asked for"),
}


class Group(Struct):
    """Pods with the same links; the workload itself is a group of its own."""

    pods: tuple[str, ...]
    links: tuple[Link, ...]
    act: Act


def groups(answer: Answer) -> list[Group]:
    """What somebody must act upon first, then the larger ones. Pods that only stand at the end of others' chains are
    printed there."""
    found = _grouped(answer, answer.waiting)
    beginnings = _beginnings(answer, found)
    acts = list(Act)
    chosen = [group for group in found if group.pods[0] in beginnings]
    return sorted(chosen, key=lambda group: (group.pods[0] != OBJECT, acts.index(group.act), -len(group.pods)))


def _grouped(answer: Answer, names: Iterable[str]) -> list[Group]:
    by_links: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name in names:
        waiting = answer.waiting.get(name)
        if waiting is not None:
            key = (("object" if name == OBJECT else "pod", ""), *(link.group for link in waiting.links))
            by_links.setdefault(key, []).append(name)
    return [
        Group(pods=tuple(members), links=answer.waiting[members[0]].links, act=answer.act_of(members[0]))
        for members in by_links.values()
    ]


def _beginnings(answer: Answer, found: Sequence[Group]) -> set[str]:
    """The first names of groups that nobody else leads to; of groups that lead to each other, the first."""
    group_of = {name: group.pods[0] for group in found for name in group.pods}
    further = {
        group.pods[0]: {group_of[name] for link in group.links for name in link.leads_to if name in group_of}
        for group in found
    }
    led_to = {name for first, names in further.items() for name in names if name != first}
    beginnings = {OBJECT} & set(further) | (set(further) - led_to)
    reached: set[str] = set()
    for first in [*sorted(beginnings), *sorted(further)]:
        if first not in reached and first not in beginnings:
            beginnings.add(first)
        left = [first]
        while left:
            current = left.pop()
            if current not in reached:
                reached.add(current)
                left += further[current]
    return beginnings


# A workload


def answer_lines(answer: Answer) -> list[str]:
    """The lines of `kruise why KIND/NAME`."""
    lines = [_head(answer), *_source(answer.source, answer)]
    shown = groups(answer)
    above: set[str] = set()
    if not shown:
        lines += ["", "nothing waits" if answer.standing else f"nothing waits: {_all_well(answer)}"]
    for group in shown[:GROUPS]:
        lines += ["", *_paragraph(answer, group, above)]
        above |= {OBJECT} & set(group.pods)
    if len(shown) > GROUPS:
        left = sum(len(group.pods) for group in shown[GROUPS:])
        lines += [
            "",
            f"and {plural(left, 'more pod')} with {plural(len(shown) - GROUPS, 'other cause')}: -o json tells them all",
        ]
    if answer.remarks:
        lines += ["", *(f"note: {remark.message}" for remark in answer.remarks)]
    return lines


def _available(answer: Answer) -> str:
    if answer.available > answer.wanted:
        return f"{answer.available} available, {answer.wanted} wanted"
    return f"{answer.available} of {answer.wanted} available"


def _head(answer: Answer) -> str:
    if answer.standing:
        return f"{_named(answer)}: {answer.standing}"
    at = f" at revision {answer.revision}" if answer.revision else " at the newest template"
    expected = f" ({answer.expected} should be)" if answer.expected != answer.wanted else ""
    return f"{_named(answer)}: {answer.updated} of {len(answer.pods)} pods{at}{expected}, {_available(answer)}"


def _all_well(answer: Answer) -> str:
    if answer.standing and not answer.pods:
        return answer.standing
    at = f"at revision {answer.revision}, " if answer.revision else ""
    return f"{len(answer.pods)} of {answer.wanted} pods {at}available"


def _source(source: Source, answer: Answer) -> Iterator[str]:
    when = f", {age(source.time, answer.now)} ago" if source.time is not None else ""
    yield f"from {source.words}{when}"
    if source.reason:
        yield f"the manager's journal was not asked: {source.reason}"


def _paragraph(answer: Answer, group: Group, above: set[str]) -> Iterator[str]:
    """`above` are names that have been explained already."""
    is_it, are_they = _HEADS[group.act]
    if group.act is Act.NOBODY and (group.pods[0] == OBJECT or answer.hidden_manager):
        is_it, are_they = "waits", "wait"
    if group.pods[0] == OBJECT:
        yield f"{answer.target} {is_it}"
    elif len(group.pods) == 1:
        yield f"pod {group.pods[0]} {is_it}"
    else:
        yield f"{len(group.pods)} pods {are_they}: {listed(group.pods)}"
    lines = list(_chain(answer, group.links, "  ", set(group.pods), above))
    yield from lines
    if not any(line.lstrip().startswith("→") for line in lines):
        yield from (f"  → {_advice(end, answer.hidden_manager)}" for end in answer.ends(group.pods[0])[:_BELOW])


def _chain(
    answer: Answer, links: Sequence[Link], indent: str, seen: set[str], above: set[str], depth: int = 1
) -> Iterator[str]:
    is_stuck = any(end.act is Act.SOMEBODY for link in links for end in answer.ends_of(link, set()))
    for link in links:
        yield f"{indent}{link.message} [{link.code}]"
        further = [name for name in link.leads_to if name in answer.waiting and name not in seen]
        if further and depth < _DEEPEST:
            yield from _below(answer, further, indent, seen, above, depth)
        elif not link.leads_to or not any(name in answer.waiting for name in link.leads_to):
            [end] = answer.ends_of(link, set())
            # Where somebody has to act, nothing of it goes on by itself.
            if end.act is not Act.NOBODY or not is_stuck:
                yield f"{indent}→ {_advice(end, answer.hidden_manager)}"


def _below(
    answer: Answer, names: Sequence[str], indent: str, seen: set[str], above: set[str], depth: int
) -> Iterator[str]:
    found = _grouped(answer, names)
    for group in found[:_BELOW]:
        if group.pods[0] == OBJECT and OBJECT in above:
            yield f"{indent}└ {answer.target}: see above"
            continue
        who = answer.target if group.pods[0] == OBJECT else listed(group.pods)
        yield f"{indent}└ {who}:"
        yield from _chain(answer, group.links, f"{indent}    ", seen | set(group.pods), above, depth + 1)
    if len(found) > _BELOW:
        left = sum(len(group.pods) for group in found[_BELOW:])
        yield f"{indent}└ and {plural(left, 'more pod')} with other causes"


def _advice(link: Link, hidden_manager: str = "") -> str:
    if link.act is Act.NOBODY:
        return link.remedy or hidden_manager or "it goes on by itself"
    return link.remedy or "nobody can say what to do; the message is all that is known"


# A pod


def pod_lines(answer: Answer, pod: str) -> list[str]:
    """The lines of `kruise why pod/NAME` for a pod of a workload."""
    place = answer.pods.get(pod)
    lines = [f"pod {pod} of {_named(answer)}: {_where(answer, place)}"]
    lines += _source(answer.source, answer)
    if pod not in answer.waiting:
        return [*lines, "", f"pod {pod} is where it should be"]
    [group] = _grouped(answer, [pod])
    return [*lines, "", *_paragraph(answer, group, set())]


def _where(answer: Answer, place: PodPlace | None) -> str:
    if place is None:
        return "it does not count any more"
    at = f"revision {place.revision}" if place.revision else "revision unknown"
    node = f"on {place.node}" if place.node else "on no node"
    return f"{at}, {'available' if place.is_available else 'not available'}, {node}"


def lone_pod_lines(pod: str, namespace: str, links: Sequence[Link]) -> list[str]:
    """The same for a pod that belongs to nobody known."""
    head = f"pod {pod} in namespace {namespace}: no workload that is known here controls it"
    if not links:
        return [head, "", f"nothing waits: pod {pod} is available"]
    lines = [head, "", f"pod {pod} {_HEADS[links[0].act][0]}"]
    for link in links:
        lines += [f"  {link.message} [{link.code}]", f"  → {_advice(link)}"]
    return lines


def stored_lines(target: str, namespace: str, link: Link) -> list[str]:
    """The same for an object that the cluster keeps, and nobody acts on."""
    where = f" in namespace {namespace}" if namespace else ""
    head = f"{target}{where}: it is stored, and nobody acts on it"
    return [head, "", f"{target} {_HEADS[link.act][0]}", f"  {link.message} [{link.code}]", f"  → {_advice(link)}"]


def in_short(answer: Answer) -> list[tuple[str, str]]:
    """Name and reason of everything that waits, one line each: for tables."""
    shown = []
    for name, waiting in answer.waiting.items():
        ends = [link.message for link in answer.ends(name) if link not in waiting.links]
        texts = [link.message for link in waiting.links] + ends[:1]
        shown.append((name or answer.target, " ← ".join(dict.fromkeys(texts))))
    return shown


def _named(answer: Answer) -> str:
    where = f" in namespace {answer.namespace}" if answer.namespace else ""
    return f"{answer.kind}/{answer.name}{where}"
