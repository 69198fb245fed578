"""`kruise restart`: containers of a running pod, by a ContainerRecreateRequest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kruise.cli import flags
from kruise.cli.flags import Connection

if TYPE_CHECKING:
    from kruise.cli.session import Session
    from kruise.machinery.client.requests import Request

EVERY_SECONDS = 0.25


@click.command(cls=flags.Command)
@click.argument("pod")
@click.option(
    "-c", "--container", "containers", multiple=True, help="A container to restart; without one, all of them."
)
@click.option("--ordered", is_flag=True, help="One after the other: the next when the one before is ready.")
@click.option("--force", is_flag=True, help="Also those that were replaced since, or are still starting.")
@click.option("--grace", type=click.IntRange(0), help="Seconds for hook and end of a container. The pod's by default.")
@click.option("--unready-grace", type=click.IntRange(0), help="Make the pod not ready, and stop so many seconds later.")
@click.option("--min-started", type=click.IntRange(0), help="Seconds that a new container must have run.")
@click.option("--ignore-failures", is_flag=True, help="Go on where a container cannot be stopped.")
@click.option(
    "--timeout", default=300, show_default=True, type=click.IntRange(3), help="Give up after so many seconds."
)
@click.option("--keep", default=300, show_default=True, type=click.IntRange(0), help="Seconds to keep the request for.")
@click.option("--no-wait", is_flag=True, help="Only ask for it.")
@flags.connection
def restart(
    pod: str,
    containers: tuple[str, ...],
    ordered: bool,
    force: bool,
    grace: int | None,
    unready_grace: int | None,
    min_started: int | None,
    ignore_failures: bool,
    timeout: int,
    keep: int,
    no_wait: bool,
    connection: Connection,
) -> None:
    """Restart containers of POD, and follow it until they are ready again. The pod stays, other containers run on."""
    from kruise.cli.session import run

    strategy: dict[str, Any] = {
        "failurePolicy": "Ignore" if ignore_failures else None,
        "orderedRecreate": ordered or None,
        "forceRecreate": force or None,
        "terminationGracePeriodSeconds": grace,
        "unreadyGracePeriodSeconds": unready_grace,
        "minStartedSeconds": min_started,
    }
    strategy = {name: value for name, value in strategy.items() if value is not None}
    name = pod.removeprefix("pod/").removeprefix("pods/")

    async def work(session: Session) -> None:
        from kruise.api.native.pod import PODS
        from kruise.machinery.client.requests import Request, Verb

        found = containers
        if not found:
            document = await _sent(session, Request(Verb.GET, PODS, session.namespace, name))
            found = tuple(item["name"] for item in document["spec"]["containers"])
        spec: dict[str, Any] = {"podName": name, "containers": [{"name": one} for one in found]}
        if strategy:
            spec["strategy"] = strategy
        request = await _made(
            session, name, {**spec, "activeDeadlineSeconds": timeout, "ttlSecondsAfterFinished": keep}
        )
        which = f"container {found[0]} is" if len(found) == 1 else f"{len(found)} containers are"
        click.echo(f"pod/{name}: {which} restarted by containerrecreaterequest/{request}")
        if not no_wait:
            await _followed(session, name, request, timeout)

    run(connection, work)


async def _made(session: Session, pod: str, spec: dict[str, Any]) -> str:
    import json

    from kruise.api.apps.containerrecreaterequest import REQUESTS
    from kruise.machinery.client.requests import Request, Verb

    body = {
        "apiVersion": REQUESTS.api_version,
        "kind": REQUESTS.kind,
        "metadata": {"generateName": f"{pod[:50]}-"},
        "spec": spec,
    }
    made = await _sent(session, Request(Verb.CREATE, REQUESTS, session.namespace, body=json.dumps(body).encode()))
    return str(made["metadata"]["name"])


async def _followed(session: Session, pod: str, request: str, timeout: int) -> None:
    """Tell of each container when it moves; fail where one did not make it."""
    import asyncio

    from kruise.api.apps.containerrecreaterequest import REQUESTS
    from kruise.cli.session import NotFinishedError
    from kruise.machinery.client.requests import Request, Verb
    from kruise.machinery.wording import plural

    told: dict[str, str] = {}
    ends = session.clock.monotonic() + timeout + 5
    while True:
        status = (await _sent(session, Request(Verb.GET, REQUESTS, session.namespace, request))).get("status") or {}
        states = status.get("containerRecreateStates") or []
        for state in states:
            said = _said(state)
            if said and told.get(state["name"]) != said:
                told[state["name"]] = said
                click.echo(f"{state['name']}: {said}")
        if status.get("phase") == "Completed":
            break
        if session.clock.monotonic() > ends:
            raise NotFinishedError(f"not done within {timeout} s: see kruise why crr/{request}")
        await asyncio.sleep(EVERY_SECONDS)
    done = sum(state["phase"] == "Succeeded" for state in states)
    if message := status.get("message"):
        raise click.ClickException(f"pod/{pod}: {message}; {done} of {max(len(states), 1)} containers recreated")
    if done < len(states):
        raise click.ClickException(f"pod/{pod}: {done} of {len(states)} containers recreated")
    click.echo(f"pod/{pod}: {plural(done, 'container')} recreated")


async def _sent(session: Session, request: Request) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads((await session.client.send(request)).body)
    return found


def _said(state: dict[str, Any]) -> str:
    phase, message = state["phase"], state.get("message", "")
    if phase == "Succeeded":
        return "recreated"
    if phase == "Failed":
        return f"failed: {message}"
    if phase == "Recreating" and state.get("isKilled"):
        return "stopped"
    return ""
