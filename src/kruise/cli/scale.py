"""`kruise scale` and `kruise scaledown`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where, Writing

if TYPE_CHECKING:
    from kruise.cli.session import Session


@click.command(cls=flags.Command)
@flags.words
@click.option("--replicas", required=True, type=click.IntRange(0), help="How many pods there should be.")
@click.option("--current-replicas", default=-1, help="Refuse unless so many are asked for now. -1: whatever it is.")
@click.option("--resource-version", default="", help="Refuse unless the object has this version.")
@flags.where()
@flags.writing(wait=True)
@flags.connection
def scale(
    words: tuple[str, ...],
    replicas: int,
    current_replicas: int,
    resource_version: str,
    where: Where,
    writing: Writing,
    connection: Connection,
) -> None:
    """Set the number of replicas."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.faces.face import Face
    from kruise.machinery.documents import Json
    from kruise.verbs import scaling
    from kruise.verbs.errors import UsageError

    async def work(session: Session) -> None:
        found = await session.select(words, where)
        if resource_version and len(found) > 1:
            raise UsageError("cannot use --resource-version with multiple resources")

        def edit(kind: Face, document: Json) -> Json:
            scaling.check_precondition(kind, document, current=current_replicas, resource_version=resource_version)
            return scaling.scaled(kind, document, replicas)

        write = functools.partial(session.scale, guarded=current_replicas >= 0 or bool(resource_version))
        await changing.change(session, found, writing, edit, "scaled", write=write, progress=scaling.scaling_progress)

    run(connection, work)


@click.command(cls=flags.Command)
@flags.words
@click.option("--pods", required=True, help="Names of the pods to delete, such as web-1,web-2.")
@flags.where(several=False)
@flags.writing(wait=True)
@flags.connection
def scaledown(words: tuple[str, ...], pods: str, where: Where, writing: Writing, connection: Connection) -> None:
    """Delete named pods of a CloneSet and lower its replicas by as many."""
    from kruise.api.native.pod import PODS
    from kruise.cli import changing, printing
    from kruise.cli.session import run, selector_text
    from kruise.machinery.documents import is_controlled_by, name_of, uid_of
    from kruise.verbs import scaling

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
