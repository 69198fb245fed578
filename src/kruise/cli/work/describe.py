"""What `kruise describe` does."""

from __future__ import annotations

import json

import click

from kruise.api.native.pod import PODS
from kruise.cli import terminal
from kruise.cli.deciding import Asking, explain
from kruise.cli.flags import Connection, Where
from kruise.cli.printing import yaml_text
from kruise.cli.session import Session, run, selector_text
from kruise.machinery.client.errors import ClientError
from kruise.machinery.documents import Json, namespace_of
from kruise.reasons.words import in_short
from kruise.verbs.errors import VerbError
from kruise.verbs.overview import as_data, described, overview
from kruise.verbs.targets import Target


def rollout(words: tuple[str, ...], where: Where, output: str | None, connection: Connection) -> None:
    async def work(session: Session) -> None:
        target, document = await session.one(words, where, "describe rollout")
        namespace = namespace_of(document)
        listed = await session.client.list(PODS, namespace, labels=selector_text(target.kind, document))
        revisions = await session.revisions(target, document) if target.kind.history is not None else []
        view = overview(target.kind, document, listed.items, revisions, causes=await _causes(session, target, document))
        now = session.clock.now()
        if output == "json":
            click.echo(json.dumps(as_data(view, now), indent=4))
        elif output == "yaml":
            click.echo(yaml_text(json.loads(json.dumps(as_data(view, now)))), nl=False)
        else:
            click.echo("\n".join(described(view, now, width=terminal.width())))

    run(connection, work)


async def _causes(session: Session, target: Target, document: Json) -> list[tuple[str, str]]:
    """Why pods wait, as `kruise why` finds it."""

    try:
        return in_short(await explain(session, target, document, Asking()))
    except (ClientError, VerbError):
        return []  # what it takes may not be read; everything else can be shown all the same
