"""`kruise describe rollout`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where

if TYPE_CHECKING:
    from kruise.cli.session import Session


@click.group(cls=flags.Group)
def describe() -> None:
    """Show the state of something in words."""


@describe.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="The same as data.")
@flags.connection
def rollout(words: tuple[str, ...], where: Where, output: str | None, connection: Connection) -> None:
    """Show a workload's rollout: strategy, limits, revisions with their pods, and each pod with its state."""
    from kruise.api.native.pod import PODS
    from kruise.cli.printing import yaml_text
    from kruise.cli.session import run, selector_text
    from kruise.verbs.overview import as_data, described, overview

    async def work(session: Session) -> None:
        target, document = await session.one(words, where, "describe rollout")
        namespace = document["metadata"]["namespace"]
        listed = await session.client.list(PODS, namespace, labels=selector_text(target.kind, document))
        view = overview(target.kind, document, listed.items, await session.revisions(target, document))
        now = session.clock.now()
        if output == "json":
            click.echo(json.dumps(as_data(view, now), indent=4))
        elif output == "yaml":
            click.echo(yaml_text(json.loads(json.dumps(as_data(view, now)))), nl=False)
        else:
            click.echo("\n".join(described(view, now)))

    run(connection, work)


describe.add_command(rollout, "rollouts")
describe.add_command(rollout, "ro")
