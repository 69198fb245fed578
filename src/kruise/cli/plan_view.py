"""A plan drawn on a terminal."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from kruise.cli.drawn_tables import fitted
from kruise.foresight.rendering import prospects, several, tables
from kruise.foresight.rendering.report import Prospect, Refused, Report
from kruise.foresight.rendering.several import Plans
from kruise.foresight.rendering.tables import Message, WaveRow
from kruise.foresight.rendering.verdict import RESULTS, Verdict, headline, verdict_of
from kruise.foresight.rendering.words import bar
from kruise.machinery.wording import plural

_STYLES = {
    Verdict.UNCHANGED: "dim",
    Verdict.COMPLETE: "green",
    Verdict.STOPS: "cyan",
    Verdict.STUCK: "bold red",
    Verdict.UNFINISHED: "yellow",
}
_TITLES = {
    "Warning": "yellow",
    "Stops": "cyan",
    "Waits": "cyan",
    "Stays": "cyan",
    "Assumed": "dim",
    "Note": "yellow",
    "Meanwhile": "bold yellow",
    "Error": "bold red",
    "Not looked at": "yellow",
}
_HOWS = {"in-place": "green", "recreate": "yellow", "create": "cyan", "delete": "magenta"}
_WIDE_BAR, _BAR = 30, 10
_LONG = ("PODS", "WHY", "HOW")
"""Names and reasons may be long, and are the only ones that may break."""
_AVAILABLE = tables.WAVE_TITLES.index("AVAILABLE")


def draw(report: Report, *, everything: bool = False, console: Console | None = None) -> None:
    console = console or Console(highlight=False)
    forecast = report.forecast
    verdict = verdict_of(forecast)
    head = Text.assemble((report.subject, "bold"), f"  {forecast.namespace}  ", (RESULTS[verdict], _STYLES[verdict]))
    if report.is_new:
        head.append("  to be created", "dim")
    console.print(head)
    console.print(Text(headline(report), _STYLES[verdict]))
    console.print(_facts(report, everything, console))
    if forecast.moves:
        console.print()
        console.print(_waves(report, everything, console))
        console.print()
        console.print(_table(tables.REASON_TITLES, tables.reason_rows(report), console, how=0))
        if everything or len(forecast.moves) <= tables.MOVES_LISTED:
            pods = tables.pod_rows(report, everything=everything)
            if pods:
                console.print()
                console.print(_table(tables.POD_TITLES, pods, console, how=2))
        else:
            console.print(Text(f"{plural(len(forecast.moves), 'pod', 'changes', 'change')}; -v lists them", "dim"))
    said = [
        *tables.stops(report),
        *tables.staying(report, everything=everything),
        *tables.warnings(report),
        *tables.remarks(report),
        *tables.drift(report),
    ]
    if said:
        console.print()
        console.print(_said(said))


def draw_prospect(one: Prospect, *, console: Console | None = None) -> None:
    console = console or Console(highlight=False)
    told = one.outlook
    console.print(Text.assemble((one.subject, "bold"), f"  {one.namespace}"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, text in told.facts:
        grid.add_row(title, Text(text))
    console.print(grid)
    if told.rows:
        console.print()
        rows = [[Text(cell) for cell in row] for row in told.rows]
        console.print(fitted(told.header, rows, console, breaking=(*_LONG, *told.header[-1:])))
    notes = [Message(title="Note", code="", text=note) for note in told.notes]
    if said := [*prospects.warnings(one), *notes]:
        console.print()
        console.print(_said(said))


def draw_several(plans: Plans, *, everything: bool = False, console: Console | None = None) -> None:
    console = console or Console(highlight=False)
    for place, result in enumerate(plans.results):
        console.print(Rule(several.heading(plans, place), style="dim", align="left"))
        if isinstance(result, Report):
            draw(result, everything=everything, console=console)
        elif isinstance(result, Refused):
            console.print(_said([several.error(result)]))
        else:
            draw_prospect(result, console=console)
        console.print()
    console.print(_said(several.remarks(plans)))


def _facts(report: Report, everything: bool, console: Console) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for text in tables.change_texts(report, everything=everything):
        grid.add_row("Change", Text(text))
    for title, text in tables.facts(report):
        grid.add_row(title, Text(text))
        if title == "Available":
            grid.add_row(
                "", _bar(report, report.forecast.fewest_available, min(_WIDE_BAR, max(_BAR, console.width - 30)))
            )
    return grid


def _bar(report: Report, available: int, width: int) -> Text:
    """How many pods serve at worst, and the limit as a mark in it."""
    forecast = report.forecast
    total = max(forecast.replicas, forecast.available_before, 1)
    drawn = bar(available, total, forecast.fewest_allowed, width)
    style = "red" if tables.is_short_of_promise(report, available) else "green"
    text = Text("━" * drawn.filled, style).append("┄" * (drawn.width - drawn.filled), "dim")
    if drawn.limit >= 0:
        mark = Text("┃" if drawn.limit < drawn.filled else "│", "bold")
        text = text[: drawn.limit] + mark + text[drawn.limit + 1 :]
    return text.append(f" {available}/{total}", style)


def _waves(report: Report, everything: bool, console: Console) -> RenderableType:
    rows = [_wave_cells(report, row) for row in tables.wave_rows(report, everything=everything)]
    return fitted(tables.WAVE_TITLES, rows, console, breaking=_LONG)


def _wave_cells(report: Report, row: WaveRow) -> list[RenderableType]:
    cells: list[RenderableType] = [Text(cell, "" if row.available is not None else "dim") for cell in row.cells]
    if row.available is not None:
        cells[_AVAILABLE] = _bar(report, row.available, _BAR)
    return cells


def _table(
    titles: tuple[str, ...], rows: list[tuple[str, ...]] | list[tuple[str, str, str]], console: Console, *, how: int
) -> RenderableType:
    styled = [[Text(cell) for cell in row] for row in rows]
    for row in styled:
        row[how].stylize(_HOWS.get(row[how].plain, ""))
    return fitted(titles, styled, console, breaking=_LONG)


def _said(said: list[Message]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for one in said:
        text = Text(one.text)
        if one.code:
            text.append(f" ({one.code})", "dim")
        if one.remedy:
            text.append(f"\n-> {one.remedy}", "dim")
        grid.add_row(Text(one.title, _TITLES[one.title]), text)
    return grid
