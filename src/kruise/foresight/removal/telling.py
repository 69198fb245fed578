"""Drains, deletions and losses in lines for people, and as data for programs. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from kruise.foresight.removal.deleting import Deletion, counted
from kruise.foresight.removal.draining import Drain, Gone, Staying
from kruise.foresight.removal.losing import Loss
from kruise.machinery.wording import listed, plural

_NAMED = 5
_STEPS = 6
_ROWS = 20


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
        lines += ["", "Refused as long as no more pods are available than now:"]
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
    return _columns(rows)


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def deletion_lines(deletion: Deletion) -> list[str]:
    if deletion.is_refused:
        result = "refused"
    elif deletion.refusals:
        result = "refused, if what is said below holds"
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


def loss_lines(loss: Loss, *, everything: bool = False) -> list[str]:
    named = listed(loss.nodes, _NAMED)
    of_all = len(loss.nodes) + loss.nodes_left
    lines = [
        f"Lose:        {loss.selector}: {len(loss.nodes)} of {plural(of_all, 'node')} ({named})",
        f"Workload:    {loss.target}" + (f" in namespace {loss.namespace}" if loss.namespace else ""),
        f"Result:      {_result(loss)}",
        f"Serving:     {_serving(loss)}",
    ]
    if loss.lost:
        rows = [("GOES", "ON", "GIVEN UP")]
        rows += [(one.pod, one.node, f"{one.given_up:.0f}s") for one in loss.lost]
        lines += ["", *_shortened(rows, everything)]
    if loss.coming:
        rows = [("COMES", "ON", "SERVES")]
        rows += [
            (one.pod, one.node or "nowhere", "never" if one.serves is None else f"{one.serves:.0f}s")
            for one in loss.coming
        ]
        lines += ["", *_shortened(rows, everything)]
    if loss.homeless:
        lines += ["", "Finds no node:"]
        for why, names in _by_reason(loss):
            lines.append(f"  {plural(len(names), 'pod')} ({listed(names, _NAMED)}): {why}")
        lines += _ties(loss, everything)
    if loss.budgets:
        lines += ["", "Broken budgets:"]
        for one in loss.budgets:
            breach = one.breach
            end = "for as long as nodes are missing" if one.until is None else f"until about {one.until:.0f}s"
            lines.append(f"  {breach.name}: {breach.left} left of the {breach.needed} that must be available, {end}")
    for title, texts in (
        ("Subsets:", loss.parts),
        ("Waits:", loss.stops),
        ("Notes:", loss.notes),
        ("Assumes:", loss.assumptions),
    ):
        if texts:
            lines += ["", title, *(f"  {text}" for text in texts)]
    return lines


def _result(loss: Loss) -> str:
    if not loss.lost:
        return "nothing happens: no pod of it is on these nodes"
    if loss.seconds == 0:
        return "as many serve as before"
    if loss.seconds is not None:
        return f"as many serve as before after about {loss.seconds:.0f}s"
    homeless = len(loss.homeless)
    stuck = f": {plural(homeless, 'pod', 'finds', 'find')} no node" if homeless else ""
    return f"does not recover{stuck}"


def _serving(loss: Loss) -> str:
    # Of a second, the last moment tells.
    by_second = {f"{at:.0f}s": count for at, count in loss.serving if at > 0}
    steps = [f"{count} after {at}" for at, count in by_second.items()]
    if len(steps) > _STEPS:
        steps = [*steps[:1], "...", *steps[-1:]]
    return ", ".join([f"{loss.before} before", f"{loss.at_once} at once", *steps])


def _by_reason(loss: Loss) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for one in loss.homeless:
        found.setdefault(one.why, []).append(one.pod)
    return list(found.items())


def _ties(loss: Loss, everything: bool) -> list[str]:
    ties = [(one.pod, tie) for one in loss.homeless for tie in one.ties]
    shown = ties if everything or len(ties) <= _ROWS + 1 else ties[:_ROWS]
    lines = [
        f"  {pod}: its claim {tie.claim} is bound to volume {tie.volume}, which no node that is left can use"
        for pod, tie in shown
    ]
    return lines if len(shown) == len(ties) else [*lines, f"  ... and {len(ties) - len(shown)} more (-v shows all)"]


def _shortened(rows: Sequence[tuple[str, ...]], everything: bool) -> list[str]:
    shown = rows if everything or len(rows) <= _ROWS + 2 else rows[: _ROWS + 1]
    lines = _columns(shown)
    if len(shown) < len(rows):
        lines.append(f"... and {len(rows) - len(shown)} more (-v shows all)")
    return lines


def as_data(found: Drain | Deletion | Loss) -> dict[str, Any]:
    data = dataclasses.asdict(found)
    if isinstance(found, Loss):
        return {"kind": "Loss", "recovers": found.recovers, **data}
    if isinstance(found, Drain):
        return {"kind": "Drain", "ends": found.ends, **data}
    return {"kind": "Deletion", "refused": found.is_refused, **data}
