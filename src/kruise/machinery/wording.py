"""Texts for people that stay short however much there is to say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b, c and 7 more`."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def plural(count: int, noun: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell, three spaces apart."""
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
