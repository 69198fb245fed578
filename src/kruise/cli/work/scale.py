"""What `kruise scale` does."""

from __future__ import annotations

import functools

import click

from kruise.api.native.pod import PODS
from kruise.cli import changing, printing
from kruise.cli.flags import Connection, Where, Writing
from kruise.cli.session import Session, run, selector_text
from kruise.faces.face import Face
from kruise.machinery.documents import Json, is_controlled_by, name_of, uid_of
from kruise.verbs import scaling
from kruise.verbs.errors import UsageError


def scale(
    words: tuple[str, ...],
    replicas: int,
    current_replicas: int,
    resource_version: str,
    where: Where,
    writing: Writing,
    connection: Connection,
) -> None:
    async def work(session: Session) -> None:
        found = await session.select(words, where)
        if resource_version and len(found) > 1:
            raise UsageError("cannot use --resource-version with multiple resources")

        def edit(kind: Face, document: Json) -> Json:
            scaling.check_precondition(kind, document, current=current_replicas, resource_version=resource_version)
            wanted = scaling.scaled(kind, document, replicas)
            scaling.must_follow(kind, wanted)
            return wanted

        write = functools.partial(session.scale, guarded=current_replicas >= 0 or bool(resource_version))
        await changing.change(session, found, writing, edit, "scaled", write=write, progress=scaling.scaling_progress)

    run(connection, work)


def scaledown(words: tuple[str, ...], pods: str, where: Where, writing: Writing, connection: Connection) -> None:
    async def work(session: Session) -> None:
        names = [part.strip() for part in pods.split(",") if part.strip()]
        target, document = await session.one(words, where, "scaledown")
        existing = []
        if target.kind.can_scale_down_by_name:
            listed = await session.items(PODS, selector=selector_text(target.kind, document))
            # A pod that is going already makes no room: another one would have to go.
            staying = [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]
            existing = [pod for pod in staying if is_controlled_by(pod, uid_of(document))]
        after = await session.change(
            target, document, lambda now: scaling.without_pods(target.kind, now, names, existing), writing
        )
        if writing.output:
            printing.show(target.kind, after or document, writing)
        elif after is None:
            click.echo(f"{target} unchanged")
        else:
            done = f"# {name_of(document)} delete pods [{' '.join(names)}] successfully"
            click.echo(f"{done}{printing.DRY_RUNS.get(writing.dry_run, '')}")
        if writing.wait and writing.dry_run == "none":
            await changing.wait(session, [(target, after or document)], writing, progress=scaling.scaling_progress)

    run(connection, work)
