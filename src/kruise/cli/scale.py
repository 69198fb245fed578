"""`kruise scale` and `kruise scaledown`."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@flags.words
@click.option("--replicas", required=True, type=click.IntRange(0), help="How many pods there should be.")
@click.option("--current-replicas", default=-1, help="Refuse unless so many are asked for now. -1: whatever it is.")
@click.option("--resource-version", default="", help="Refuse unless the object has this version.")
@flags.where()
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.scale")
def scale() -> None:
    """Set the number of replicas."""


@click.command(cls=flags.Command)
@flags.words
@click.option("--pods", required=True, help="Names of the pods to delete, such as web-1,web-2.")
@flags.where(several=False)
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.scale")
def scaledown() -> None:
    """Delete named pods of a CloneSet and lower its replicas by as many."""
