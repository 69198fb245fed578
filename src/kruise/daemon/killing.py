"""Stopping a container: its preStop hook first, within the grace, then the runtime's stop (DMN-55 to DMN-59)."""

from __future__ import annotations

import asyncio
import math

from kruise.api.apps.containerrecreaterequest import Hook, HttpGetAction, Port
from kruise.daemon.kills import Kill, Killed
from kruise.daemon.parts import Scene
from kruise.daemon.patience import patiently
from kruise.daemon.runtime import CallError, Network, Runtime

SHORTEST_GRACE = 2


async def kill(scene: Scene, call: Kill) -> Killed:
    """Ends when the container has. Raises CallError, or OSError where its runtime is not here."""
    node = scene.node(call.node)
    runtime = node.runtimes.get(call.runtime) if node is not None else None
    if node is None or runtime is None:
        raise OSError(f"there is no runtime {call.runtime} on node {call.node}")
    grace, hook_error = call.grace, ""
    if call.hook is not None and grace > 0:
        began = scene.clock.monotonic()
        hook_error = await _hook(call, call.hook, runtime, node.network)
        grace -= math.floor(scene.clock.monotonic() - began)
    await _stop(scene, runtime, call.container_id, max(grace, SHORTEST_GRACE))
    return Killed(hook_error=hook_error)


async def _stop(scene: Scene, runtime: Runtime, container_id: str, grace: int) -> None:
    """A runtime that restarts is waited for: nobody is helped by a stop that failed because of it. To stop a container
    once more changes nothing, and one that is not there any more has ended."""
    try:
        await patiently(lambda: runtime.stop_container(container_id, grace), scene.clock)
    except CallError as error:
        if error.code != "NotFound":
            raise


async def _hook(call: Kill, hook: Hook, runtime: Runtime, network: Network) -> str:
    """Why the hook failed; empty where it did not, or where its time was over: then it is not waited for."""
    running = asyncio.create_task(_run_hook(call, hook, runtime, network), name=f"hook of {call.container}")
    try:
        done, _ = await asyncio.wait({running}, timeout=call.grace)
    except asyncio.CancelledError:
        running.cancel()
        raise
    if not done:
        # The runtime goes on with it until the container ends, but nobody listens any more.
        running.cancel()
        return ""
    error = running.exception()
    return _words(error) if error is not None else running.result()


async def _run_hook(call: Kill, hook: Hook, runtime: Runtime, network: Network) -> str:
    if hook.exec is not None:
        command = hook.exec.command
        answer = await runtime.exec_sync(call.container_id, command)
        if answer.exit_code == 0:
            return ""
        outputs = (part.decode(errors="replace").strip() for part in (answer.stdout, answer.stderr))
        said = "\n".join(dict.fromkeys(text for text in outputs if text))
        return f"command '{' '.join(command)}' exited with {answer.exit_code}: {said}"
    if hook.http_get is not None:
        url = url_of(hook.http_get, call.ports, call.pod_ip)
        headers = [(header.name, header.value) for header in hook.http_get.http_headers]
        http = await network.get(url, headers, float(call.grace))
        return "" if 200 <= http.status < 400 else f"GET {url} answered with status {http.status}"
    return "the hook is neither a command nor an HTTP request, so it cannot be carried out"


def url_of(action: HttpGetAction, ports: tuple[Port, ...], pod_ip: str) -> str:
    """Where a request of a hook goes to. Raises ValueError."""
    host = action.host or pod_ip
    if not host:
        raise ValueError("the address of the pod is not known")
    port = action.port
    if isinstance(port, str) and not port.isdecimal():
        found = next((item.container_port for item in ports if item.name == port), None)
        if found is None:
            raise ValueError(f"the container has no port {port!r}")
        port = found
    shown = f"[{host}]" if ":" in host else host
    path = action.path if action.path.startswith("/") else f"/{action.path}"
    return f"{(action.scheme or 'HTTP').lower()}://{shown}:{port}{path}"


def _words(error: BaseException) -> str:
    if isinstance(error, CallError | OSError | ValueError):
        return str(error) or type(error).__name__
    return f"{type(error).__name__}: {error}"
