"""`kruise describe rollout`."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.group(cls=flags.Group)
def describe() -> None:
    """Show the state of something in words."""


@describe.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="The same as data.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.describe")
def rollout() -> None:
    """Show a workload's rollout: strategy, limits, revisions with their pods, and each pod with its state."""


describe.add_command(rollout, "rollouts")
describe.add_command(rollout, "ro")
