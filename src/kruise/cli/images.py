"""`kruise images`: which node has which image, and what is being pulled."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@click.argument("words", metavar="[IMAGE]...", nargs=-1, shell_complete=flags.completed_by("images"))
@click.option(
    "--node",
    "names",
    multiple=True,
    help="Only this node; may be repeated.",
    shell_complete=flags.completed_by("nodes"),
)
@click.option("-l", "--selector", default="", help="Only nodes with these labels.")
@click.option("--pulls", is_flag=True, help="Only what is being pulled, waits for it, or could not be pulled.")
@click.option("--check", is_flag=True, help="Exit code 0: all nodes have the images; 3: some still pull; 1: no.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="The same as data.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.images")
def images() -> None:
    """Show images and the nodes that have them; of each IMAGE, every node and how far it is.

    IMAGE is a name (nginx: all tags), a name with a tag or digest, or a pattern such as '*/team/*'.
    """
