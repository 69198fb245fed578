"""A report as plain lines: for pipes, logs and grep. No colours, no width."""

from __future__ import annotations

from kruise.foresight.rendering import tables
from kruise.foresight.rendering.report import Report
from kruise.foresight.rendering.verdict import RESULTS, headline, verdict_of
from kruise.machinery.wording import plural, table

_WIDTH = 13


def lines(report: Report, *, everything: bool = False) -> list[str]:
    """`everything`: all waves and pods, however many."""
    forecast = report.forecast
    head = [
        ("Plan", _named(report, forecast.namespace)),
        ("Result", RESULTS[verdict_of(forecast)]),
        ("Summary", headline(report)),
        *(("Change", text) for text in tables.change_texts(report, everything=everything)),
        *tables.facts(report),
    ]
    found = [f"{title + ':':<{_WIDTH}}{text}" for title, text in head]
    found += _parts(report, everything)
    said = [
        *tables.stops(report),
        *tables.staying(report, everything=everything),
        *tables.warnings(report),
        *tables.remarks(report),
        *tables.drift(report),
    ]
    return [*found, "", *map(str, said)] if said else found


def _named(report: Report, namespace: str) -> str:
    where = f" in namespace {namespace}" if namespace else ""
    return f"{report.subject}{where}{' (to be created)' if report.is_new else ''}"


def _parts(report: Report, everything: bool) -> list[str]:
    moves = len(report.forecast.moves)
    if not moves:
        return []
    waves = [row.cells for row in tables.wave_rows(report, everything=everything)]
    found = ["", *table(tables.WAVE_TITLES, waves), "", *table(tables.REASON_TITLES, tables.reason_rows(report))]
    if everything or moves <= tables.MOVES_LISTED:
        pods = tables.pod_rows(report, everything=everything)
        return [*found, "", *table(tables.POD_TITLES, pods)] if pods else found
    return [*found, "", f"{plural(moves, 'pod', 'changes', 'change')}; -v lists them"]
