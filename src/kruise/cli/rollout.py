"""`kruise rollout`: status, history, undo, pause, resume, promote, abort, restart."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.group(cls=flags.Group)
def rollout() -> None:
    """Follow, look back at, undo, pause, resume, promote, abort and restart rollouts.

    For CloneSets, Deployments, StatefulSets and DaemonSets. Exit codes: 0 done, 1 failed or refused, 2 wrong usage,
    3 not finished in time.
    """


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option(
    "-w", "--watch/--no-watch", default=True, help="Watch until it is done. --no-watch: exit code 3 if it is not."
)
@click.option(
    "--revision", default=0, type=click.IntRange(0), help="Fail unless this revision is the one that rolls out."
)
@click.option("--timeout", default="0", help="Give up after this time, such as 5m, with exit code 3. 0: never.")
@click.option("-d", "--detail", is_flag=True, help="List the updated pods, ready and not.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="One JSON event a line.")
@click.option("--plain", is_flag=True, help="Lines, even on a terminal.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def status() -> None:
    """Follow a rollout until it is done.

    On a terminal the view is redrawn in place; elsewhere each change is a line.
    """


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("--revision", default=0, type=click.IntRange(0), help="Print the template of this revision.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "name"]), default=None, help="Print the objects.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def history() -> None:
    """List the revisions of a workload, or show one."""


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("--to-revision", default=0, help="The revision to go back to. 0: the one before the newest.")
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def undo() -> None:
    """Go back to an earlier template."""


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def promote() -> None:
    """Let a rollout go on to its end.

    The partition becomes 0, and what is paused is resumed. Limits and hooks hold as before.
    """


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def abort() -> None:
    """Take back a rollout that is under way.

    All pods go back to the template that was current before, those that are new already as well: the partition
    becomes 0, and what is paused is resumed. A rollout that is over is undone with `undo`.
    """


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing()
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def pause() -> None:
    """Stop a rollout where it is."""


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def resume() -> None:
    """Let a paused rollout go on."""


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.rollout")
def restart() -> None:
    """Make all pods of a workload anew.

    Pods of a CloneSet are recreated, even where it updates in place: the variable RESTARTED_AT changes in the
    environment of their containers. The limits of the update strategy hold, and so does the partition.
    """
