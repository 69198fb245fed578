"""A report as Markdown, fit for a comment on a pull request: what matters is seen at once, the rest folds away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kruise.foresight.rendering import tables
from kruise.foresight.rendering.report import Refused, Report
from kruise.foresight.rendering.tables import Message
from kruise.foresight.rendering.verdict import Verdict, headline, verdict_of

_PODS_LISTED = 200
"""A comment has room for 65,536 characters."""
_VERDICTS = {
    Verdict.UNCHANGED: "No pod changes",
    Verdict.COMPLETE: "Works out",
    Verdict.STOPS: "Stops as asked",
    Verdict.STUCK: "Gets stuck",
    Verdict.UNFINISHED: "Not finished",
}
_ESCAPES = str.maketrans(
    {
        "\\": "\\\\",
        "|": "\\|",
        "<": "&lt;",
        ">": "&gt;",
        "*": "\\*",
        "_": "\\_",
        "`": "\\`",
        "[": "\\[",
        "]": "\\]",
        "\n": " ",
    }
)


def markdown(report: Report, *, everything: bool = False) -> str:
    """`everything`: all waves and pods, however many."""
    forecast = report.forecast
    verdict = verdict_of(forecast)
    title = _title(report.subject, forecast.namespace) + (" (to be created)" if report.is_new else "")
    parts = [title, f"**{_VERDICTS[verdict]}.** {_text(_sentence(headline(report)))}"]
    parts += [f"> {_sentence_of(one)}" for one in tables.drift(report)]
    rows = [
        *(("Change", _text(text)) for text in tables.change_texts(report, everything=everything)),
        *((title, _text(text)) for title, text in tables.facts(report)),
    ]
    parts.append("\n".join(_table(("", ""), rows)))
    said = tables.warnings(report)
    if said:
        parts.append("\n".join(["**Warnings**", "", *_list(said)]))
    ends = [*tables.stops(report), *tables.staying(report, everything=everything)]
    if ends:
        parts.append("\n".join(["**Where it stops**", "", *_list(ends)]))
    if forecast.moves:
        parts += _moves(report, everything)
    remarks = tables.remarks(report)
    if remarks:
        parts.append(_folded("What this rests on", _list(remarks)))
    return "\n\n".join(parts) + "\n"


def refused(one: Refused) -> str:
    """An object without a forecast."""
    return f"{_title(one.subject, one.namespace)}\n\n**Refused.** {_text(_sentence(one.error))}\n"


def remarks(said: Iterable[Message]) -> str:
    return "\n".join(_list(said)) + "\n"


def _title(subject: str, namespace: str) -> str:
    return f"### Plan for `{subject}`" + (f" in `{namespace}`" if namespace else "")


def _moves(report: Report, everything: bool) -> list[str]:
    waves = [tuple(map(_text, row.cells)) for row in tables.wave_rows(report, everything=everything)]
    reasons = [tuple(map(_text, row)) for row in tables.reason_rows(report)]
    found = [
        "\n".join(_table(_titles(tables.WAVE_TITLES), waves)),
        "\n".join(_table(_titles(tables.REASON_TITLES), reasons)),
    ]
    rows = tables.pod_rows(report, everything=everything)
    if not rows:
        return found
    listed = rows if everything else rows[:_PODS_LISTED]
    pods = _table(_titles(tables.POD_TITLES), (tuple(map(_text, row)) for row in listed))
    if len(listed) < len(rows):
        pods += ["", f"and {len(rows) - len(listed)} more"]
    return [*found, _folded("The pod that changes" if len(rows) == 1 else f"The {len(rows)} pods that change", pods)]


def _titles(titles: Iterable[str]) -> tuple[str, ...]:
    return tuple(title.capitalize() for title in titles)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _list(said: Iterable[Message]) -> list[str]:
    return [f"- {_sentence_of(one)}" for one in said]


def _sentence_of(one: Message) -> str:
    head = one.code if one.title == "Warning" else f"{one.title} ({one.code})" if one.code else one.title
    remedy = f" *{_text(_sentence(one.remedy))}*" if one.remedy else ""
    return f"**{_text(head)}**: {_text(_sentence(one.text))}{remedy}"


def _sentence(text: str) -> str:
    first, _, _ = text.partition(" ")
    if first.isalpha() and first.islower():  # else it is a name or a field, which must stay as it is
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", "]")) else f"{text}."


def _folded(title: str, lines: Sequence[str]) -> str:
    return "\n".join(["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"])


def _text(text: str) -> str:
    """Text in which nothing counts as Markdown or HTML."""
    return text.replace(" -> ", " → ").translate(_ESCAPES)
