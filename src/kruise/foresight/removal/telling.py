"""Drains and deletions in lines for people, and as data for programs. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.foresight.removal.deleting import Deletion, counted
from kruise.foresight.removal.draining import Drain, Gone, Staying
from kruise.machinery.wording import listed, plural

_NAMED = 5


def drain_lines(drain: Drain) -> list[str]:
    going = sum(len(wave) for wave in drain.waves)
    if drain.stuck:
        result = f"does not end: {plural(len(drain.stuck), 'pod', 'stays', 'stay')}"
    elif not going:
        result = "nothing to evict"
    else:
        result = f"ends after about {drain.seconds:.0f}s"
    lines = [f"Drain:       node/{drain.node}", f"Result:      {result}"]
    flags = "".join(f" {flag}" for flag in drain.flags)
    lines.append(f"Command:     kubectl drain {drain.node}{flags}")
    if going:
        lines += ["", *_table(drain.waves)]
    if drain.stuck:
        lines += ["", "Refused for ever, as things are:"]
        for stay in drain.stuck:
            lines += [f"  {_pod(stay)}: {stay.why}", f"  → {stay.remedy}"]
    if drain.untouched:
        lines += ["", "Stays on the node:"]
        lines += [f"  {_pod(stay)}: {stay.why}" for stay in drain.untouched]
    if drain.notes:
        lines += ["", "Notes:", *(f"  {note}" for note in drain.notes)]
    return lines


def _pod(stay: Staying) -> str:
    return f"{stay.namespace}/{stay.pod}"


def _table(waves: tuple[tuple[Gone, ...], ...]) -> list[str]:
    rows = [("WAVE", "AT", "POD", "OF", "GOES TO", "ASKS")]
    for number, wave in enumerate(waves, 1):
        for gone in wave:
            rows.append(
                (
                    str(number),
                    f"{gone.at:.0f}s",
                    f"{gone.namespace}/{gone.pod}",
                    gone.owner or "nobody",
                    gone.to or "nowhere",
                    ", ".join(gone.budgets) or "-",
                )
            )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def deletion_lines(deletion: Deletion) -> list[str]:
    if deletion.is_refused:
        result = "refused"
    elif deletion.goes:
        result = f"goes, with {counted(deletion.goes)}"
    else:
        result = "goes"
    where = f" in namespace {deletion.namespace}" if deletion.namespace else ""
    lines = [f"Delete:      {deletion.target}{where}", f"Result:      {result}"]
    if deletion.seconds and not deletion.is_refused:
        lines.append(f"Time:        about {deletion.seconds:.0f}s")
    if deletion.refusals:
        lines += ["", "Refused by:"]
        for one in deletion.refusals:
            lines += [f"  {one.by}: {one.message}", f"  → {one.remedy}"]
    for title, groups in (("Goes with it:", deletion.goes), ("Stays:", deletion.stays)):
        if groups:
            lines += ["", title]
            for group in groups:
                why = f" ({group.why})" if group.why else ""
                lines.append(f"  {plural(len(group.names), group.kind)}: {listed(group.names)}{why}")
    if deletion.notes:
        lines += ["", "Notes:", *(f"  {note}" for note in deletion.notes)]
    return lines


def as_data(found: Drain | Deletion) -> dict[str, Any]:
    data = dataclasses.asdict(found)
    if isinstance(found, Drain):
        return {"kind": "Drain", "ends": found.ends, **data}
    return {"kind": "Deletion", "refused": found.is_refused, **data}
