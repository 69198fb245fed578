"""What a benchmark found, as values, and how it is shown. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure; with a limit it is a target that is met or missed."""

    what: str
    value: float
    unit: str = ""
    at_least: float | None = None
    below: float | None = None

    @property
    def met(self) -> bool:
        """True for figures without a limit. A figure that is no number meets nothing."""
        return (self.at_least is None or self.value >= self.at_least) and (
            self.below is None or self.value < self.below
        )

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f">= {_number(self.at_least)} {self.unit}".rstrip()
        return f"< {_number(self.below)} {self.unit}".rstrip() if self.below is not None else ""

    @property
    def verdict(self) -> str:
        return "" if not self.target else "pass" if self.met else "MISS"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The figures of one benchmark, in the order in which they are shown."""

    name: str
    setting: str
    """Sizes and means in a sentence, so that a figure can be read without the code."""
    rows: tuple[Row, ...]

    @property
    def met(self) -> bool:
        return all(row.met for row in self.rows)


def table(report: Report) -> str:
    cells = [(row.what, f"{_number(row.value)} {row.unit}".rstrip(), row.target, row.verdict) for row in report.rows]
    cells.insert(0, ("", "measured", "target", ""))
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = [
        f"  {what:<{widths[0]}}  {value:>{widths[1]}}  {target:>{widths[2]}}  {verdict}".rstrip()
        for what, value, target, verdict in cells
    ]
    return "\n".join([f"{report.name}: {report.setting}", *lines])


def as_json(reports: Sequence[Report], machine: str) -> dict[str, Any]:
    return {
        "machine": machine,
        "met": all(report.met for report in reports),
        "benchmarks": [
            {
                "name": report.name,
                "setting": report.setting,
                "met": report.met,
                "rows": [dataclasses.asdict(row) | {"met": row.met} for row in report.rows],
            }
            for report in reports
        ],
    }


def _number(value: float) -> str:
    """Three digits that count: 12,345 and 12.3 and 0.0123."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
