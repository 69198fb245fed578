"""Texts for people that stay short however much there is to say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_GAP = 3
_READABLE = 16
"""A last column may run over the edge of a terminal, but not from its first letters on."""


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b, c and 7 more`."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def plural(count: int, noun: str, one: str = "", many: str = "") -> str:
    """`1 pod`, `2 pods`; with a verb for each: `1 pod is`, `2 pods are`."""
    text, verb = (f"{count} {noun}", one) if count == 1 else (f"{count} {noun}s", many)
    return f"{text} {verb}" if verb else text


def with_article(kind: str) -> str:
    """`a CloneSet`, `an ImagePullJob`, `a UnitedDeployment`."""
    return f"{'an' if kind[:1].lower() in 'aeio' else 'a'} {kind}"


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def without_middle(text: str, longest: int) -> str:
    """For a chain of errors: what was tried is told first, and why it failed last."""
    if len(text) <= longest:
        return text
    head = (longest - 3) // 3
    return f"{text[:head]}...{text[len(text) - (longest - 3 - head) :]}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, width: int = 0) -> list[str]:
    """Columns as wide as their widest cell, three spaces apart.

    `width`: where the last column cannot even begin within so many columns, each row is a list of its cells instead;
    0: there is no such bound.
    """
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(header))]
    if width and sum(room + _GAP for room in widths[:-1]) + min(widths[-1], _READABLE) > width:
        return _blocks(header, cells[1:])
    gap = " " * _GAP
    return [gap.join(cell.ljust(room) for cell, room in zip(row, widths, strict=True)).rstrip() for row in cells]


def _blocks(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    room = max(map(len, header)) + 2
    blocks = [[f"{name + ':':<{room}}{cell}" for name, cell in zip(header, row, strict=True)] for row in rows]
    return [line for index, block in enumerate(blocks) for line in (["", *block] if index else block)]


def full_name(namespace: str, name: str) -> str:
    """An object among those of many namespaces."""
    return f"{namespace}/{name}" if namespace else name


def namespace_flag(namespace: str) -> str:
    """What a command needs that asks for an object: ` -n demo`."""
    return f" -n {namespace}" if namespace not in ("", "default") else ""
