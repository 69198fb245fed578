"""`kruise up`, `down`, `status` and `kubeconfig`: the local cluster on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kruise.local.state import Running, State, StateError, StateInUseError, directory, process_start
from kruise.machinery.client.kubeconfig import users_files
from kruise.machinery.codec import evolve
from kruise.manager import gates

if TYPE_CHECKING:
    from kruise.local.cluster import LocalCluster

DEFAULT_PORT = 7443
OLDEST_KUBECTL = 28
_READY_SECONDS = 30.0

_output = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to answer.")


@click.command()
@click.option("--nodes", default=3, show_default=True, type=click.IntRange(0, 5000), help="Simulated nodes.")
@click.option("--zones", default="a,b,c", show_default=True, help="Zones that the nodes are spread over.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any free port."
)
@click.option("--detach", is_flag=True, help="Return when it is ready and leave it running.")
@click.option("--feature-gates", default="", help="Gates of the manager, such as CloneSetPartitionRollback=true.")
@click.option("--bare", is_flag=True, help="Kubernetes alone: nothing of PyKruise is installed, and no manager runs.")
@click.option("--no-merge", is_flag=True, help="Leave your kubeconfig alone: the cluster has one of its own.")
def up(nodes: int, zones: str, port: int, detach: bool, feature_gates: str, bare: bool, no_merge: bool) -> None:
    """Start a local Kubernetes with PyKruise in one process: no Docker, no root.

    It becomes the current context of your kubeconfig (the first of KUBECONFIG, else ~/.kube/config). kruise down takes
    it out again.
    """
    names = tuple(part.strip() for part in zones.split(",") if part.strip())
    if not names:
        raise click.ClickException("--zones needs at least one name, for example --zones a,b,c")
    try:
        gates.parse(feature_gates)
    except gates.FeatureGateError as error:
        raise click.ClickException(str(error)) from error
    state = State(directory())
    try:
        if detach:
            flags = ["--nodes", str(nodes), "--zones", zones, "--port", str(port), "--feature-gates", feature_gates]
            flags += [flag for flag, is_on in (("--bare", bare), ("--no-merge", no_merge)) if is_on]
            _detached(state, flags)
        else:
            with state.held():
                _run(state, nodes, names, port, None if bare else feature_gates, merge=not no_merge)
    except (StateError, OSError) as error:
        raise click.ClickException(_explained(error, port)) from error


def _run(
    state: State, nodes: int, zones: tuple[str, ...], port: int, feature_gates: str | None, *, merge: bool
) -> None:
    if state.running() is not None:
        raise state.in_use()
    _forget(state)  # one that died left its context behind
    try:
        asyncio.run(_serve(state, nodes, zones, port, feature_gates, merge=merge))
    finally:
        record = state.recorded()
        if record is None or record.pid == os.getpid():
            _forget(state)


async def _serve(
    state: State, nodes: int, zones: tuple[str, ...], port: int, feature_gates: str | None, *, merge: bool
) -> None:
    """`feature_gates` are the manager's; None: there is no manager."""
    began = time.monotonic()
    # The cluster is large, and whoever detaches or only asks for help need not load it.
    from kruise.api.native.storage import STORAGE_CLASSES
    from kruise.local.cluster import ClusterOptions, LocalCluster
    from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
    from kruise.local.webhooks.https import HttpsCaller
    from kruise.machinery.clock import RealClock
    from kruise.manager import logs

    logs.set_up(as_json=False, verbosity=0, current=dict, stream=state.log.open("a", buffering=1, encoding="utf-8"))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    caller = HttpsCaller()
    cluster = LocalCluster(ClusterOptions(nodes=nodes, zones=zones), clock=RealClock(), caller=caller)
    async with contextlib.AsyncExitStack() as ends:
        ends.push_async_callback(caller.close)
        served = await ends.enter_async_context(cluster.serving(port=port))
        await cluster.client("kruise-up").create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
        if feature_gates is not None:
            await ends.enter_async_context(_manager(cluster, feature_gates))
        running = Running(
            pid=os.getpid(),
            url=served.url,
            started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            process_start=process_start(os.getpid()),
        )
        if merge:
            running = await asyncio.to_thread(_merged, state, running, served.kubeconfig)
        state.write(running, served.kubeconfig)
        click.echo(f"local Kubernetes is up at {served.url} ({time.monotonic() - began:.1f} s)")
        click.echo(_next_steps(state, running))
        await _until(stop, cluster)
    click.echo("local Kubernetes is down")


@contextlib.asynccontextmanager
async def _manager(cluster: LocalCluster, feature_gates: str) -> AsyncIterator[None]:
    """PyKruise, installed and at work."""
    from kruise.cli.plugins import print_problems
    from kruise.embedded import install, managing
    from kruise.kinds import features
    from kruise.manager.options import FLAGS_FOR_TRYING_OUT, Options

    await install(cluster, features())
    print_problems()
    chosen = gates.resolve({**gates.FOR_TRYING_OUT, **gates.parse(feature_gates)})
    options = Options(gates=chosen, flags=FLAGS_FOR_TRYING_OUT)
    async with managing(cluster, features(), options, random=random.SystemRandom()) as manager:
        await manager.serving.wait()
        yield


async def _until(stop: asyncio.Event, cluster: LocalCluster) -> None:
    if not sys.stdout.isatty():
        await stop.wait()
        return
    from rich.live import Live
    from rich.text import Text

    with Live(refresh_per_second=4, transient=True) as live:
        while not stop.is_set():
            live.update(Text(f"{cluster.summary()}   (Ctrl-C ends it)"))
            try:
                async with asyncio.timeout(0.5):
                    await stop.wait()
            except TimeoutError:
                continue


