"""The `kruise` command. Sub-commands are imported only when they are used: `--help` must come at once."""

from __future__ import annotations

import gc
import importlib
import sys

import click

from kruise import release
from kruise.cli import flags, terminal

_COMMANDS = {
    "completion": ("kruise.cli.completion", "completion", "Print what a shell needs to complete commands and names."),
    "debug": ("kruise.cli.debug", "debug", "Add a container to running pods, and follow it."),
    "daemon": ("kruise.cli.daemon", "daemon", "Run the node daemon."),
    "describe": ("kruise.cli.describe", "describe", "Show the state of a workload's rollout, pod by pod."),
    "doctor": ("kruise.cli.doctor", "doctor", "Tell what is wrong with an installation, and mend it."),
    "down": ("kruise.cli.up", "down", "End the local cluster."),
    "expose": ("kruise.cli.expose", "expose", "Make a Service for the pods of a workload."),
    "gitops": ("kruise.cli.gitops", "gitops", "Print what GitOps tools must know of our kinds."),
    "images": ("kruise.cli.images", "images", "Show which node has which image, and what is being pulled."),
    "inject": ("kruise.cli.inject", "inject", "Show which sidecars a pod would get, and why not others."),
    "install": ("kruise.cli.install", "install", "Install PyKruise into a cluster, or print what would be installed."),
    "journal": ("kruise.cli.journal", "journal", "Show the manager's last decisions, or dump one."),
    "kubeconfig": ("kruise.cli.up", "kubeconfig", "Print the kubeconfig of the local cluster."),
    "manager": ("kruise.cli.manager", "manager", "Run the controllers and webhooks."),
    "migrate": ("kruise.cli.migrate", "migrate", "Give the pods of one workload to another."),
    "nodes": ("kruise.cli.nodes", "nodes", "Bring simulated nodes to a cluster."),
    "plan": ("kruise.cli.plan", "plan", "Show what a change will do, before it is made."),
    "replay": ("kruise.cli.replay", "replay", "Decide over a dump again, and compare."),
    "restart": ("kruise.cli.restart", "restart", "Restart containers of a running pod."),
    "rollout": (
        "kruise.cli.rollout",
        "rollout",
        "Follow, undo, pause, resume, promote, abort and restart rollouts.",
    ),
    "scale": ("kruise.cli.scale", "scale", "Set the number of replicas."),
    "scaledown": ("kruise.cli.scale", "scaledown", "Delete named pods of a CloneSet and lower its replicas."),
    "set": ("kruise.cli.setting", "set_", "Change images, variables, resources and more of a workload."),
    "status": ("kruise.cli.up", "status", "Tell whether the local cluster runs."),
    "uninstall": ("kruise.cli.install", "uninstall", "Remove PyKruise from a cluster."),
    "up": ("kruise.cli.up", "up", "Start a local Kubernetes in one process: no Docker, no root."),
    "version": ("kruise.cli.version", "version", "Print the version of this command."),
    "why": ("kruise.cli.why", "why", "Tell why pods are not where they should be, and what to do about it."),
}


class LazyGroup(flags.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Click would import every command to show its help line.
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMANDS[name][2]) for name in sorted(_COMMANDS)])


def _tell_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Only now: to look it up takes as long as all else that comes first."""
    if value and not ctx.resilient_parsing:
        click.echo(f"kruise, version {release()}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Advanced workloads and in-place update for Kubernetes."""


def main() -> None:
    terminal.prepare()
    try:
        sys.exit(cli.main(prog_name="kruise", standalone_mode=False))  # None, or the code of `Context.exit`
    except click.Abort:
        click.echo("aborted", err=True)
        sys.exit(130)
    except Exception as error:
        if terminal.has_lost_reader(error):
            terminal.fall_silent()
            sys.exit(1)
        if not isinstance(error, click.ClickException):
            raise
        error.show()
        sys.exit(error.exit_code)
    finally:
        gc.freeze()  # Python looks for cycles once more before it ends, which takes longer than parsing the flags


if __name__ == "__main__":
    main()
