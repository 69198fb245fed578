"""What real nodes put on the machine outside of their directory, and how all of it goes away again.

Each node's mounts, links, routes and firewall rules live in namespaces of its own and end with its last process. So
only three things are left to remove: processes, cgroups, and the one link by which the host reaches the nodes.
`nodes.json` in the instance's directory names them. It is written before the first of them is made, so that a later
run can clean up after one that was killed. Nothing that it does not name is ever touched.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_RECORD = "nodes.json"
_END_SECONDS = 20.0
_UNIFIED_ROOT = Path("/sys/fs/cgroup")


class LeftoverError(RuntimeError):
    """Something of a nodes cluster does not go away; the text names it."""


@dataclass(frozen=True)
class Footprint:
    """The names of what a cluster's nodes have outside of its directory."""

    identity: str

    @property
    def link(self) -> str:
        """The host's end of its link to the nodes. Linux allows 15 characters."""
        return f"kruise-{self.identity}"

    @property
    def cgroup(self) -> str:
        """The parent of all nodes' cgroups, below the root of each hierarchy."""
        return f"pykruise-{self.identity}"

    @classmethod
    def create(cls, directory: Path) -> Footprint:
        footprint = cls(f"{random.SystemRandom().randrange(16**6):06x}")
        (directory / _RECORD).write_text(json.dumps({"identity": footprint.identity}))
        return footprint

    @classmethod
    def find(cls, directory: Path) -> Footprint | None:
        try:
            return cls(json.loads((directory / _RECORD).read_text())["identity"])
        except FileNotFoundError:
            return None


def make_cgroups(footprint: Footprint, nodes: Iterable[str]) -> None:
    """A cgroup per node in every hierarchy, which its kubelet takes for the root; `system` below it is for daemons."""
    nodes = tuple(nodes)
    for mount in _hierarchies():
        for path in (mount / footprint.cgroup, *(mount / footprint.cgroup / node for node in nodes)):
            path.mkdir()
            for name in ("cpuset.cpus", "cpuset.mems"):
                # In the old hierarchy a new set is empty, and a process in an empty set cannot run.
                if (path / name).exists() and not (path / "cgroup.controllers").exists():
                    (path / name).write_text((path.parent / name).read_text())
            if mount == _UNIFIED_ROOT:
                _enable_controllers(path.parent)
                _enable_controllers(path)
    for node in nodes:
        system_cgroup(footprint, node).mkdir()


def system_cgroup(footprint: Footprint, node: str) -> Path:
    """Where a node's daemons live with all that they start, in one hierarchy that shows their processes."""
    mounts = list(_hierarchies())
    mount = next((each for each in mounts if each == _UNIFIED_ROOT or each.name == "pids"), mounts[0])
    return mount / footprint.cgroup / node / "system"


def processes(footprint: Footprint) -> set[int]:
    """Everything that runs on the nodes: daemons, their helpers, containers."""
    return {pid for path in _cgroups(footprint) for pid in _members(path)}


def kill_node(footprint: Footprint, node: str, *, spare: int) -> None:
    """All that runs on one node but the process that holds its namespaces."""
    deadline = time.monotonic() + _END_SECONDS
    while left := {pid for path in _cgroups(footprint, node) for pid in _members(path)} - {spare}:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LeftoverError(f"processes of {node} do not end after SIGKILL: {sorted(left)}")
        time.sleep(0.02)


def remains(footprint: Footprint) -> list[str]:
    """What is still there, in words; empty after a good clean-up."""
    found = [f"process {pid}" for pid in sorted(processes(footprint))]
    found += [f"cgroup {path}" for path in _cgroups(footprint)]
    if Path(f"/sys/class/net/{footprint.link}").exists():
        found.append(f"link {footprint.link}")
    return found


def remove(directory: Path) -> None:
    """Ends and removes all that the nodes of the instance in `directory` have elsewhere. Does nothing without nodes."""
    footprint = Footprint.find(directory)
    if footprint is None:
        return
    deadline = time.monotonic() + _END_SECONDS
    while True:
        for pid in processes(footprint):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _remove_cgroups(footprint)
        # The namespace of the other end may live a little longer than its processes.
        if Path(f"/sys/class/net/{footprint.link}").exists():
            subprocess.run(["ip", "link", "delete", footprint.link], capture_output=True, check=False)
        left = remains(footprint)
        if not left:
            return
        if time.monotonic() > deadline:
            raise LeftoverError(f"left behind by the nodes in {directory}: {', '.join(left)}")
        time.sleep(0.02)


def _hierarchies() -> Iterator[Path]:
    """Mount points of all cgroup hierarchies, old and new."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        if rest.split()[0] in ("cgroup", "cgroup2"):
            yield Path(fields.split()[4])


def _cgroups(footprint: Footprint, node: str = "") -> list[Path]:
    """Children before their parents; those of one node, if it is named."""
    found: list[Path] = []
    for mount in _hierarchies():
        for directory, _, _ in os.walk(mount / footprint.cgroup / node, topdown=False):
            found.append(Path(directory))
    return found


def _members(cgroup: Path) -> list[int]:
    try:
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    except OSError:
        # The cgroup went away meanwhile, or is of a threaded kind that has no such list.
        return []


def _remove_cgroups(footprint: Footprint) -> None:
    for path in _cgroups(footprint):
        try:
            path.rmdir()
        except OSError:
            # Its last process is not quite gone; the caller comes again.
            continue


def _enable_controllers(path: Path) -> None:
    offered = (path / "cgroup.controllers").read_text().split()
    control = path / "cgroup.subtree_control"
    on = control.read_text().split()
    for name in offered:
        if name not in on:
            control.write_text(f"+{name}")
