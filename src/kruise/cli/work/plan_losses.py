"""What `kruise plan delete`, `drain` and `--lose-nodes` do."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from kruise.cli import plan_losing
from kruise.cli.flags import Connection
from kruise.cli.plan_removal import Removal
from kruise.cli.printing import yaml_text
from kruise.cli.session import run
from kruise.cli.work.plan_codes import REFUSED, WOULD_GET_STUCK
from kruise.foresight.removal import telling
from kruise.foresight.removal.draining import Drain
from kruise.manager.options import Options


def of_nodes(
    words: tuple[str, ...],
    selector: str,
    options: Options,
    output: str | None,
    everything: bool,
    connection: Connection,
) -> None:
    found = run(connection, lambda session: plan_losing.plan(session, words, selector, options))
    if output in ("json", "yaml"):
        _print_data(telling.as_data(found), output)
    else:
        click.echo("\n".join(telling.loss_lines(found, everything=everything)))
    sys.exit(0 if found.recovers else WOULD_GET_STUCK)


def of_removal(words: tuple[str, ...], options: Options, output: str | None, connection: Connection) -> None:
    found = run(connection, lambda session: Removal(session, options.gates).plan(words))
    if output in ("json", "yaml"):
        _print_data(telling.as_data(found), output)
    else:
        lines = telling.drain_lines(found) if isinstance(found, Drain) else telling.deletion_lines(found)
        click.echo("\n".join(lines))
    if isinstance(found, Drain):
        sys.exit(0 if found.ends else WOULD_GET_STUCK)
    sys.exit(REFUSED if found.is_refused else 0)


def _print_data(data: dict[str, Any], output: str) -> None:
    text = json.dumps(data, indent=2)
    click.echo(text if output == "json" else yaml_text(json.loads(text)).rstrip())
