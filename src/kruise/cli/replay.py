"""`kruise replay`: decide over a dump again, with the code of today, and keep it as a golden test."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@click.argument("dumps", nargs=-1, metavar="DUMP...", type=click.Path())
@click.option("--golden", default="", metavar="FOLDER", help="Keep the dump as a golden test in this folder.")
@click.option("--name", default="", help="With --golden: what to call it.")
@click.option("--accept", is_flag=True, help="With --golden: record what is decided now, and overwrite.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="The result as data.")
@flags.carried_out_by("kruise.cli.work.replay")
def replay() -> None:
    """Decide over a dump again and compare.

    A dump comes from kruise journal KIND/NAME --dump FILE; a dash reads it from the standard input. No cluster is
    asked. Exit codes: 0 the same plan, 1 another plan, 2 not readable.
    """
