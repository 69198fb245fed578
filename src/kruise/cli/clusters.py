"""Which cluster a command talks to."""

from __future__ import annotations

import click

from kruise.machinery.client.config import ClusterConfig, NothingConfiguredError
from kruise.machinery.client.kubeconfig import load


def chosen_cluster(kubeconfig: str = "", context: str = "", *, server: str = "") -> ClusterConfig:
    """What flags and kubeconfig say; where they say nothing, the local cluster of this machine, if one runs.

    `server`: an address was given, which must not get to see the keys of the local cluster.
    """
    try:
        return load(kubeconfig or None, context=context)
    except NothingConfiguredError:
        if kubeconfig or context or server:
            raise
        from kruise.local.state import State, directory

        state = State(directory())
        running = state.running()
        if running is None:
            raise
        click.echo(f"note: no other cluster is configured: this is the local one at {running.url}", err=True)
        return load(state.kubeconfig)
