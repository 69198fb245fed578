"""`kruise restart`: containers of a running pod, by a ContainerRecreateRequest."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@click.argument("pod", shell_complete=flags.completed_by("pods"))
@click.option(
    "-c",
    "--container",
    "containers",
    multiple=True,
    help="A container to restart; without one, all of them.",
    shell_complete=flags.completed_by("containers_of_pod"),
)
@click.option("--ordered", is_flag=True, help="One after the other: the next when the one before is ready.")
@click.option("--force", is_flag=True, help="Also those that were replaced since, or are still starting.")
@click.option("--grace", type=click.IntRange(0), help="Seconds for hook and end of a container. The pod's by default.")
@click.option("--unready-grace", type=click.IntRange(0), help="Make the pod not ready, and stop so many seconds later.")
@click.option("--min-started", type=click.IntRange(0), help="Seconds that a new container must have run.")
@click.option("--ignore-failures", is_flag=True, help="Go on where a container cannot be stopped.")
@click.option(
    "--timeout", default=300, show_default=True, type=click.IntRange(3), help="Give up after so many seconds."
)
@click.option("--keep", default=300, show_default=True, type=click.IntRange(0), help="Seconds to keep the request for.")
@click.option("--no-wait", is_flag=True, help="Only ask for it.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="What became of it, as data.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.restart")
def restart() -> None:
    """Restart containers of POD, and follow it until they are ready again. The pod stays, other containers run on."""
