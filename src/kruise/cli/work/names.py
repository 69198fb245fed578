"""Live names of objects, containers and namespaces, for shell completion.

Whoever presses Tab must not wait, and must not see an error in the middle of a command line: names come within a
second and a half, or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from kruise.api.meta import PartialObject
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.cli.flags import Connection
from kruise.cli.session import Session, connected
from kruise.faces.face import Face
from kruise.machinery.client.errors import ClientError
from kruise.operations.images.inventory import NODES, holdings
from kruise.verbs import containers, lookup
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target, pod_name

PATIENCE = 1.5
_MOST = 500


def namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _beginning(ctx, incomplete, lambda session: _plain_names(session, "namespaces", "Namespace"))


def pods(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _beginning(ctx, incomplete, lambda session: _plain_names(session, "pods", "Pod", session.namespace))


def nodes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _beginning(ctx, incomplete, lambda session: _plain_names(session, "nodes", "Node"))


def images(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of those that nodes tell of."""

    async def ask(session: Session) -> list[str]:
        page = await session.client.list_page(NODES, limit=_MOST, timeout=PATIENCE)
        return list({str(one.image) for one in holdings(page.items, ())})

    return _beginning(ctx, incomplete, ask)


async def _plain_names(session: Session, plural: str, kind: str, namespace: str = "") -> list[str]:
    resource = Resource("", "v1", plural, kind, bool(namespace), PartialObject)
    page = await session.client.list_page(resource, namespace, limit=_MOST, timeout=PATIENCE)
    return [item.metadata.name for item in page.items]


def containers_of_pod(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    words = [ctx.params.get("pod") or "", *ctx.args]  # a flag without its value keeps words from their places
    pod = pod_name(next((word for word in words if word), ""))

    async def ask(session: Session) -> list[str]:
        found = await session.client.get(PODS, pod, session.namespace, timeout=PATIENCE)
        return [container.name for container in found.spec.containers]

    return _beginning(ctx, incomplete, ask) if pod else []


def targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """`KIND/NAME` and `KIND NAME`: kinds first, then the names of their objects."""
    words = [word for word in ctx.params.get(param.name or "") or () if word]
    kind_word, slash, start = incomplete.partition("/")
    try:
        if slash:
            kind = lookup.find(kind_word)
            return [CompletionItem(f"{kind_word}/{name}") for name in _names(ctx, kind) if name.startswith(start)]
        if words and "/" not in words[0]:
            return [name for name in _names(ctx, lookup.find(words[0])) if name.startswith(incomplete)]
    except UsageError:
        return []  # the word is no kind yet
    return [CompletionItem(kind.singular) for kind in lookup.workloads() if kind.singular.startswith(incomplete)]


def targets_and_containers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """As `targets`, and behind the object the names of its containers."""
    words = [word for word in ctx.params.get(param.name or "") or () if word]
    try:
        named = _object(words)
    except UsageError:
        named = None
    if named is None:
        return targets(ctx, param, incomplete)
    if ctx.info_name != "image" or "=" in incomplete:
        return []
    kind, name = named
    found = _containers(ctx, lookup.find(kind), name)
    return [f"{container}=" for container in found if container.startswith(incomplete)]


def _object(words: list[str]) -> tuple[str, str] | None:
    if words and "/" in words[0]:
        kind, _, name = words[0].partition("/")
        return kind, name
    return (words[0], words[1]) if len(words) > 1 else None


def _names(ctx: click.Context, kind: Face) -> list[str]:
    async def ask(session: Session) -> list[str]:
        page = await session.client.list_page(kind.resource, session.namespace, limit=_MOST, timeout=PATIENCE)
        return [item.metadata.name for item in page.items]

    return _asked(ctx, ask)


def _containers(ctx: click.Context, kind: Face, name: str) -> list[str]:
    async def ask(session: Session) -> list[str]:
        return containers.names(kind, await session.get(Target(kind, name)))

    return _asked(ctx, ask)


def _beginning(ctx: click.Context, incomplete: str, ask: Callable[[Session], Awaitable[list[str]]]) -> list[str]:
    return [name for name in _asked(ctx, ask) if name.startswith(incomplete)]


def _asked(ctx: click.Context, ask: Callable[[Session], Awaitable[list[str]]]) -> list[str]:
    given = {name: value for name, value in ctx.params.items() if name in Connection.__dataclass_fields__ and value}

    async def main() -> list[str]:
        async with asyncio.timeout(PATIENCE), connected(Connection(**given)) as session:
            return sorted(await ask(session))

    try:
        return asyncio.run(main())
    except (ClientError, VerbError, TimeoutError, OSError):
        return []  # no cluster, no rights, no time: then there is nothing to offer
