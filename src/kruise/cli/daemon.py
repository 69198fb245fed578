"""`kruise daemon`."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@flags.carried_out_by("kruise.cli.work.daemon")
def daemon() -> None:
    """Run the node daemon until stopped."""
