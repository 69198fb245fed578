"""Where a running local cluster leaves its traces: kubeconfig, pid and address, under the user's state directory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from kruise.machinery.codec import DecodeError, Struct, decode, encode

_POLL_SECONDS = 0.05


class StateError(RuntimeError):
    """The state directory cannot be used; the text says why and what to do."""


class StateInUseError(StateError):
    """Another process starts, runs or ends a cluster here."""


class Running(Struct):
    """A cluster that was started and has not said that it ended."""

    pid: int
    url: str
    started: str
    process_start: str = ""
    """When the kernel started the process, in its own count: a pid alone may have been given to another since."""
    context: str = ""
    """What it is called in the user's kubeconfig; empty: it is kept apart from it."""
    merged_into: str = ""
    """The user's kubeconfig that holds the context."""


def directory(environment: Mapping[str, str] = os.environ) -> Path:
    base = environment.get("KRUISE_STATE") or ""
    if base:
        return Path(base).absolute()
    state = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kruise"


class State:
    """The traces of one cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kubeconfig = path / "kubeconfig"
        self.log = path / "cluster.log"
        self._record = path / "cluster.json"
        self._lock = path / "lock"

    def prepare(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StateError(
                f"{self.path} cannot be made: {error.strerror}. Set KRUISE_STATE to another place."
            ) from error

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Whoever changes the traces holds them: a cluster from before its start until its end. The kernel lets go of
        them when the process ends, in whatever way. Raises `StateInUseError` where somebody else holds them."""
        self.prepare()
        with contextlib.ExitStack() as ends:
            try:
                lock = ends.enter_context(self._lock.open("a"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self.in_use() from None
            except OSError as error:
                raise StateError(
                    f"{self._lock} cannot be locked: {error.strerror}. Set KRUISE_STATE to another place."
                ) from error
            yield

    def in_use(self) -> StateInUseError:
        found = self.running()
        if found is None:
            return StateInUseError("a local cluster is starting or ending right now: kruise status tells when it is up")
        return StateInUseError(
            f"a local cluster is running already at {found.url} (pid {found.pid}): kruise down ends it"
        )

    def write(self, running: Running, kubeconfig: str) -> None:
        """Leave the traces. Nothing half-written stays behind when the disk is full."""
        for path, content in ((self.kubeconfig, kubeconfig.encode()), (self._record, encode(running))):
            fresh = path.with_name(path.name + ".new")
            try:
                with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                    file.write(content)
                fresh.replace(path)
            except OSError as error:
                fresh.unlink(missing_ok=True)
                raise StateError(
                    f"{path} cannot be written: {error.strerror}. Make room or set KRUISE_STATE."
                ) from error

    def running(self) -> Running | None:
        """The cluster that runs right now, if any. Traces of one that died are no answer."""
        found = self.recorded()
        return found if found is not None and process_start(found.pid) == found.process_start else None

    def recorded(self) -> Running | None:
        """The cluster that left its traces here, also one that died without an end."""
        try:
            return decode(self._record.read_bytes(), Running)
        except (OSError, DecodeError):
            return None

    def clear(self) -> None:
        for path in (self._record, self.kubeconfig):
            path.unlink(missing_ok=True)

    def stop(self, timeout: float = 10.0) -> bool:
        """End the running cluster in order, by force where it does not listen. False: none was running. Its traces
        may stay."""
        found = self.running()
        if found is None:
            return False
        for number, patience in ((signal.SIGTERM, timeout), (signal.SIGKILL, timeout)):
            try:
                os.kill(found.pid, number)
            except ProcessLookupError:
                break
            if _gone(found, time.monotonic() + patience):
                break
        return True


def _gone(running: Running, deadline: float) -> bool:
    while time.monotonic() < deadline:
        if process_start(running.pid) != running.process_start:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def process_start(pid: int) -> str:
    """Empty where there is no such process (or it has ended and only waits to be noticed)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return "" if Path("/proc/self").exists() else _alive(pid)
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def _alive(pid: int) -> str:
    """Without /proc the pid has to do."""
    try:
        os.kill(pid, 0)
    except OSError:
        return ""
    return "alive"
