"""What is different between two plans, in words that a person can act on. Pure.

Plans come as `plan_to_data` gives them. Whatever differs shows in at least one difference: what is not about an action,
something held, a wake or the memo is told by its place in the plan.
"""

from __future__ import annotations

import dataclasses
import enum
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kruise.machinery.codec import canonical

Json = Mapping[str, Any]
Compare = Callable[[Any, Any], Iterator[str]]

_SHOWN_PLACES = 6
_LONGEST_VALUE = 120


class Change(enum.StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


_SIGNS = {Change.ADDED: "+", Change.REMOVED: "-", Change.CHANGED: "~"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    change: Change
    part: str
    """action, held, wake, memo, phase or plan."""
    what: str
    before: Any = None
    after: Any = None
    details: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return (f"{_SIGNS[self.change]} {self.part} {self.what}", *(f"    {line}" for line in self.details))

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"change": self.change.value, "part": self.part, "what": self.what}
        if self.change is not Change.ADDED:
            data["before"] = self.before
        if self.change is not Change.REMOVED:
            data["after"] = self.after
        return data


def differences(before: Json, after: Json) -> tuple[Difference, ...]:
    """Empty for plans that are equal, and only for those."""
    if canonical(before) == canonical(after):
        return ()
    try:
        return _by_parts(before, after) or (_whole(before, after),)
    except (KeyError, TypeError, AttributeError, ValueError):
        # One of them is of a version that wrote plans in another shape, or was edited.
        return (_whole(before, after),)


def _by_parts(before: Json, after: Json) -> tuple[Difference, ...]:
    found = (
        *_compared("action", _actions(before), _actions(after), _value_details),
        *_compared("held", _held(before), _held(after), _held_details),
        *_compared("wake", _wakes(before), _wakes(after), _value_details),
        *_compared("memo", _memo(before), _memo(after), _value_details),
    )
    # Order and settings of phases: where actions come or go they differ anyhow, and that says nothing new.
    return found or tuple(_compared("phase", _phases(before), _phases(after), _value_details))


def _whole(before: Json, after: Json) -> Difference:
    details = tuple(_value_details(before, after))
    return Difference(
        change=Change.CHANGED, part="plan", what="as a whole", before=before, after=after, details=details
    )


def _compared(part: str, before: Mapping[Any, Any], after: Mapping[Any, Any], compare: Compare) -> Iterator[Difference]:
    for name, old in before.items():
        if name not in after:
            yield Difference(change=Change.REMOVED, part=part, what=_named(part, name, old), before=old)
        elif canonical(old) != canonical(after[name]):
            new = after[name]
            details = tuple(compare(old, new))
            what = _named(part, name, None)
            yield Difference(change=Change.CHANGED, part=part, what=what, before=old, after=new, details=details)
    for name, new in after.items():
        if name not in before:
            yield Difference(change=Change.ADDED, part=part, what=_named(part, name, new), after=new)


def _named(part: str, name: tuple[Any, ...], value: Any) -> str:
    text = str(name[0])
    if name[-1]:
        text += f" (number {name[-1] + 1})"
    if value is None:
        return text
    if part == "action":
        return f"{text}: {value['reason']}"
    if part == "held":
        return f"{text}: {_codes(value)}"
    return text


def _numbered(items: Iterable[tuple[Hashable, Any]]) -> dict[Any, Any]:
    """By name, and where a name comes again, by how often it came."""
    seen: Counter[Hashable] = Counter()
    found: dict[Any, Any] = {}
    for name, value in items:
        found[name, seen[name]] = value
        seen[name] += 1
    return found


def _actions(plan: Json) -> dict[Any, Any]:
    return _numbered(
        (f"{phase['name']}: {action_text(action)}", action)
        for phase in plan.get("phases") or ()
        for chain in phase.get("chains") or ()
        for action in chain
    )


def action_text(action: Json) -> str:
    """`patch pods/status default/web-abcde`."""
    resource = _resource(action["target"])
    below = action.get("subresource")
    return f"{action['verb']} {f'{resource}/{below}' if below else resource} {_object(action['target'])}"


def target_text(target: Json) -> str:
    return f"{_resource(target)} {_object(target)}"


def _resource(target: Json) -> str:
    return f"{target['plural']}.{target['group']}" if target["group"] else str(target["plural"])


def _object(target: Json) -> str:
    return f"{target['namespace']}/{target['name']}" if target["namespace"] else str(target["name"])


def _held(plan: Json) -> dict[Any, Any]:
    return _numbered((target_text(held["target"]), held) for held in plan.get("held") or ())


def _wakes(plan: Json) -> dict[Any, Any]:
    return _numbered((f"after {wake['after']:g} s: {wake['reason']}", wake) for wake in plan.get("wakes") or ())


def _memo(plan: Json) -> dict[Any, Any]:
    return {(name, 0): value for name, value in (plan.get("memo") or {}).items()}


def _phases(plan: Json) -> dict[Any, Any]:
    return _numbered((str(phase["name"]), phase) for phase in plan.get("phases") or ())


def _codes(held: Json) -> str:
    return ", ".join(str(cause["code"]) for cause in held["causes"]) or "no cause"


def _held_details(before: Json, after: Json) -> Iterator[str]:
    if _codes(before) != _codes(after):
        yield f"{_codes(before)} -> {_codes(after)}"
    else:
        yield from _value_details(before["causes"], after["causes"])


def _value_details(before: Any, after: Any) -> Iterator[str]:
    places = list(_places(before, after, ""))
    for place, old, new in places[:_SHOWN_PLACES]:
        yield f"{place or 'value'}: {_shown(old)} -> {_shown(new)}"
    if len(places) > _SHOWN_PLACES:
        yield f"and {len(places) - _SHOWN_PLACES} more places"


_ABSENT = object()


def _places(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Where two values differ, as deep as they are alike."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            below = f"{path}.{name}" if path else str(name)
            yield from _places(before.get(name, _ABSENT), after.get(name, _ABSENT), below)
    elif _is_list(before) and _is_list(after) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _places(old, new, f"{path}[{index}]")
    elif before is _ABSENT or after is _ABSENT or canonical(before) != canonical(after):
        yield path, before, after


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "(not there)"
    text = canonical(value).decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
