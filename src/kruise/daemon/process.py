"""The daemon as the process of one node: endpoint, runtimes, parts; started and stopped in order (DMN-4, DMN-11)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from random import Random

from kruise.daemon.cri.sockets import connect
from kruise.daemon.daemon import Daemon
from kruise.daemon.endpoints import TEXT, Answer, Endpoints
from kruise.daemon.network import NodeNetwork
from kruise.daemon.options import Options
from kruise.daemon.parts import Place, Settings, parts
from kruise.daemon.runtime import Network, Runtime
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import Clock
from kruise.machinery.journal import Journal
from kruise.machinery.metrics import Metrics

log = logging.getLogger(__name__)

FIELD_MANAGER = "kruise-daemon"
CHECKS = {
    "imagepuller": "nodeImageInformerSynced",
    "crr": "crrInformerSynced",
    "sync_node_pod_probe": "nodePodProbeInformerSynced",
}
"""What the health check of a part is called, by the part's name (DMN-90)."""


class RealNode:
    """Implements `kruise.daemon.runtime.Node` and `Nodes`: the one that this process runs on."""

    def __init__(self, name: str, runtimes: Mapping[str, Runtime], network: Network) -> None:
        self.name = name
        self.runtimes = runtimes
        self.network = network

    def find(self, name: str) -> RealNode | None:
        return self if name == self.name else None


async def run(
    options: Options,
    gates: Mapping[str, bool],
    transport: Transport,
    *,
    clock: Clock,
    random: Random,
    stop: asyncio.Event,
    journal: Journal | None = None,
) -> None:
    """Work until `stop` is set. Raises OSError where it cannot listen, NoRuntimeError without a runtime."""
    client = Client(transport, clock=clock, field_manager=FIELD_MANAGER)
    metrics = Metrics()
    settings = Settings(
        gates=gates,
        max_pulls=options.max_pulls,
        plugin_config_file=options.plugin_config_file,
        plugin_bin_dir=options.plugin_bin_dir,
    )
    waiting = ["starting"]
    daemons: list[Daemon] = []

    def healthz() -> Answer:
        late = waiting or [name for name in CHECKS if not daemons[0].is_synced(name)]
        if not late:
            return 200, TEXT, b"ok"
        return 500, TEXT, f"check {CHECKS.get(late[0], late[0])} failed, err: not synced".encode()

    endpoints = Endpoints({"/healthz": healthz, "/metrics": lambda: (200, TEXT, _exposed(metrics))})
    if options.address:
        await endpoints.listen(options.address)
    runtimes = await connect(Path(options.socket_directory), options.socket_file)
    cache = Cache(client, clock=clock, seed=random.getrandbits(32))
    daemons.append(
        Daemon(
            parts(gates),
            place=Place.of(options.node, settings),
            nodes=RealNode(options.node, runtimes, NodeNetwork()),
            client=client,
            cache=cache,
            clock=clock,
            random=random,
            journal=journal,
            metrics=metrics,
        )
    )
    waiting.clear()
    log.info("daemon started", extra={"node": options.node, "runtimes": ", ".join(runtimes)})
    ending = asyncio.create_task(stop.wait(), name="stop")
    watches = asyncio.create_task(cache.run(), name="watches")
    work = asyncio.create_task(daemons[0].run(), name="parts")
    try:
        done, _ = await asyncio.wait({ending, watches, work}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        log.info("shutting down")
        for task in (ending, work, watches):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        await endpoints.close()
        for runtime in runtimes.values():
            runtime.close()
        await transport.close()


def _exposed(metrics: Metrics) -> bytes:
    from prometheus_client import generate_latest

    return generate_latest(metrics.registry)
