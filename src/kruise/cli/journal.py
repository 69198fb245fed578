"""`kruise journal`: the manager's last decisions, and a dump of the latest one."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@flags.words
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1), help="How many decisions, at most.")
@click.option("--id", "wanted", default="", help="Show this decision in full; the first signs of its id will do.")
@click.option("--follow", is_flag=True, help="Go on with decisions as they are made.")
@click.option(
    "--dump",
    default="",
    metavar="FILE",
    help="Write the latest snapshot and plan to a file, for kruise replay; -: print.",
)
@click.option("--redact", is_flag=True, help="With --dump: without values of variables, arguments and annotations.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="The entries as data.")
@click.option("--manager-url", default="", help="Address of the manager, where the API server cannot reach it.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.journal")
def journal() -> None:
    """Show the last decisions of the manager, the newest first.

    Each line is one pass over an object: a digest of what was seen, the actions that were decided, what is held back
    and by what, and how it went. Without a name: the decisions about all objects.

    The journal is in the memory of the manager that leads. It is asked through the API server, or at the address that
    --manager-url gives; both take the role kruise-journal-reader in the manager's namespace, which admins have anyway.
    Who has rights in one namespace only asks kruise why, which decides anew then.
    """
