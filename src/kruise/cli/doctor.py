"""`kruise doctor`: whether an installation works, what to do where it does not, and what can be mended by itself."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@click.option("--fix", is_flag=True, help="Mend what changes nothing that somebody may have meant.")
@click.option("--preflight", is_flag=True, help="Ask the API server, too, whether it would take this installation.")
@click.option(
    "--takeover", is_flag=True, help="Tell what taking over from OpenKruise would do, and what is in the way."
)
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="The same as data.")
@click.option("--system-namespace", default="kruise-system", show_default=True, help="The manager's namespace.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.doctor")
def doctor() -> None:
    """Tell what is wrong with an installation of PyKruise, and what to do about it.

    Looks at what is installed, at manager and daemons, at webhooks and certificates, and at what objects of all
    namespaces wait for (-n: of one). Where nothing is installed, it tells whether it could be. Requests that pass the
    webhooks are made with dryRun, so nothing is changed without --fix.

    Exit code 0: nothing to do; 3: something is broken; 4: nothing is, and something will be; 1: it cannot look.
    """
