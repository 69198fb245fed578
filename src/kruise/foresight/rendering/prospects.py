"""What an object that does not roll out will do next: as lines, as data, as Markdown."""

from __future__ import annotations

from typing import Any

from kruise.foresight.rendering.report import Prospect
from kruise.foresight.rendering.tables import Message
from kruise.machinery.wording import table

SCHEMA = "kruise.outlook/v1"
_WIDTH = 18


def lines(one: Prospect) -> list[str]:
    told = one.outlook
    found = [f"{'Plan:':<{_WIDTH}}{one.subject} in namespace {one.namespace}"]
    found += [f"{f'{title}:':<{_WIDTH}}{text}" for title, text in told.facts]
    if told.rows:
        found += ["", *table(told.header, told.rows)]
    said = [*map(str, warnings(one)), *(f"note: {note}" for note in told.notes)]
    return [*found, "", *said] if said else found


def warnings(one: Prospect) -> list[Message]:
    return [Message(title="Warning", code="admission", text=text) for text in one.warnings]


def as_data(one: Prospect) -> dict[str, Any]:
    told = one.outlook
    return {
        "schema": SCHEMA,
        "object": {"kind": one.kind, "namespace": one.namespace, "name": one.name},
        "subject": one.subject,
        "namespace": one.namespace,
        **dict(told.facts),
        "rows": [dict(zip(told.header, row, strict=True)) for row in told.rows],
        "warnings": list(one.warnings),
        "notes": list(told.notes),
    }


def as_markdown(one: Prospect) -> str:
    text = "\n".join(lines(one)[1:])
    return f"### Plan for `{one.subject}` in `{one.namespace}`\n\n```\n{text}\n```\n"
