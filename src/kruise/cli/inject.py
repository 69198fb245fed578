"""`kruise inject`: which sidecars a pod would get, from which SidecarSet, and why not from the others."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="The same as data, with the whole pod."
)
@click.option("--feature-gates", default="", help="The manager's gates, where they are not the defaults.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.inject")
def inject() -> None:
    """Show which sidecars a new pod would get, from which SidecarSet, and why not from the others. Nothing is made.

    -f names manifests of pods, or of workloads: then it is about the pods of their templates. KIND/NAME is a workload
    that is there. Exit code 1: the pod would be refused.
    """
