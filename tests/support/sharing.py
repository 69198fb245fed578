"""Clusters that all workers of a test run share: started once, when the first test asks, and ended with the run.

    keeper = Keeper()                  # in the process that pytest was started in, which outlives all workers
    shared = Shared(keeper.address)    # in any of them
    shared.real_nodes()                # joined, not owned: nobody can kill or restart it
    shared.kruise_on_nodes()           # the same with PyKruise and a manager with default settings
    keeper.close()

The keeper owns the processes, so they die with it, however it ends (see `instances.py`). A worker asks by a socket.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
from collections.abc import Mapping
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.realcluster import ClusterError
from tests.support.realnodes import RealNodes

NODES = 3


class Keeper:
    """Starts `nodes` or `kruise` when it is asked to, and answers with its directory, or with what went wrong."""

    def __init__(self) -> None:
        self._life = contextlib.ExitStack()
        # A socket without a file: nothing is left of it, however this process ends.
        self.address = f"\0pykruise-{os.getpid()}-{uuid.uuid4().hex}"
        self._listener = Listener(self.address, "AF_UNIX")
        self._one_at_a_time = threading.Lock()
        self.groups: dict[str, str] = {}
        """Tests that stay together, by their ids: each worker tells all of them when it has collected."""
        self._started: dict[str, RealNodes | KruiseCluster] = {}
        self._failed: dict[str, str] = {}
        threading.Thread(target=self._serve, name="keeper", daemon=True).start()

    def close(self) -> None:
        """Ends all that was started."""
        with self._one_at_a_time:
            self._listener.close()
            self._life.close()

    def _serve(self) -> None:
        while True:
            try:
                connection = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection:
            request = json.loads(connection.recv_bytes())
            if "groups" in request:
                self.groups.update(request["groups"])
                connection.send_bytes(b"{}")
                return
            try:
                with self._one_at_a_time:
                    answer = {"directory": str(self._get(request["start"]).directory)}
            except Exception as error:  # noqa: BLE001 - whoever asked fails with it
                answer = {"wrong": f"{type(error).__name__}: {error}"}
            connection.send_bytes(json.dumps(answer).encode())

    def _get(self, name: str) -> RealNodes | KruiseCluster:
        if name in self._failed:
            raise ClusterError(f"it could not be started before: {self._failed[name]}")
        if name not in self._started:
            try:
                self._started[name] = self._life.enter_context(self._make(name))
            except Exception as error:
                self._failed[name] = str(error)
                raise
        return self._started[name]

    def _make(self, name: str) -> RealNodes | KruiseCluster:
        if name == "nodes":
            return RealNodes(nodes=NODES, audit=True)
        nodes = self._get("nodes")
        assert isinstance(nodes, RealNodes)
        return KruiseCluster(nodes, flags=ALONE)


class Shared:
    """What the keeper at `address` has, as one worker sees it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._nodes: RealNodes | None = None

    def real_nodes(self) -> RealNodes:
        if self._nodes is None:
            self._nodes = RealNodes(nodes=NODES, audit=True).join(self._started("nodes"))
        return self._nodes

    def kruise_on_nodes(self) -> KruiseCluster:
        nodes = self.real_nodes()
        return KruiseCluster(nodes).join(self._started("kruise"))

    def send_groups(self, groups: Mapping[str, str]) -> None:
        self._send({"groups": groups})

    def _started(self, name: str) -> Path:
        answer = self._send({"start": name})
        if "wrong" in answer:
            raise ClusterError(answer["wrong"])
        return Path(answer["directory"])

    def _send(self, request: Mapping[str, Any]) -> Mapping[str, str]:
        with Client(self.address, "AF_UNIX") as connection:
            connection.send_bytes(json.dumps(request).encode())
            answer: Mapping[str, str] = json.loads(connection.recv_bytes())
        return answer
