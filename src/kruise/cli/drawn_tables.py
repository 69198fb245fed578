"""Tables on a terminal; lists, where a table would have to break its cells into letters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_GAP = 2
_READABLE = 16
"""A column that may break its cells needs so much, or what its widest cell needs."""


def fitted(
    titles: Sequence[str], rows: Sequence[Sequence[RenderableType]], console: Console, *, breaking: Sequence[str] = ()
) -> RenderableType:
    """Rows as a table if that fits the console, else each as a list. Only columns in `breaking` break their cells."""
    widths = zip(titles, _widths(titles, rows, console), strict=True)
    needed = [_GAP + (min(width, _READABLE) if title in breaking else width) for title, width in widths]
    if sum(needed) > console.width:
        return _list(titles, rows)
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for title in titles:
        table.add_column(title, no_wrap=title not in breaking, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def fitting_columns(
    titles: Sequence[str], rows: Sequence[Sequence[RenderableType]], console: Console, *, first: Sequence[str]
) -> list[int]:
    """The columns for which there is room, those called `first` before others: for what is drawn anew all the time and
    has a line for each row."""
    widths = _widths(titles, rows, console)
    room = console.width
    chosen: list[int] = []
    for index in sorted(range(len(titles)), key=lambda index: titles[index] not in first):
        if widths[index] + _GAP <= room:
            room -= widths[index] + _GAP
            chosen.append(index)
    return sorted(chosen) or [titles.index(first[0])]


def _widths(titles: Sequence[str], rows: Sequence[Sequence[RenderableType]], console: Console) -> list[int]:
    return [max(len(title), *(_width(row[index], console) for row in rows), 0) for index, title in enumerate(titles)]


def _width(cell: RenderableType, console: Console) -> int:
    if isinstance(cell, str | Text):
        return max((len(line) for line in str(cell).splitlines()), default=0)
    return Measurement.get(console, console.options, cell).maximum


def _list(titles: Sequence[str], rows: Sequence[Sequence[RenderableType]]) -> Group:
    blocks: list[RenderableType] = []
    for row in rows:
        if blocks:
            blocks.append(Text(""))
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold")
        for title, cell in zip(titles, row, strict=True):
            if str(cell):
                grid.add_row(f"{title}:" if title else "", cell)
        blocks.append(grid)
    return Group(*blocks)
