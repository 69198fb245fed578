"""`kruise debug`: an ephemeral container for each pod that a selector matches."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@click.argument("whom", metavar="SELECTOR")
@click.argument("command", nargs=-1)
@click.option("--image", required=True, help="The image of the container, such as busybox:1.36.")
@click.option("--name", default="", help="Of the job. One that is free, if it is left out.")
@click.option("-c", "--container", default="", help="Of the ephemeral container. The name of the job, if left out.")
@click.option("--target", default="", help="The container whose processes are to be seen.")
@click.option("--replicas", type=click.IntRange(min=1), default=None, help="At most so many pods, the oldest first.")
@click.option("--parallelism", type=click.IntRange(min=1), default=None, help="So many pods at once. All, if left out.")
@click.option("--deadline", default="", help="End the job after this time, such as 5m.")
@click.option("--attach-hint", is_flag=True, help="Print for each pod how to attach to its container.")
@click.option("--wait/--no-wait", default=True, help="Follow the containers until they run or have ended.")
@click.option("--timeout", default="2m", help="Give up waiting after this time, with exit code 3. 0: never.")
@click.option("--rm", "remove", is_flag=True, help="Delete the job in the end. The containers stay in the pods.")
@flags.connection
@flags.carried_out_by("kruise.cli.work.debug")
def debug() -> None:
    """Add a container to each running pod that SELECTOR matches, and follow it.

    SELECTOR are labels, or a workload or pod as KIND/NAME. It makes an EphemeralJob. Without a COMMAND the container is
    a shell that waits for somebody to attach; with one it runs, and its end is told. Exit codes: 0 done, 1 no pod
    matches or a container failed, 3 not in time.

    \b
    kruise debug app=web --image busybox:1.36 --attach-hint
    kruise debug cloneset/web --image busybox:1.36 -- sh -c 'nslookup db'
    """
