"""What `kruise restart` does."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import click

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.native.pod import PODS
from kruise.cli.flags import Connection
from kruise.cli.session import NotFinishedError, Session, run
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.wording import plural, with_article
from kruise.verbs.errors import UsageError
from kruise.verbs.lookup import UnknownKindError, find
from kruise.verbs.targets import pod_name

EVERY_SECONDS = 0.25

SHORTEST_KEEP = 60
"""Seconds that a request is kept for while somebody follows it."""


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
    output: str | None,
    connection: Connection,
) -> None:
    strategy: dict[str, Any] = {
        "failurePolicy": "Ignore" if ignore_failures else None,
        "orderedRecreate": ordered or None,
        "forceRecreate": force or None,
        "terminationGracePeriodSeconds": grace,
        "unreadyGracePeriodSeconds": unready_grace,
        "minStartedSeconds": min_started,
    }
    strategy = {name: value for name, value in strategy.items() if value is not None}

    async def work(session: Session) -> None:
        name = _pod_alone(pod)

        found = tuple(dict.fromkeys(containers))
        if not found:
            document = await _sent(session, Request(Verb.GET, PODS, session.namespace, name))
            found = tuple(item["name"] for item in document["spec"]["containers"])
        spec: dict[str, Any] = {"podName": name, "containers": [{"name": one} for one in found]}
        if strategy:
            spec["strategy"] = strategy
        # Who follows it must see its end: what is not to be kept is taken away here.
        seconds = keep if no_wait else max(keep, SHORTEST_KEEP)
        spec |= {"activeDeadlineSeconds": timeout, "ttlSecondsAfterFinished": seconds}
        request = await _made(session, name, spec)
        which = f"container {found[0]} is" if len(found) == 1 else f"{len(found)} containers are"
        request_view = _RequestView(name, request, found, as_data=output is not None)
        request_view.print(f"pod/{name}: {which} restarted by containerrecreaterequest/{request}")
        if not no_wait:
            await _follow(session, request_view, timeout)
        if keep == 0 and request_view.is_over:
            await _remove(session, request)
        request_view.end(is_followed=not no_wait)

    run(connection, work)


def _pod_alone(pod: str) -> str:
    """Raises UsageError for anything that is no pod, with the command for it."""

    name = pod_name(pod)
    word, slash, of_it = name.partition("/")
    if not slash:
        return name
    try:
        kind = find(word)
    except UnknownKindError:
        kind = None
    what = f"{pod} is no pod: kruise restart restarts containers of a pod, such as pod/web-0"
    if kind is not None and kind.restart is not None:
        what += f". To make all pods of {with_article(str(kind))} anew: kruise rollout restart {kind.word}/{of_it}"
    raise UsageError(what)


class _RequestView:
    """What a person, or a program, hears of a restart."""

    def __init__(self, pod: str, request: str, containers: tuple[str, ...], *, as_data: bool) -> None:
        self.pod = pod
        self.request = request
        self.containers = containers
        self.is_over = False
        self._as_data = as_data
        self._said: dict[str, str] = {}
        self._states: list[dict[str, Any]] = []
        self._message = ""

    def print(self, text: str) -> None:
        if not self._as_data:
            click.echo(text)

    def hear(self, status: dict[str, Any]) -> None:
        self._states = status.get("containerRecreateStates") or []
        self._message = status.get("message") or ""
        self.is_over = status.get("phase") == "Completed"
        for state in self._states:
            said = _said(state)
            if said and self._said.get(state["name"]) != said:
                self._said[state["name"]] = said
                self.print(f"{state['name']}: {said}")

    def lost(self) -> None:
        """Somebody has deleted the request; what was seen of it last counts."""
        if not self.is_done:
            self._message = self._message or "the request was deleted before its end"
        self.is_over = True

    @property
    def _recreated(self) -> int:
        return sum(state["phase"] == "Succeeded" for state in self._states)

    @property
    def is_done(self) -> bool:
        return bool(self._states) and self._recreated == len(self._states) and not self._message

    def end(self, *, is_followed: bool) -> None:
        """Raises ClickException where a container did not make it."""

        if self._as_data:
            self._print_data()
        if not is_followed:
            return
        total = len(self._states) or len(self.containers)
        done = f"{self._recreated} of {total} containers recreated"
        if self._message:
            raise click.ClickException(f"pod/{self.pod}: {self._message}; {done}")
        if not self.is_done:
            raise click.ClickException(f"pod/{self.pod}: {done}")
        self.print(f"pod/{self.pod}: {plural(self._recreated, 'container')} recreated")

    def _print_data(self) -> None:
        known = {state["name"]: state for state in self._states}
        containers = [
            {
                "name": name,
                "phase": known.get(name, {}).get("phase", "Pending"),
                "message": known.get(name, {}).get("message", ""),
            }
            for name in dict.fromkeys(self.containers)
        ]
        data = {"pod": self.pod, "request": self.request, "completed": self.is_over, "message": self._message}
        click.echo(json.dumps({**data, "containers": containers}, indent=4))


def prefix_of(pod: str) -> str:
    """Of the request's name. A name of a pod may be long and have dots, and no part of a name begins with a dash."""
    return f"{pod[:50].rstrip('-.')}-"


async def _made(session: Session, pod: str, spec: dict[str, Any]) -> str:
    body = {
        "apiVersion": REQUESTS.api_version,
        "kind": REQUESTS.kind,
        "metadata": {"generateName": prefix_of(pod)},
        "spec": spec,
    }
    made = await _sent(session, Request(Verb.CREATE, REQUESTS, session.namespace, body=json.dumps(body).encode()))
    return str(made["metadata"]["name"])


async def _follow(session: Session, request_view: _RequestView, timeout: int) -> None:
    """Until it is over."""

    ends = session.clock.monotonic() + timeout + 5
    while True:
        try:
            found = await _sent(session, Request(Verb.GET, REQUESTS, session.namespace, request_view.request))
        except NotFoundError:
            request_view.lost()
            return
        request_view.hear(found.get("status") or {})
        if request_view.is_over:
            return
        if session.clock.monotonic() > ends:
            request_view.end(is_followed=False)
            raise NotFinishedError(f"not done within {timeout} s: see kruise why crr/{request_view.request}")
        await asyncio.sleep(EVERY_SECONDS)


async def _remove(session: Session, request: str) -> None:
    with suppress(NotFoundError):
        await session.client.delete(REQUESTS, request, session.namespace)


async def _sent(session: Session, request: Request) -> dict[str, Any]:
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
