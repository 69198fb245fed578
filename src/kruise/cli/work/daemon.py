"""What `kruise daemon` does."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence

import click

from kruise.cli.clusters import chosen_cluster
from kruise.daemon import options
from kruise.daemon.cri.sockets import NoRuntimeError
from kruise.daemon.process import FIELD_MANAGER
from kruise.daemon.process import run as work
from kruise.daemon.recent import log_decisions, small_journal
from kruise.flags import FlagError, usage
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.slim import SlimTransport
from kruise.machinery.clock import RealClock
from kruise.manager import gates, logs


def daemon(arguments: Sequence[str]) -> None:
    if "--help" in arguments or "-h" in arguments:
        click.echo(f"Usage: NODE_NAME=... kruise daemon [flags]\n\nFlags:\n{usage(options.FLAGS)}")
        return
    sys.exit(run(arguments))


def run(arguments: Sequence[str]) -> int:
    """The whole process; returns its exit code."""
    try:
        chosen = options.parse(arguments, os.environ)
        resolved = gates.resolve(gates.parse(chosen.feature_gates))
        config = chosen_cluster(chosen.kubeconfig)
    except (FlagError, gates.FeatureGateError, ClientError) as error:
        click.echo(f"kruise daemon: {error}", err=True)
        return 2
    logs.set_up(as_json=False, verbosity=chosen.verbosity, current=dict)
    for noisy in ("h2", "hpack", "grpclib"):
        logging.getLogger(noisy).setLevel(logging.WARNING)  # every byte of every call

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stopper(stop))
        journal = small_journal()
        loop.add_signal_handler(signal.SIGUSR1, log_decisions, journal)
        clock = RealClock()
        transport = SlimTransport(config, clock=clock, user_agent=FIELD_MANAGER)
        await work(chosen, resolved, transport, clock=clock, random=random.SystemRandom(), stop=stop, journal=journal)

    try:
        asyncio.run(main())
    except (NoRuntimeError, OSError) as error:
        click.echo(f"kruise daemon: {error}", err=True)
        return 1
    return 0


def _stopper(stop: object) -> Callable[[], None]:
    """The first signal asks for an orderly end, the second ends at once."""

    def on_signal() -> None:
        if stop.is_set():  # type: ignore[attr-defined]
            os._exit(130)
        stop.set()  # type: ignore[attr-defined]

    return on_signal
