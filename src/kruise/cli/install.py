"""`kruise install` and `kruise uninstall`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click
import yaml

from kruise.api.core.images import reference_problem
from kruise.cli.clusters import chosen_cluster
from kruise.cli.plugins import print_problems
from kruise.cli.session import duration
from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.clock import RealClock
from kruise.manager import gates
from kruise.manager.installation.daemon import SOCKETS, DaemonImage
from kruise.manager.installation.installer import InstallationError, Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.removal import Remover
from kruise.verbs.errors import UsageError

T = TypeVar("T")

_namespace = click.option(
    "-n", "--namespace", default="kruise-system", show_default=True, help="The manager's namespace."
)
_kubeconfig = click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
_context = click.option("--context", default="", help="Context of the kubeconfig.")


@click.command()
@_namespace
@_kubeconfig
@_context
@click.option("--print", "print_only", is_flag=True, help="Print the manifests as YAML and change nothing.")
@click.option("--timeout", default="60s", show_default=True, help="How long to wait for each definition, such as 2m.")
@click.option("--daemon-image", default="", help="Image of the node daemon, which then runs on every node.")
@click.option(
    "--daemon-socket-dir", default=SOCKETS, show_default=True, help="Where nodes have their runtimes' sockets."
)
@click.option("--daemon-feature-gates", default="", help="Gates of the daemon: the same as the manager's.")
def install(
    namespace: str,
    kubeconfig: str,
    context: str,
    print_only: bool,
    timeout: str,
    daemon_image: str,
    daemon_socket_dir: str,
    daemon_feature_gates: str,
) -> None:
    """Install PyKruise: namespaces, definitions, rights, Service and webhook configurations.

    The node daemon is part of it if --daemon-image says which image to run; without it, a daemon that is there stays.

    May be repeated at any time. Over a cluster that stored older versions of a kind it rewrites the objects and then
    drops those versions from the definition's status.
    """
    seconds = _seconds(timeout)
    daemon = None
    if daemon_image:
        daemon = DaemonImage(
            image=_image(daemon_image), socket_directory=daemon_socket_dir, feature_gates=_gates(daemon_feature_gates)
        )
    elif daemon_feature_gates or daemon_socket_dir != SOCKETS:
        raise click.UsageError("flags of the daemon need --daemon-image: without it no daemon is installed")
    objects = manifests(features(), namespace=namespace, daemon=daemon)
    print_problems()
    if print_only:
        click.echo(yaml.dump_all(objects, sort_keys=False), nl=False)
        return

    async def run(client: Client) -> None:
        done = await Installer(client, clock=RealClock(), report=click.echo, timeout=seconds).install(objects)
        click.echo(
            f"installed: {done.created} created, {done.configured} configured, {done.unchanged} unchanged, "
            f"{done.rewritten} stored objects rewritten"
        )

    _with_client(kubeconfig, context, run)


@click.command()
@_namespace
@_kubeconfig
@_context
@click.option("--with-resources", is_flag=True, help="Delete all custom resources, and the pods they own, too.")
@click.option(
    "--webhooks-only",
    is_flag=True,
    help="Only stop intercepting requests, for when no manager answers. A manager that serves starts it again.",
)
@click.option(
    "--timeout",
    default="120s",
    show_default=True,
    help="How long to wait until all custom resources are gone, such as 5m.",
)
def uninstall(
    namespace: str, kubeconfig: str, context: str, with_resources: bool, webhooks_only: bool, timeout: str
) -> None:
    """Remove PyKruise, whether a manager runs or not.

    Refuses while custom resources exist, since they would be deleted with their definitions. May be repeated: it goes
    on where it stopped.
    """
    if webhooks_only and with_resources:
        raise click.UsageError("--webhooks-only leaves custom resources alone: it does not go with --with-resources")
    seconds = _seconds(timeout)
    # Whatever image it has.
    objects = manifests(features(), namespace=namespace, daemon=DaemonImage(image="any"))
    print_problems()

    async def run(client: Client) -> None:
        remover = Remover(client, clock=RealClock(), report=click.echo, timeout=seconds)
        if webhooks_only:
            cleared = await remover.clear_webhooks(objects)
            click.echo(
                f"nothing is intercepted any more: no entry is left ({cleared} taken away); a manager puts them back"
            )
            return
        removed = await remover.uninstall(objects, with_resources=with_resources)
        click.echo(f"uninstalled: {removed} objects deleted" if removed else "nothing to remove")

    _with_client(kubeconfig, context, run)


def _image(text: str) -> str:
    if reason := reference_problem(text):
        raise click.UsageError(f"--daemon-image: {text!r} is no image: {reason}")
    return text


def _gates(text: str) -> str:
    try:
        gates.parse(text)
    except gates.FeatureGateError as error:
        raise click.UsageError(f"--daemon-feature-gates: {error}") from error
    return text


def _seconds(timeout: str) -> float:
    try:
        return duration(timeout, "--timeout")
    except UsageError as error:
        raise click.UsageError(str(error)) from error


def _with_client(kubeconfig: str, context: str, run: Callable[[Client], Awaitable[Any]]) -> None:
    async def main() -> None:
        config = chosen_cluster(kubeconfig, context)
        client = Client(HttpTransport(config, user_agent="kruise-install"))
        try:
            await run(client)
        finally:
            await client.close()

    try:
        asyncio.run(main())
    except (InstallationError, ClientError) as error:
        raise click.ClickException(str(error)) from error
