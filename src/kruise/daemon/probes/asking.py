"""One probe of one container: what is asked of the node, and what its answer means (PRB-3 to PRB-8)."""

from __future__ import annotations

import asyncio
from urllib.parse import quote, urlsplit

from kruise.api.apps.probes import FAILED, SUCCEEDED, HttpGetAction
from kruise.daemon.kills import ending_of
from kruise.daemon.parts import Scene
from kruise.daemon.probes.calls import Ask, Found
from kruise.daemon.runtime import CallError, Container, ContainerState, Node, first_runtime
from kruise.machinery.codec import Struct, evolve

LONGEST_MESSAGE = 1024
LONGEST_OUTPUT = 10 * 1024
SLACK = 1.0
"""Seconds that a runtime has to tell that a command took too long. Fewer than the margin after which the whole probe is
given up: a command that hangs has failed."""
NANO = 1_000_000_000
CANNOT_RUN = "OCI runtime exec failed"
"""How runtimes begin to say that a container cannot run a command."""


async def perform(scene: Scene, call: Struct) -> Found:
    assert isinstance(call, Ask)
    node = scene.node(call.node)
    if node is None:
        raise CallError("Unavailable", f"node {call.node} is not here")
    container = await _newest(node, call.uid, call.container) if call.uid else None
    if container is None:
        return Found()
    started_at = call.started_at if container.id == call.container_id else 0.0
    if not started_at and container.state is ContainerState.RUNNING:
        try:
            started_at = (await first_runtime(node).container_status(container.id)).started_at / NANO
        except CallError as error:
            if error.code == "NotFound":  # removed between the two calls
                return Found()
            raise
    seen = Found(
        container_id=container.id,
        started_at=started_at,
        is_running=container.state is ContainerState.RUNNING,
        ending=ending_of(container.annotations),
    )
    if not seen.is_running:
        text = f"Container({call.container}) is Non-running"
        return evolve(seen, state=FAILED, message=text)
    age = scene.clock.now().timestamp() - seen.started_at
    # Below zero: the clock was put back since the container started.
    if 0 <= age < max(1, call.probe.initial_delay_seconds):
        return seen
    state, message = await _ask(node, container, call)
    return evolve(seen, state=state, message=message[:LONGEST_MESSAGE])


async def _newest(node: Node, uid: str, name: str) -> Container | None:
    """The newest of the name."""
    found = await first_runtime(node).list_containers(pod_uid=uid)
    return max((one for one in found if one.container_name == name), key=lambda one: one.created_at, default=None)


async def _ask(node: Node, container: Container, call: Ask) -> tuple[str, str]:
    """No state where the probe could not be made: that says nothing about the container."""
    probe = call.probe
    seconds = float(max(1, probe.timeout_seconds))
    if probe.exec is not None:
        return await _run(node, container, probe.exec.command, seconds)
    if not call.ip:
        return "", ""
    host = f"[{call.ip}]" if ":" in call.ip else call.ip
    if probe.tcp_socket is not None and isinstance(probe.tcp_socket.port, int):
        return await _connect(node, call.ip, probe.tcp_socket.port, seconds)
    if probe.http_get is not None and isinstance(probe.http_get.port, int):
        return await _get(node, host, probe.http_get, seconds)
    return "", ""


async def _run(node: Node, container: Container, command: tuple[str, ...], seconds: float) -> tuple[str, str]:
    """PRB-5."""
    late = f"command timed out: {' '.join(command)!r} took longer than {seconds:g}s"
    try:
        async with asyncio.timeout(seconds + SLACK):
            result = await first_runtime(node).exec_sync(container.id, command, seconds)
    except TimeoutError:
        return FAILED, late
    except CallError as error:
        if error.code == "DeadlineExceeded":
            return FAILED, late
        _, is_certain, reason = error.text.partition(CANNOT_RUN)
        # There is no such program, most likely. It is no word about the container, but nobody would ever hear why.
        return "", f"the command cannot be run in the container{reason}" if is_certain else ""
    if result.exit_code == 0:
        return SUCCEEDED, _text(result.stdout)
    return FAILED, _text(result.stderr)


async def _connect(node: Node, host: str, port: int, seconds: float) -> tuple[str, str]:
    """PRB-7."""
    try:
        await node.network.connect(host, port, seconds)
    except TimeoutError as error:
        return FAILED, str(error) or f"dial tcp {host}:{port}: i/o timeout"
    except OSError as error:
        return FAILED, str(error)
    return SUCCEEDED, ""


async def _get(node: Node, host: str, action: HttpGetAction, seconds: float) -> tuple[str, str]:
    """PRB-6."""
    parts = urlsplit(action.path)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    path = path if path.startswith("/") else f"/{path}"
    query = f"?{parts.query}" if parts.query else ""
    url = f"{action.scheme.lower() or 'http'}://{host}:{action.port}{path}{query}"
    names = {header.name.lower() for header in action.http_headers}
    headers = [(header.name, header.value) for header in action.http_headers]
    headers += [(name, value) for name, value in _USUAL_HEADERS if name.lower() not in names]
    try:
        answer = await node.network.get(url, headers, seconds)
    except TimeoutError as error:
        return FAILED, str(error) or f'Get "{url}": context deadline exceeded'
    except OSError as error:
        return FAILED, str(error)
    if 200 <= answer.status < 400:
        return SUCCEEDED, _text(answer.body)
    return FAILED, f"HTTP probe failed with statuscode: {answer.status}"


_USUAL_HEADERS = (("User-Agent", "kube-probe/kruise"), ("Accept", "*/*"))


def _text(data: bytes) -> str:
    return data[:LONGEST_OUTPUT].decode("utf-8", "replace")
