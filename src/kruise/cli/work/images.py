"""What `kruise images` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from kruise.api.apps.images import NODE_IMAGES
from kruise.cli import terminal
from kruise.cli.flags import Connection
from kruise.cli.printing import note
from kruise.cli.session import Session, run
from kruise.machinery.ages import age
from kruise.machinery.client.errors import ForbiddenError, NotFoundError
from kruise.machinery.times import format_time
from kruise.machinery.wording import listed, table, without_middle
from kruise.operations.images.inventory import (
    MOST_REPORTED,
    NODES,
    Holding,
    Node,
    PatternError,
    Pull,
    chosen,
    holdings,
    pattern_of,
    summaries,
    verdict,
)

_LONGEST = 120

_UNITS = ("B", "kB", "MB", "GB", "TB")


def images(
    words: tuple[str, ...],
    names: tuple[str, ...],
    selector: str,
    pulls: bool,
    check: bool,
    output: str | None,
    connection: Connection,
) -> None:
    if check and not words:
        raise click.UsageError("--check needs the images that all nodes must have, such as nginx:1.27")
    try:
        patterns = [pattern_of(word) for word in words]
    except PatternError as error:
        raise click.UsageError(str(error)) from error

    async def work(session: Session) -> int:
        nodes = await _nodes(session, names, selector)
        known = await _known(session, nodes)
        found = chosen(known, patterns, [node.metadata.name for node in nodes])
        if words and not check and not any(one.is_present or one.pull for one in found):
            raise click.ClickException(
                f"no node has {listed(words)}, and none pulls it; an ImagePullJob brings an image to nodes"
            )
        shown = [one for one in found if one.pull] if pulls else found
        if output is not None:
            _print_data(shown, len(nodes))
        elif not shown:
            click.echo("No image is being pulled." if pulls else "No node tells of any image.")
        elif words or names or pulls:
            _print_rows(shown, session.clock.now())
        else:
            _print_summaries(shown, len(nodes))
        _note_of_hidden(nodes)
        return verdict(found).value if check else 0

    sys.exit(run(connection, work))


# Reading


async def _nodes(session: Session, names: Sequence[str], selector: str) -> list[Node]:
    found = (await session.client.list(NODES, labels=selector)).items
    missing = [name for name in names if name not in {node.metadata.name for node in found}]
    if missing:
        where = f" with labels {selector}" if selector else ""
        there = listed(sorted(node.metadata.name for node in found)) or "none"
        raise click.ClickException(f"no node{where} is called {listed(missing)}; there are: {there}")
    return [node for node in found if not names or node.metadata.name in names]


async def _known(session: Session, nodes: Sequence[Node]) -> list[Holding]:
    try:
        node_images = (await session.client.list(NODE_IMAGES)).items
    except NotFoundError:
        note("this cluster has no NodeImages (kruise install): what is being pulled is not known")
        node_images = ()
    except ForbiddenError:
        note("you may not list nodeimages.apps.kruise.io: what is being pulled is not known")
        node_images = ()
    return holdings(nodes, node_images)


def _note_of_hidden(nodes: Sequence[Node]) -> None:
    full = [node.metadata.name for node in nodes if len(node.status.images) == MOST_REPORTED]
    if full:
        note(
            f"{listed(full)}: a kubelet tells of its {MOST_REPORTED} largest images only, unless nodeStatusMaxImages "
            "says otherwise; there may be more"
        )


# Showing


def _print_rows(found: Sequence[Holding], now: datetime) -> None:
    rows = [
        [
            str(one.image),
            one.node,
            one.state,
            size_text(one.size),
            age(one.since, now) if one.since is not None else "",
            without_middle(one.message.replace("\n", " "), _LONGEST),
        ]
        for one in found
    ]
    header = ["IMAGE", "NODE", "STATE", "SIZE", "SINCE", "MESSAGE"]
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    _print(table(header, rows, width=terminal.width()))


def _print_summaries(found: Sequence[Holding], nodes: int) -> None:
    rows = []
    for one in summaries(found):
        parts = [f"{count} {pull}" for pull, count in one.pulls.items()]
        if one.progress and Pull.PULLING in one.pulls:
            parts = [f"{part} (from {one.progress}%)" if part.endswith(Pull.PULLING) else part for part in parts]
        rows.append((str(one.image), size_text(one.size), f"{one.present}/{nodes}", ", ".join(parts)))
    header = ("IMAGE", "SIZE", "NODES", "PULLS")
    _print(table(header, rows, width=terminal.width()))


def _print(lines: Sequence[str]) -> None:
    click.echo("\n".join(line.rstrip() for line in lines))


def _print_data(found: Sequence[Holding], nodes: int) -> None:
    by_image: dict[str, dict[str, Any]] = {}
    for one in found:
        entry = by_image.setdefault(str(one.image), {"image": str(one.image), "sizeBytes": 0, "nodes": []})
        entry["sizeBytes"] = max(entry["sizeBytes"], one.size)
        entry["nodes"].append(
            {
                "node": one.node,
                "present": one.is_present,
                "pull": str(one.pull),
                "progress": one.progress,
                "since": format_time(one.since) if one.since is not None else None,
                "message": one.message,
            }
        )
    click.echo(json.dumps({"nodes": nodes, "images": list(by_image.values())}, indent=4))


def size_text(size: int) -> str:
    """`67 MB`, as registries count; empty where nobody tells."""
    if not size:
        return ""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 10 else f"{value:.0f} {_UNITS[unit]}"
