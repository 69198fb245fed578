"""`kruise migrate`."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@click.argument("to", metavar="KIND")
@click.option("--from", "source", required=True, help="The kind to take pods from.")
@click.option("--src-name", required=True, help="Name of the object to take pods from.")
@click.option("--dst-name", default="", help="Name of the object that gets them. Where pods are handed over: the same.")
@click.option("--create", is_flag=True, help="Make the object that gets the pods, without any, and move nothing.")
@click.option("--copy", "with_replicas", is_flag=True, help="With --create: with as many pods as the other one.")
@click.option("--replicas", default=-1, help="How many pods to move. -1: all.")
@click.option("--max-surge", default=1, show_default=True, help="How many pods there may be on top while moving.")
@click.option("--force", is_flag=True, help="Where pods are handed over: leave fields behind that KIND does not have.")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="Gates that the manager runs with.")
@click.option("--timeout-seconds", default=-1, help="Give up after this, with exit code 3. -1: never.")
@flags.writing()
@flags.connection
@flags.carried_out_by("kruise.cli.work.migrate")
def migrate() -> None:
    """Give the pods of one workload to another.

    Between Kubernetes' StatefulSet or DaemonSet and ours (kruise migrate asts --from sts, and back) the pods stay as
    they are and get another owner. Broken off, the same command goes on.

    A CloneSet is made from a Deployment (--create), or gets its pods step by step: up to --max-surge more, and when all
    its pods are available the Deployment loses as many.

    The namespace must be named with -n.
    """
