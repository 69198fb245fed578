"""Several plans at once, as files hold several workloads: one after the other, and what is to be said of all."""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.foresight.rendering import data, lines, markdown, prospects
from kruise.foresight.rendering.report import Prospect, Refused, Report
from kruise.foresight.rendering.tables import Message
from kruise.foresight.rendering.verdict import RESULTS, Verdict, verdict_of

SCHEMA = "kruise.plans/v1"
REFUSED = "refused"
_BY_BADNESS = (Verdict.STUCK, Verdict.UNFINISHED, Verdict.STOPS, Verdict.COMPLETE, Verdict.UNCHANGED)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    results: tuple[Report | Prospect | Refused, ...]
    skipped: tuple[str, ...] = ()
    """Objects of other kinds that the files hold, as kubectl names them."""

    @property
    def reports(self) -> tuple[Report, ...]:
        return tuple(one for one in self.results if isinstance(one, Report))

    @property
    def is_refused(self) -> bool:
        return any(isinstance(one, Refused) for one in self.results)

    @property
    def worst(self) -> Verdict:
        """Of the plans that there are."""
        return min((verdict_of(one.forecast) for one in self.reports), key=_BY_BADNESS.index, default=Verdict.UNCHANGED)


def heading(plans: Plans, place: int) -> str:
    return f"{place + 1} of {len(plans.results)}: {plans.results[place].subject}"


def error(refused: Refused) -> Message:
    return Message(title="Error", code="", text=refused.error)


def remarks(plans: Plans) -> list[Message]:
    """What is to be said of all of them."""
    found = [Message(title="Not looked at", code="", text=", ".join(plans.skipped))] if plans.skipped else []
    if len(plans.reports) > 1:
        text = "each plan is made for itself: room on nodes that another one takes is not counted"
        found.append(Message(title="Note", code="", text=text))
    return found


def texts(plans: Plans, *, everything: bool = False) -> list[str]:
    found: list[str] = []
    for place, result in enumerate(plans.results):
        found.append(f"== {heading(plans, place)} ==")
        found += text_of(result, everything=everything)
        found.append("")
    found += map(str, remarks(plans))
    if len(plans.results) > 1 and (plans.is_refused or plans.reports):
        found.append(f"Result of all: {REFUSED if plans.is_refused else RESULTS[plans.worst]}")
    return found


def text_of(result: Report | Prospect | Refused, *, everything: bool = False) -> list[str]:
    match result:
        case Report():
            return lines.lines(result, everything=everything)
        case Prospect():
            return prospects.lines(result)
    return [str(error(result))]


def as_markdown(plans: Plans, *, everything: bool = False) -> str:
    parts = [markdown_of(one, everything=everything) for one in plans.results]
    said = remarks(plans)
    return "\n".join([*parts, markdown.remarks(said)] if said else parts)


def markdown_of(result: Report | Prospect | Refused, *, everything: bool = False) -> str:
    match result:
        case Report():
            return markdown.markdown(result, everything=everything)
        case Prospect():
            return prospects.as_markdown(result)
    return markdown.refused(result)


def as_data(plans: Plans) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "verdict": REFUSED if plans.is_refused else plans.worst.value if plans.reports else None,
        "items": [data_of(one) for one in plans.results],
        "notLookedAt": list(plans.skipped),
    }


def data_of(result: Report | Prospect | Refused) -> dict[str, Any]:
    match result:
        case Report():
            return data.as_data(result)
        case Prospect():
            return prospects.as_data(result)
    return _refused(result)


def _refused(one: Refused) -> dict[str, Any]:
    return {
        "schema": data.SCHEMA,
        "object": {"kind": one.kind, "namespace": one.namespace, "name": one.name},
        "verdict": REFUSED,
        "error": one.error,
    }
