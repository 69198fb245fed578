"""`kruise why`: what holds a workload or a pod back, down to what one can do about it."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@flags.words
@flags.where()
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="The same as data, complete.")
@click.option("--manager-url", default="", help="Address of the manager's journal, where the cluster cannot reach it.")
@click.option("--anew", is_flag=True, help="Do not ask the manager: decide anew from the live objects.")
@click.option("--feature-gates", default="", help="The manager's gates, for a decision made anew.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.why")
def why() -> None:
    """Tell why pods are not where they should be, and what to do about it.

    KIND/NAME is a workload or a pod; --all tells one line about each workload of the namespace that does not move, and
    KIND --all or KIND -l SELECTOR about some of them. Jobs do not roll out, and are none of these. Exit code 0: nothing
    waits, or only what the spec asks to wait (partition, paused, OnDelete); 3: something waits.
    """
