"""Entries of the decision journal for people: a row of a table each, or one of them in full.

Entries are the data that a manager gives (`kruise.machinery.journal.Entry`). A manager of another version may say more
or less: what is missing is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.machinery.wording import table

Entry = Mapping[str, Any]

NOTHING = "-"
DIGEST_SHOWN = 8
_GOOD = frozenset({"done", "skipped", "deferred"})


def header(*, with_object: bool) -> tuple[str, ...]:
    return ("TIME", *(("OBJECT",) if with_object else ()), "DIGEST", "ACTIONS", "HELD", "OUTCOME", "TOOK", "ID")


def row(entry: Entry, *, kinds: Mapping[str, str], with_object: bool) -> tuple[str, ...]:
    """`kinds` tells by controller what its objects are called."""
    plan = entry.get("plan") or {}
    return (
        milliseconds(str(entry.get("time", ""))),
        *((object_text(entry, kinds),) if with_object else ()),
        str(entry.get("digest", ""))[:DIGEST_SHOWN] or NOTHING,
        _counted({_short(name): count for name, count in (plan.get("counts") or {}).items()}),
        _held(plan),
        outcome(entry),
        took(entry),
        str(entry.get("reconcile_id", "")),
    )


def lines(entries: Sequence[Entry], *, kinds: Mapping[str, str], with_object: bool) -> list[str]:
    return table(
        header(with_object=with_object), [row(entry, kinds=kinds, with_object=with_object) for entry in entries]
    )


def object_text(entry: Entry, kinds: Mapping[str, str]) -> str:
    key, controller = entry.get("key") or {}, str(entry.get("controller", ""))
    place = "/".join(part for part in (key.get("namespace", ""), key.get("name", "")) if part)
    return f"{kinds.get(controller, controller)} {place}"


def outcome(entry: Entry) -> str:
    if entry.get("error"):
        return f"error: {entry['error']}"
    text = ", ".join(f"{count} {result}" for result, count in (entry.get("outcomes") or {}).items())
    return text or NOTHING


def is_trouble(entry: Entry) -> bool:
    return bool(entry.get("error")) or any(result not in _GOOD for result in entry.get("outcomes") or {})


def milliseconds(time: str) -> str:
    """A time without its microseconds; always as long, so that columns stay in line."""
    whole, point, fraction = time.removesuffix("Z").partition(".")
    return f"{whole}.{(fraction if point else '')[:3].ljust(3, '0')}Z" if time else NOTHING


def took(entry: Entry) -> str:
    duration = float(entry.get("duration") or 0.0)
    return f"{duration * 1000:.1f}ms" if duration < 1.0 else f"{duration:.1f}s"


def _short(name: str) -> str:
    """Without the group: in a table the kind is enough."""
    verb, _, resource = name.partition(" ")
    plural, slash, below = resource.partition("/")
    return f"{verb} {plural.partition('.')[0]}{slash}{below}"


def _held(plan: Mapping[str, Any]) -> str:
    """By cause in one order, whichever pod happens to come first."""
    return _counted(dict(sorted((plan.get("heldBy") or {}).items())))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or NOTHING


def described(entry: Entry, *, kinds: Mapping[str, str]) -> list[str]:
    """One pass in full."""
    plan, conclusion = entry.get("plan") or {}, entry.get("conclusion") or {}
    counts, held_by = plan.get("counts") or {}, plan.get("heldBy") or {}
    actions, held = plan.get("actions") or (), plan.get("held") or ()
    found = [
        f"Decision:   {entry.get('reconcile_id', '')}",
        f"Object:     {object_text(entry, kinds)}",
        f"Controller: {entry.get('controller', '')}",
        f"Time:       {entry.get('time', '')}",
        f"Took:       {took(entry)}",
        f"Snapshot:   {entry.get('digest') or NOTHING}",
        f"Actions:    {_counted(counts)}",
        *(f"  {one['phase']}: {one['action']}: {one['reason']}" for one in actions),
        *_more(sum(counts.values()), len(actions)),
        f"Held:       {_held(plan)}",
    ]
    for one in held:
        found += [f"  {one['target']}: {cause}" for cause in one["causes"]]
    found += _more(sum(held_by.values()), len(held))
    found.append(f"Outcome:    {outcome(entry)}")
    found += [f"  {one['action']}: {one['result']}: {one['error']}" for one in entry.get("troubles") or ()]
    if conclusion.get("status"):
        found.append(f"Status:     written: {conclusion['status']}")
    if conclusion.get("events"):
        found += ["Events:", *(f"  {event}" for event in conclusion["events"])]
    wakes = [*(plan.get("wakes") or ()), *(conclusion.get("wakes") or ())]
    if wakes:
        found += ["Looks again:", *(f"  in {wake['after']:.3g} s: {wake['reason']}" for wake in wakes)]
    if conclusion.get("retry"):
        found.append(f"Tries again: {conclusion['retry']}")
    return found


def _more(total: int, shown: int) -> list[str]:
    return [f"  and {total - shown} more"] if total > shown else []
