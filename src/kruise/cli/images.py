"""`kruise images`: which node has which image, and what is being pulled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kruise.cli import flags
from kruise.cli.flags import Connection

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from kruise.cli.session import Session
    from kruise.operations.images.inventory import Holding, Node

_LONGEST = 120
_UNITS = ("B", "kB", "MB", "GB", "TB")


def _complete_image(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from kruise.cli.completion import images

    return images(ctx, incomplete)


def _complete_node(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from kruise.cli.completion import nodes

    return nodes(ctx, incomplete)


@click.command(cls=flags.Command)
@click.argument("words", metavar="[IMAGE]...", nargs=-1, shell_complete=_complete_image)
@click.option("--node", "names", multiple=True, help="Only this node; may be repeated.", shell_complete=_complete_node)
@click.option("-l", "--selector", default="", help="Only nodes with these labels.")
@click.option("--pulls", is_flag=True, help="Only what is being pulled, waits for it, or could not be pulled.")
@click.option("--check", is_flag=True, help="Exit code 0: all nodes have the images; 3: some still pull; 1: no.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="The same as data.")
@flags.connection
def images(
    words: tuple[str, ...],
    names: tuple[str, ...],
    selector: str,
    pulls: bool,
    check: bool,
    output: str | None,
    connection: Connection,
) -> None:
    """Show images and the nodes that have them; of each IMAGE, every node and how far it is.

    IMAGE is a name (nginx: all tags), a name with a tag or digest, or a pattern such as '*/team/*'.
    """
    from kruise.cli.session import run
    from kruise.machinery.wording import listed
    from kruise.operations.images.inventory import PatternError, chosen, pattern_of, verdict

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
    from kruise.machinery.wording import listed
    from kruise.operations.images.inventory import NODES

    found = (await session.client.list(NODES, labels=selector)).items
    missing = [name for name in names if name not in {node.metadata.name for node in found}]
    if missing:
        where = f" with labels {selector}" if selector else ""
        there = listed(sorted(node.metadata.name for node in found)) or "none"
        raise click.ClickException(f"no node{where} is called {listed(missing)}; there are: {there}")
    return [node for node in found if not names or node.metadata.name in names]


async def _known(session: Session, nodes: Sequence[Node]) -> list[Holding]:
    from kruise.api.apps.images import NODE_IMAGES
    from kruise.cli.printing import note
    from kruise.machinery.client.errors import ForbiddenError, NotFoundError
    from kruise.operations.images.inventory import holdings

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
    from kruise.cli.printing import note
    from kruise.machinery.wording import listed
    from kruise.operations.images.inventory import MOST_REPORTED

    full = [node.metadata.name for node in nodes if len(node.status.images) == MOST_REPORTED]
    if full:
        note(
            f"{listed(full)}: a kubelet tells of its {MOST_REPORTED} largest images only, unless nodeStatusMaxImages "
            "says otherwise; there may be more"
        )


# Showing


def _print_rows(found: Sequence[Holding], now: datetime) -> None:
    from kruise.cli import terminal
    from kruise.machinery.ages import age
    from kruise.machinery.wording import table, without_middle

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
    from kruise.cli import terminal
    from kruise.machinery.wording import table
    from kruise.operations.images.inventory import Pull, summaries

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
    import json

    from kruise.machinery.times import format_time

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
