"""`kruise nodes`: simulated nodes on any API server."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence

import click

from kruise.cli.clusters import chosen_cluster
from kruise.local.nodes import NodeModel, NodeSpec, make_nodes
from kruise.local.nodes.spec import SIMULATED
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.clock import RealClock


@click.command()
@click.option("--count", default=3, show_default=True, type=click.IntRange(1, 2560), help="How many nodes.")
@click.option("--zones", default="", help="Zones to spread them over, such as a,b,c.")
@click.option("--prefix", default="node-", show_default=True, help="What their names begin with.")
@click.option("--cpu", default="8", show_default=True, help="CPUs of each node.")
@click.option("--memory", default="32Gi", show_default=True, help="Memory of each node.")
@click.option("--max-pods", default=110, show_default=True, help="Pods that fit on a node.")
@click.option("--bandwidth", default=100.0, show_default=True, help="Megabytes a second for image pulls.")
@click.option("--seed", default=0, show_default=True, help="Makes container ids and speeds repeatable.")
@click.option("--daemon/--no-daemon", default=True, show_default=True, help="Report containers as the daemon does.")
@click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
@click.option("--context", default="", help="Context of the kubeconfig.")
def nodes(
    count: int,
    zones: str,
    prefix: str,
    cpu: str,
    memory: str,
    max_pods: int,
    bandwidth: float,
    seed: int,
    daemon: bool,
    kubeconfig: str,
    context: str,
) -> None:
    """Be COUNT nodes of a cluster: register them, and play the kubelet for the pods that are bound to them.

    No container runs. Pods become ready, restart in place, complete and fail as on real nodes; annotations on pods make
    them fail on demand. The Node objects stay when this ends.
    """
    if bandwidth <= 0:
        raise click.BadParameter("give a number above 0", param_hint="--bandwidth")
    places = [zone.strip() for zone in zones.split(",") if zone.strip()]
    specs = make_nodes(
        count, zones=places, prefix=prefix, cpu=cpu, memory=memory, pods=max_pods, bandwidth=bandwidth * 1e6
    )
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_run(specs, seed, daemon, kubeconfig, context))
    except* (ClientError, ValueError, OSError) as group:
        raise click.ClickException(str(_first(group))) from group


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _run(specs: Sequence[NodeSpec], seed: int, daemon: bool, kubeconfig: str, context: str) -> None:
    clock = RealClock()
    config = chosen_cluster(kubeconfig, context)
    client = Client(HttpTransport(config, user_agent="kruise-nodes"), clock=clock)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    cache = Cache(client, clock=clock, seed=seed)
    model = NodeModel(client, cache, clock=clock, seed=seed, nodes=specs, heartbeat=True, daemon=daemon)
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(cache.run()), tasks.create_task(model.run())]
            tasks.create_task(_announce(model, len(specs)))
            await stop.wait()
            for task in running:
                task.cancel()
    finally:
        await client.close()
    click.echo(f"stopped; remove the nodes with: kubectl delete nodes -l {SIMULATED}")


async def _announce(model: NodeModel, count: int) -> None:
    await model.ready.wait()
    click.echo(f"{count} simulated node{'s' if count > 1 else ''} ready; Ctrl-C ends")
