"""A real API server with several managers at one address: one leads, all answer webhooks. Each can be killed, frozen
and started again.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from types import TracebackType

from tests.support.kruisecluster import SHORT_LEASE, KruiseCluster
from tests.support.ports import free_port


class ManyManagers(KruiseCluster):
    def __init__(self, count: int, *, flags: tuple[str, ...] = ()) -> None:
        super().__init__(flags=(*SHORT_LEASE, *flags))
        self.count = count
        self._port = 0
        self._replicas: dict[int, subprocess.Popen[bytes]] = {}

    def start_manager(self, *flags: str, wait: bool = True) -> None:
        """All of them. The first one makes the certificate that all use."""
        self._port = self._port or free_port()
        for place in range(self.count):
            self.start(place, *flags)
            if wait and not place:
                self._until_it_answers()

    def start(self, place: int, *flags: str) -> None:
        assert place not in self._replicas, f"manager {place} is running already"
        environment = {
            "WEBHOOK_HOST": "127.0.0.1",
            "WEBHOOK_PORT": str(self._port),
            "WEBHOOK_CERT_DIR": str(self.directory / "certs"),
        }
        command = [sys.executable, "-m", "tests.support.sharedport", "manager"]
        command += [f"--kubeconfig={self.manager_kubeconfig(*flags)}", "--health-probe-addr=0"]
        command += [f"--metrics-addr=127.0.0.1:{free_port()}", f"--journal-addr=127.0.0.1:{free_port()}"]
        command += [f"--protection-log-path={self.directory}", *self._flags, *flags]
        self._replicas[place] = self._spawn(f"manager-{place}", command, environment)

    def kill(self, place: int) -> None:
        """As a crash does."""
        process = self._replicas.pop(place, None)
        if process is not None:
            process.kill()
            process.wait(20)

    def freeze(self, place: int) -> None:
        self._signal(place, signal.SIGSTOP)

    def thaw(self, place: int) -> None:
        self._signal(place, signal.SIGCONT)

    def _signal(self, place: int, number: int) -> None:
        process = self._replicas.get(place)
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def keep(self) -> None:
        """What a Deployment does: those that ended are started again, such as a leader that lost its lease."""
        for place in range(self.count):
            process = self._replicas.get(place)
            if process is None or process.poll() is not None:
                self.kill(place)
                self.start(place)

    def stop_manager(self) -> None:
        for place in list(self._replicas):
            self.kill(place)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_manager()
        super().__exit__(kind, error, trace)
