"""Instance directories of real test clusters: who owns them, which ports and processes belong to them.

One directory per cluster holds all its files: `instance.json` (owner and ports), `pids/` (one file per process),
logs, keys and data. The rules that keep the machine clean:

- A component of an owned instance dies with its owner, whatever kills the owner (see `childexec.py`).
- Whoever creates an instance first removes those whose owner is gone. A detached instance (`make cluster-up`) stays
  as long as one of its processes lives.
- Only a process that a pid file names and whose command line mentions the instance directory is ever killed, and what
  runs on an instance's own nodes (see `realnodes_leftovers.py`).
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support import realnodes_leftovers

# Below the range that Linux gives to outgoing connections, so that a stopped server finds its port free again.
_PORTS = range(20000, 32000)
_CHILD_EXEC = Path(__file__).with_name("childexec.py")
_KILL_SECONDS = 10.0


class InstanceError(RuntimeError):
    """An instance cannot be made, used or removed; the text names it and the remedy."""


def instances_root() -> Path:
    """The directory that holds all instances of this user; PYKRUISE_CLUSTERS overrides it."""
    chosen = os.environ.get("PYKRUISE_CLUSTERS")
    return Path(chosen).absolute() if chosen else Path(tempfile.gettempdir()) / f"pykruise-clusters-{os.getuid()}"


class Instance:
    """One instance directory. `create` makes a new one, the constructor looks at one that exists."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        record = json.loads((directory / "instance.json").read_text())
        self.detached: bool = record["detached"]
        self.owner_pid: int = record["owner_pid"]
        self._owner_start: str = record["owner_start"]
        self.ports: tuple[int, ...] = tuple(record["ports"])
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._spawner: ThreadPoolExecutor | None = None

    @classmethod
    def create(cls, *, name: str | None, ports: int, detached: bool) -> Instance:
        """Removes stale instances, then makes a new one with `ports` ports that no other instance has."""
        name = name or f"{os.getpid()}-{random.SystemRandom().randrange(16**6):06x}"
        with _locked_root() as root:
            _remove_stale(root)
            directory = root / name
            if directory.exists():
                raise InstanceError(f"cluster instance {name} exists already in {directory}: stop it first")
            taken = {port for other in _instances(root) for port in other.ports}
            record = {
                "detached": detached,
                "owner_pid": os.getpid(),
                "owner_start": _start_time(os.getpid()),
                "ports": _free_ports(ports, taken),
            }
            directory.mkdir(mode=0o700)
            (directory / "pids").mkdir()
            (directory / "instance.json").write_text(json.dumps(record))
            return cls(directory)

    @property
    def name(self) -> str:
        return self.directory.name

    def owner_alive(self) -> bool:
        return _start_time(self.owner_pid) == self._owner_start

    def running(self) -> dict[str, int]:
        """Names and pids of the processes that live."""
        found = {}
        for file in sorted((self.directory / "pids").glob("*.pid")):
            try:
                pid = int(file.read_text())
            except FileNotFoundError:
                # The component was stopped between the listing and the reading.
                continue
            if self._is_ours(pid):
                found[file.stem] = pid
        return found

    def log_path(self, component: str) -> Path:
        return self.directory / f"{component}.log"

    def log_tail(self, component: str, lines: int = 25) -> str:
        try:
            text = self.log_path(component).read_text(errors="replace")
        except FileNotFoundError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def spawn(self, component: str, command: Sequence[str | Path], environment: dict[str, str] | None = None) -> int:
        """Starts a component with its output appended to its log. Returns its pid."""
        if self.exit_code(component) is None and component in self._children:
            raise InstanceError(f"{component} of cluster {self.name} runs already")
        if self._spawner is None:
            # The kernel ties a child to the thread that made it, not to the process. One thread that lives as long
            # as the instance makes them all, so that callers may come from short-lived threads.
            self._spawner = ThreadPoolExecutor(1, thread_name_prefix=f"cluster-{self.name}")
        child = self._spawner.submit(self._spawn, component, [str(each) for each in command], environment).result()
        self._children[component] = child
        return child.pid

    def exit_code(self, component: str) -> int | None:
        """The exit code of a component that this object started and that ended, else None."""
        child = self._children.get(component)
        return child.poll() if child else None

    def stop(self, component: str, *, grace: float = 0.0) -> None:
        """Ends a component that this object started: SIGTERM and up to `grace` seconds, then SIGKILL."""
        child = self._children.pop(component, None)
        if child is None:
            return
        if grace > 0:
            child.terminate()
            try:
                child.wait(grace)
            except subprocess.TimeoutExpired:
                child.kill()
        else:
            child.kill()
        child.wait()
        (self.directory / "pids" / f"{component}.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        """Kills what runs in this instance, at once, and removes its directory. Nothing in it is worth a clean end."""
        self._end_processes()
        # Under the lock, so that no cleaner takes the half-removed directory for a stale one.
        with _locked(self.directory.parent):
            shutil.rmtree(self.directory)

    def _end_processes(self) -> None:
        for child in self._children.values():
            child.kill()
        for child in self._children.values():
            child.wait()
        self._children.clear()
        if self._spawner is not None:
            self._spawner.shutdown()
            self._spawner = None
        self._kill_recorded()
        realnodes_leftovers.remove(self.directory)

    def _spawn(self, component: str, command: list[str], environment: dict[str, str] | None) -> subprocess.Popen[bytes]:
        pid_file = self.directory / "pids" / f"{component}.pid"
        with self.log_path(component).open("ab") as log:
            return subprocess.Popen(
                _child_exec(pid_file, 0 if self.detached else os.getpid(), command),
                cwd=self.directory,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for the tests; they stop the cluster in their own order.
                start_new_session=True,
            )

    def _kill_recorded(self) -> None:
        deadline = time.monotonic() + _KILL_SECONDS
        # A process that ends loses its command line first, and its ports and files later.
        ending: dict[int, str] = {}
        while (running := self.running()) or ending:
            for pid in running.values():
                if (started := _start_time(pid)) is not None:
                    ending[pid] = started
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise InstanceError(f"processes of cluster {self.name} do not end after SIGKILL: {running or ending}")
            time.sleep(0.02)
            ending = {pid: started for pid, started in ending.items() if _start_time(pid) == started}

    def _is_ours(self, pid: int) -> bool:
        try:
            command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            return False
        # The slash keeps instance `a` from taking the processes of instance `ab`. A zombie has no command line.
        return os.fsencode(self.directory) + b"/" in command_line


def in_life_of_this_process(pid_file: Path, command: Sequence[str], *, privileges: bool = True) -> list[str]:
    """The same command as a child that dies with the thread that starts it, and so with this process. Without
    `privileges` it has no capability, also as root, and can gain none."""
    return _child_exec(pid_file, os.getpid(), command, privileges=privileges)


def _child_exec(pid_file: Path, owner: int, command: Sequence[str], *, privileges: bool = True) -> list[str]:
    kept = "same" if privileges else "none"
    return [sys.executable, "-I", "-S", str(_CHILD_EXEC), str(pid_file), str(owner), kept, *command]


def list_instances() -> list[Instance]:
    with _locked_root() as root:
        return list(_instances(root))


def remove_stale() -> list[str]:
    """Removes instances whose owner died; returns their names."""
    with _locked_root() as root:
        return _remove_stale(root)


def find_instance(name: str) -> Instance | None:
    with _locked_root() as root:
        return next((each for each in _instances(root) if each.name == name), None)


def _remove_stale(root: Path) -> list[str]:
    removed = []
    for directory in sorted(path for path in root.iterdir() if path.is_dir()):
        try:
            instance = Instance(directory)
        except (FileNotFoundError, json.JSONDecodeError):
            # Directory and record are made under the root's lock, so this is one whose maker died in between.
            shutil.rmtree(directory)
            continue
        if instance.owner_alive() or (instance.detached and instance.running()):
            continue
        instance._end_processes()
        shutil.rmtree(directory)
        removed.append(instance.name)
    return removed


def _instances(root: Path) -> Iterator[Instance]:
    for directory in sorted(path for path in root.iterdir() if path.is_dir()):
        # Without a record its maker died early; the next start removes it.
        if (directory / "instance.json").exists():
            yield Instance(directory)


@contextmanager
def _locked_root() -> Iterator[Path]:
    root = instances_root()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if root.stat().st_uid != os.getuid():
        raise InstanceError(f"{root} belongs to another user: set PYKRUISE_CLUSTERS to a directory of your own")
    with _locked(root):
        yield root


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    with (root / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _free_ports(count: int, taken: set[int]) -> list[int]:
    ports: list[int] = []
    # Instances of other users are not in `taken`; a random order makes meeting them unlikely, binding shows the rest.
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if len(ports) == count:
            return ports
        if port not in taken and _can_bind(port):
            ports.append(port)
    raise InstanceError(f"no {count} free ports between {_PORTS.start} and {_PORTS.stop}")


def _can_bind(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def _start_time(pid: int) -> str | None:
    """Tells two processes with the same pid apart."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name in parentheses may contain spaces; field 22 is the 20th after it.
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in ("Z", "X") else rest[18]
