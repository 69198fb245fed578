"""`kruise install` and `kruise uninstall`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import yaml

from kruise import release
from kruise.api.core.images import reference_problem
from kruise.cli.clusters import chosen_cluster
from kruise.cli.plugins import print_problems
from kruise.cli.session import duration
from kruise.cli.takeover import refuse_over_original
from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.clock import RealClock
from kruise.manager import gates
from kruise.manager.installation import monitoring
from kruise.manager.installation.chart import chart_files, kustomize_files
from kruise.manager.installation.installer import InstallationError, Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.installation.removal import Remover
from kruise.manager.installation.values import AZURE, POD_FAILURE_POLICY, WEBHOOK_TIMEOUT, by_path
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
@click.option("--image", default="", help="Image of manager and node daemon, which then run in the cluster.")
@click.option("--daemon-image", default="", help="Image of the node daemon alone, for a manager that runs elsewhere.")
@click.option("--set", "chosen", multiple=True, metavar="PATH=VALUE", help="A value, such as manager.replicas=3.")
@click.option("--values", "file", type=click.Path(exists=True, dir_okay=False), help="YAML file of values.")
@click.option("--print", "print_only", is_flag=True, help="Print the manifests as YAML and change nothing.")
@click.option("--write-chart", type=click.Path(file_okay=False), help="Write the Helm chart there and change nothing.")
@click.option(
    "--write-kustomize", type=click.Path(file_okay=False), help="Write a kustomize base there and change nothing."
)
@click.option(
    "--takeover", is_flag=True, help="Take over from OpenKruise; kruise doctor --takeover tells what happens."
)
@click.option("--undo", is_flag=True, help="With --takeover: go back to OpenKruise.")
@click.option("--dry-run", is_flag=True, help="With --takeover: tell what would happen, and change nothing.")
@click.option(
    "--timeout",
    default="60s",
    show_default=True,
    help="How long to wait for each definition, and for pods to go or to come, such as 2m.",
)
def install(
    namespace: str,
    kubeconfig: str,
    context: str,
    image: str,
    daemon_image: str,
    chosen: tuple[str, ...],
    file: str | None,
    print_only: bool,
    write_chart: str | None,
    write_kustomize: str | None,
    takeover: bool,
    undo: bool,
    dry_run: bool,
    timeout: str,
) -> None:
    """Install PyKruise: namespaces, definitions, rights, Service and webhook configurations.

    With --image, manager and node daemon run in the cluster, too; without it, what runs there already stays. Values are
    those of the Helm chart: --set featureGates=ImagePullJobGate=true.

    May be repeated at any time. Over a cluster that stored older versions of a kind it rewrites the objects and then
    drops those versions from the definition's status.

    With --takeover it takes the place of OpenKruise (docs/takeover.md): no pod is restarted, and --undo goes back.
    """
    seconds = _seconds(timeout)
    if image and daemon_image:
        raise click.UsageError("--image is for manager and daemon: it does not go with --daemon-image")
    if write_chart or write_kustomize:
        print_problems()
        if write_chart:
            _write(Path(write_chart), chart_files(features(), release()))
        if write_kustomize:
            _write(Path(write_kustomize), kustomize_files(features()))
        return
    given = image or daemon_image
    runs = ("manager", "daemon") if image else ("daemon",) if daemon_image else ()
    settings = {**_values_of(file), **_settings(chosen), **(_image(given) if given else {})}
    if (undo or dry_run) and not takeover:
        raise click.UsageError(f"--{'undo' if undo else 'dry-run'} goes with --takeover")
    if undo and (given or settings):
        raise click.UsageError("--undo brings back what was there: it takes no values and no image")
    if settings and not runs and set(settings) - _WITHOUT_IMAGE:
        raise click.UsageError("values of manager and daemon need --image: without it neither is installed")
    if takeover:
        if print_only:
            raise click.UsageError("--print does not go with --takeover: --dry-run tells what would happen")
        print_problems()
        _with_client(kubeconfig, context, _taking_over(namespace, settings, runs, seconds, dry_run=dry_run, undo=undo))
        return
    try:
        objects = manifests(features(), namespace=namespace, values=settings, runs=runs)
    except (ValueError, gates.FeatureGateError) as error:
        raise click.UsageError(f"--set: {error}") from error
    print_problems()
    if print_only:
        click.echo(yaml.dump_all(objects, sort_keys=False), nl=False)
        return

    async def run(client: Client) -> None:
        await refuse_over_original(client, namespace)
        done = await Installer(client, clock=RealClock(), report=click.echo, timeout=seconds).install(objects)
        click.echo(
            f"installed: {done.created} created, {done.configured} configured, {done.unchanged} unchanged, "
            f"{done.rewritten} stored objects rewritten"
        )

    _with_client(kubeconfig, context, run)


def _taking_over(
    namespace: str, settings: Mapping[str, Any], runs: Sequence[str], timeout: float, *, dry_run: bool, undo: bool
) -> Callable[[Client], Awaitable[None]]:
    from kruise.cli.takeover import go_back, take_over
    from kruise.manager.installation.takeover.note import NoteError

    async def run(client: Client) -> None:
        clock = RealClock()
        try:
            if undo:
                await go_back(client, namespace=namespace, clock=clock, timeout=timeout, dry_run=dry_run)
                return
            await take_over(
                client, namespace=namespace, chosen=settings, runs=runs, clock=clock, timeout=timeout, dry_run=dry_run
            )
        except NoteError as error:
            raise InstallationError(str(error)) from error
        except (ValueError, gates.FeatureGateError) as error:
            raise click.UsageError(f"--set: {error}") from error

    return run


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
@click.option("--check", is_flag=True, help="Change nothing: only refuse where custom resources exist.")
@click.option(
    "--timeout",
    default="120s",
    show_default=True,
    help="How long to wait until all custom resources are gone, such as 5m.",
)
def uninstall(
    namespace: str,
    kubeconfig: str,
    context: str,
    with_resources: bool,
    webhooks_only: bool,
    check: bool,
    timeout: str,
) -> None:
    """Remove PyKruise, whether a manager runs or not.

    Refuses while custom resources exist, since they would be deleted with their definitions. May be repeated: it goes
    on where it stopped.
    """
    if webhooks_only and with_resources:
        raise click.UsageError("--webhooks-only leaves custom resources alone: it does not go with --with-resources")
    if check and (webhooks_only or with_resources):
        raise click.UsageError("--check changes nothing: it goes with neither --webhooks-only nor --with-resources")
    seconds = _seconds(timeout)
    everything = {"networkPolicy.enabled": True, **monitoring.EVERYTHING}
    objects = manifests(features(), namespace=namespace, values=everything, runs=("manager", "daemon"))
    print_problems()

    async def run(client: Client) -> None:
        remover = Remover(client, clock=RealClock(), report=click.echo, timeout=seconds)
        if check:
            await remover.check(objects)
            click.echo("there are no custom resources: nothing stands in the way")
            return
        if webhooks_only:
            cleared = await remover.clear_webhooks(objects)
            click.echo(
                f"nothing is intercepted any more: no entry is left ({cleared} taken away); a manager puts them back"
            )
            return
        removed = await remover.uninstall(objects, with_resources=with_resources)
        click.echo(f"uninstalled: {removed} objects deleted" if removed else "nothing to remove")

    _with_client(kubeconfig, context, run)


_WITHOUT_IMAGE = {
    "featureGates",
    "installation.roleListGroups",
    "serviceAccount.annotations",
    "crds.managed",
    AZURE,
    POD_FAILURE_POLICY,
    WEBHOOK_TIMEOUT,
}
"""Values that matter even where neither manager nor daemon is installed: rights and webhooks follow them."""


def _image(text: str) -> dict[str, str]:
    if reason := reference_problem(text):
        raise click.UsageError(f"{text!r} is no image: {reason}")
    head, slash, name = text.rpartition("/")
    # Of `name@sha256:digest` the digest stands where a tag would.
    name, _, tag = name.partition(":")
    return {"manager.image.repository": f"{head}{slash}{name}", "manager.image.tag": tag or "latest"}


def _settings(chosen: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for text in chosen:
        path, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"--set {text}: write PATH=VALUE, such as manager.replicas=3")
        # Gates look like YAML of their own.
        found[path] = value if path == "featureGates" else yaml.safe_load(value)
    return found


def _values_of(file: str | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        tree = yaml.safe_load(Path(file).read_text()) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--values {file}: {error}") from error
    if not isinstance(tree, dict):
        raise click.UsageError(f"--values {file}: not a mapping of values")
    return by_path(tree)


def _write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    click.echo(f"{directory}: {len(files)} files written")


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
