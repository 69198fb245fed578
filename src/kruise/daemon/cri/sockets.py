"""Which container runtimes a node has (DMN-12, DMN-13)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

from kruise.daemon.cri.client import DIAL_SECONDS, CriRuntime
from kruise.daemon.runtime import CallError

log = logging.getLogger(__name__)

HOST_RUN = "/hostvarrun"
CANDIDATES = (
    "containerd.sock",
    "containerd/containerd.sock",
    "crio.sock",
    "crio/crio.sock",
    "cri-dockerd.sock",
    "cri-dockerd/cri-dockerd.sock",
)


class NoRuntimeError(Exception):
    """Nothing on this node speaks CRI v1."""


def candidates(directory: Path, socket_file: str = "") -> list[Path]:
    """Sockets that exist, in the order in which they are tried."""
    names = (socket_file,) if socket_file else CANDIDATES
    return [path for path in (directory / name for name in names) if path.exists()]


async def connect(directory: Path, socket_file: str = "") -> Mapping[str, CriRuntime]:
    """The runtimes that answer, by name; the first one pulls and probes. Raises NoRuntimeError."""
    paths = candidates(directory, socket_file)
    if not paths:
        where = directory / socket_file if socket_file else directory
        raise NoRuntimeError(f"not found container runtime sock: there is none at {where}")
    found: dict[str, CriRuntime] = {}
    troubles = []
    for path in paths:
        runtime = CriRuntime(str(path))
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                await runtime.connect()
        except (CallError, TimeoutError) as error:
            troubles.append(f"{path}: {str(error) or 'no answer'}")
            log.warning("no container runtime of CRI v1 here", extra={"socket": str(path), "error": str(error)})
            runtime.close()
            continue
        if runtime.name in found:
            runtime.close()  # another name of the same socket
            continue
        log.info("container runtime", extra={"socket": str(path), "runtime": runtime.name})
        found[runtime.name] = runtime
    if not found:
        raise NoRuntimeError(f"no container runtime answers: {'; '.join(troubles)}")
    return found