def _merged(state: State, running: Running, kubeconfig: str) -> Running:
    """Make it the current context of the user's kubeconfig. It runs as well where that cannot be done."""
    from kruise.local.user_kubeconfig import UserKubeconfigError, merge

    files = users_files(os.environ)
    if state.kubeconfig in files:
        return running  # its own one is in use
    try:
        found = merge(json.loads(kubeconfig), state.path, files)
    except UserKubeconfigError as error:
        click.echo(f"Warning: {error}. The context of this cluster was not added to it", err=True)
        return running
    return evolve(running, context=found.context, merged_into=str(found.path))


def _forget(state: State) -> None:
    """Take its context out of the user's kubeconfig, then remove its traces."""
    from kruise.local.user_kubeconfig import UserKubeconfigError, withdraw

    record = state.recorded()
    files = [*users_files(os.environ), *([Path(record.merged_into)] if record and record.merged_into else [])]
    try:
        withdraw(state.path, [file for file in files if file != state.kubeconfig])
    except UserKubeconfigError as error:
        click.echo(f"Warning: {error}. The context of the local cluster may still be in it", err=True)
    state.clear()


def _next_steps(state: State, running: Running) -> str:
    if running.context:
        lines = [f'  context "{running.context}" is the current one in {running.merged_into}']
    else:
        lines = [f"  export KUBECONFIG={state.kubeconfig}"]
    lines.append("  kubectl get nodes")
    trouble = kubectl_trouble()
    if trouble:
        lines.append(f"  note: {trouble}")
    return "\n".join(lines)


def kubectl_trouble() -> str:
    """What is missing to talk to the cluster. Only the PATH is looked at: a kubectl that is asked for its version may
    take seconds, or mean another program."""
    if shutil.which("kubectl") is not None:
        return ""
    return (
        f"there is no kubectl on the PATH (1.{OLDEST_KUBECTL} or newer will do). Get one from your package manager "
        "(for example `apt-get install kubernetes-client` or `brew install kubectl`) "
        "or from https://kubernetes.io/docs/tasks/tools/"
    )


def _detached(state: State, flags: list[str]) -> None:
    state.prepare()
    if state.running() is not None:
        raise state.in_use()
    command = [sys.executable, "-m", "kruise.cli.main", "up", *flags]
    with state.log.open("ab") as log:
        start = log.tell()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + _READY_SECONDS
    while (found := state.running()) is None or found.pid != process.pid:
        if process.poll() is not None:
            said = _said(state, start).splitlines()
            # One that started a moment before writes into the same log: the last line may be of its own.
            for line in reversed(said):
                if line.startswith("Error: "):
                    raise click.ClickException(line.removeprefix("Error: "))
            last = said[-1] if said else ""
            raise click.ClickException(f"{last or f'it ended with code {process.returncode}'}; see {state.log}")
        if time.monotonic() > deadline:
            process.terminate()
            raise click.ClickException(f"not ready within {_READY_SECONDS:g} s; see {state.log}")
        time.sleep(0.05)
    for line in _said(state, start).splitlines():
        if line.startswith("Warning: "):
            click.echo(line, err=True)
    click.echo(f"local Kubernetes is up at {found.url} (pid {found.pid})")
    click.echo(_next_steps(state, found))


def _said(state: State, start: int) -> str:
    with state.log.open("rb") as log:
        log.seek(start)
        return log.read().decode(errors="replace").strip()


def _explained(error: OSError | StateError, port: int) -> str:
    if isinstance(error, OSError) and "address already in use" in str(error).lower():
        return f"port {port} is taken by another program: choose another with --port, or --port 0 for any free one"
    return str(error)


@click.command()
def down() -> None:
    """End the local cluster."""
    state = State(directory())
    was_running = state.stop()
    try:
        with state.held():
            _forget(state)
    except StateInUseError as error:
        if not was_running:  # else the next one is starting already, and what is there is its own
            raise click.ClickException(str(error)) from error
    except StateError as error:
        raise click.ClickException(str(error)) from error
    click.echo("local Kubernetes is down" if was_running else "no local cluster is running")


@click.command()
@_output
def status(output: str) -> None:
    """Tell whether the local cluster runs. Exit code 1: it does not."""
    state = State(directory())
    found = state.running()
    if output == "json":
        about: dict[str, Any] = {"running": found is not None}
        if found is not None:
            about |= {"url": found.url, "pid": found.pid, "started": found.started, "kubeconfig": str(state.kubeconfig)}
            about |= {"context": found.context, "mergedInto": found.merged_into}
        click.echo(json.dumps(about))
    elif found is None:
        click.echo("no local cluster is running: kruise up starts one")
    else:
        click.echo(f"running at {found.url} (pid {found.pid}, since {found.started})\nkubeconfig: {state.kubeconfig}")
        if found.context:
            click.echo(f'context "{found.context}" in {found.merged_into}')
    if found is None:
        sys.exit(1)


@click.command()
@click.option("--path", is_flag=True, help="Print where it is instead of what it says.")
def kubeconfig(path: bool) -> None:
    """Print the kubeconfig of the running local cluster."""
    state = State(directory())
    if state.running() is None:
        raise click.ClickException("no local cluster is running: kruise up starts one")
    click.echo(str(state.kubeconfig) if path else state.kubeconfig.read_text(encoding="utf-8"), nl=path)
