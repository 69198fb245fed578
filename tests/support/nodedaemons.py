"""The node daemon on real nodes: a process for each, with the rights of an installation and no more (DMN-7)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from tests.support import rights
from tests.support.instances import in_life_of_this_process
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.ports import free_port
from tests.support.realnodes import RealNodes
from tests.support.world import World

Story = Callable[[World], Awaitable[None]]


class Daemons:
    """`kruise daemon` of every node, beside the manager of a cluster."""

    def __init__(self, cluster: KruiseCluster, nodes: RealNodes) -> None:
        self.cluster = cluster
        self.nodes = nodes
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, int] = {}

    def start(self, node: str, *flags: str) -> None:
        """Not from a thread that ends before it is done with: the daemon ends with the thread that started it."""
        user = self.nodes.kubeconfig_for(rights.user_of(rights.DAEMON), rights.groups_of())
        sockets = self.nodes.directory / "nodes" / node / "run"
        port = self._ports[node] = free_port()
        command = [
            sys.executable,
            "-m",
            "kruise.cli.main",
            "daemon",
            f"--kubeconfig={user}",
            f"--socket-dir={sockets}",
            f"--addr=127.0.0.1:{port}",
            *flags,
        ]
        wrapped = in_life_of_this_process(
            self.cluster.directory / f"{node}-kruise-daemon.pid", command, privileges=False
        )
        with self.log(node).open("ab") as log:
            environment = {**os.environ, "NODE_NAME": node}
            self._running[node] = subprocess.Popen(wrapped, stdout=log, stderr=log, env=environment)

    def wait_ready(self, *, within: float = 60.0) -> None:
        """All have looked at their nodes. Pods that are there before are reported when something happens to them
        (DMN-70)."""
        deadline = time.monotonic() + within
        for node, port in self._ports.items():
            while not _is_well(port):
                assert time.monotonic() < deadline, f"{node}: {self.log(node).read_text()[-2000:]}"
                time.sleep(0.2)

    def log(self, node: str) -> Path:
        return self.cluster.directory / f"{node}-kruise-daemon.log"

    def stop(self, node: str) -> None:
        """As a crash does."""
        process = self._running.pop(node)
        process.kill()
        process.wait(20)

    def restart(self, node: str, *flags: str) -> None:
        self.stop(node)
        self.start(node, *flags)

    def stop_all(self) -> None:
        for node in tuple(self._running):
            self.stop(node)

    async def kruise(self, world: World, *arguments: str) -> tuple[int, str]:
        """What a command of ours says of the namespace of a story, and its exit code."""
        command = [sys.executable, "-m", "kruise.cli.main", *arguments, f"--namespace={world.namespace}"]
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        process = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
        )
        said, _ = await process.communicate()
        return process.returncode or 0, said.decode()

    def play(self, story: Story, name: str) -> None:
        """A story in a namespace of its own."""
        namespace = f"{name}-{uuid.uuid4().hex[:6]}"
        self.nodes.create_namespace(namespace)

        async def main() -> None:
            async with self.cluster.world(namespace) as world:
                await story(world)

        try:
            asyncio.run(main())
        finally:
            self.nodes.delete_namespace(namespace)


def _is_well(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextlib.contextmanager
def daemons_on(nodes: RealNodes, *gates: str, daemon_gates: str = "", leads: bool = False) -> Iterator[Daemons]:
    """A manager with these gates on, and a daemon on every node. Commands know a manager that `leads` by its lease."""
    flags = (
        *(() if leads else ALONE),
        "--nodeimage-creation-delay=0s",
        f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}",
    )
    with KruiseCluster(nodes, flags=flags) as cluster:
        daemons = Daemons(cluster, nodes)
        for node in nodes.nodes:
            daemons.start(node, *([f"--feature-gates={daemon_gates}"] if daemon_gates else []))
        try:
            daemons.wait_ready()
            yield daemons
        finally:
            daemons.stop_all()
            for node in nodes.nodes:
                print(f"{node}:\n{daemons.log(node).read_text()[-2000:]}")
