"""`kruise set`: image, env, resources, serviceaccount, partition, selector."""

from __future__ import annotations

import click

from kruise.cli import flags

_NAMES = flags.completed_by("targets_and_containers")


@click.group("set", cls=flags.Group)
def set_() -> None:
    """Change a workload: its images, variables, resources, service account, partition; the selector of a Service.

    Only what differs is sent, so no other field of the object is touched. `unchanged` is printed where nothing does.
    """


@set_.command(cls=flags.Command)
@click.argument(
    "words",
    nargs=-1,
    metavar="KIND/NAME CONTAINER=IMAGE...",
    shell_complete=_NAMES,
)
@flags.where(local=True)
@flags.writing(wait=True, record=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.setting")
def image() -> None:
    """Set images of containers: kruise set image cloneset/web main=nginx:1.27. A `*` means all containers."""


@set_.command(cls=flags.Command)
@click.argument(
    "words",
    nargs=-1,
    metavar="KIND/NAME NAME=VALUE... NAME-...",
    shell_complete=_NAMES,
)
@flags.where(local=True)
@click.option("-c", "--containers", default="*", show_default=True, help="Containers to change; wildcards are allowed.")
@click.option("-e", "--env", "more", multiple=True, help="Another NAME=VALUE.")
@click.option("--from", "source", default="", help="Take variables from configmap/NAME or secret/NAME.")
@click.option("--keys", default="", help="With --from: only these keys, such as a,b.")
@click.option("--prefix", default="", help="With --from: what the names begin with.")
@click.option("--list", "list_only", is_flag=True, help="Print the variables and change nothing.")
@click.option("--resolve", is_flag=True, help="With --list: read values from ConfigMaps and Secrets.")
@click.option("--overwrite/--no-overwrite", default=True, help="Whether variables that are there may change.")
@flags.writing(wait=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.setting")
def env() -> None:
    """Set, remove (NAME-), import (--from) or list (--list) variables of containers."""


@set_.command(cls=flags.Command)
@flags.words
@flags.where(local=True)
@click.option("-c", "--containers", default="*", show_default=True, help="Containers to change; wildcards are allowed.")
@click.option("--limits", default="", help="Such as cpu=200m,memory=512Mi.")
@click.option("--requests", default="", help="Such as cpu=100m,memory=256Mi.")
@flags.writing(wait=True, record=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.setting")
def resources() -> None:
    """Set requests and limits of containers. What is not named stays."""


@set_.command(cls=flags.Command)
@flags.words
@flags.where(local=True)
@flags.writing(wait=True, record=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.setting")
def serviceaccount() -> None:
    """Set the service account of the pods: kruise set serviceaccount cloneset/web NAME."""


@set_.command(cls=flags.Command)
@flags.words
@flags.where(local=True)
@click.option("--resource-version", default="", help="Refuse unless the object has this version.")
@flags.writing(record=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.setting")
def selector() -> None:
    """Set the selector of a Service: kruise set selector service web app=web,tier=front."""


@set_.command(cls=flags.Command)
@click.argument("words", nargs=-1, metavar="KIND/NAME NUMBER|PERCENT%", shell_complete=_NAMES)
@flags.where(local=True)
@flags.writing(wait=True, record=True)
@flags.connection
@flags.carried_out_by("kruise.cli.work.setting")
def partition() -> None:
    """Set how many pods stay at their old template: kruise set partition cloneset/web 2, or 40%."""


set_.add_command(serviceaccount, "sa")
