"""`kruise manager`."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Callable, Sequence

import click

from kruise.cli.clusters import chosen_cluster
from kruise.cli.plugins import print_problems
from kruise.feature import Feature
from kruise.flags import FlagError, usage
from kruise.kinds import features
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.clock import RealClock
from kruise.machinery.election import LeadershipLostError
from kruise.manager import logs, options
from kruise.manager.gates import FeatureGateError
from kruise.manager.process import (
    FIELD_MANAGER,
    HistoryLostError,
    Manager,
    open_protection_log,
    reconcile_fields,
    tune_collection,
)


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def manager(arguments: Sequence[str]) -> None:
    """Run the controllers and webhooks until stopped."""
    if "--help" in arguments or "-h" in arguments:
        click.echo(f"Usage: kruise manager [flags]\n\nFlags:\n{usage(options.table_of(features()))}")
        return
    known = features()
    print_problems()
    sys.exit(run(arguments, known))


def run(arguments: Sequence[str], features: Sequence[Feature]) -> int:
    """The whole process; returns its exit code. Embedders pass features of their own."""
    try:
        chosen = options.parse(arguments, os.environ, features)
        config = chosen_cluster(chosen.kubeconfig, chosen.context)
    except (FlagError, FeatureGateError, ClientError) as error:
        click.echo(f"kruise manager: {error}", err=True)
        return 2
    logs.set_up(as_json=chosen.log_json, verbosity=chosen.verbosity, current=reconcile_fields)

    async def main() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stopper(stop))
        clock = RealClock()
        transport = HttpTransport(config, clock=clock, user_agent=FIELD_MANAGER)
        open_protection_log(chosen.protection_log_path)
        tune_collection()
        await Manager(chosen, features, transport, clock=clock, random=random.SystemRandom()).run(stop)

    try:
        with asyncio.Runner(loop_factory=_fast_loop()) as runner:
            runner.run(main())
    except LeadershipLostError as error:
        click.echo(f"kruise manager: {error}; ending, so that nothing is decided twice", err=True)
        return 1
    except (HistoryLostError, OSError) as error:
        click.echo(f"kruise manager: {error}", err=True)
        return 1
    return 0


def _stopper(stop: asyncio.Event) -> Callable[[], None]:
    """The first signal asks for an orderly end, the second ends at once."""

    def on_signal() -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    return on_signal


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed (`pip install pykruise[fast]`)."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
