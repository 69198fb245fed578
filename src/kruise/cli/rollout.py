"""`kruise rollout`: status, history, undo, pause, resume, promote, abort, restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where, Writing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kruise.cli.session import Session
    from kruise.faces.face import Face
    from kruise.machinery.documents import Json
    from kruise.verbs.history import Revision
    from kruise.verbs.targets import Target
    from kruise.verbs.undo import Rollback


@click.group(cls=flags.Group)
def rollout() -> None:
    """Follow, look back at, undo, pause, resume, promote, abort and restart rollouts.

    For CloneSets, Deployments, StatefulSets and DaemonSets. Exit codes: 0 done, 1 failed or refused, 2 wrong usage,
    3 not finished in time.
    """


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option(
    "-w", "--watch/--no-watch", default=True, help="Watch until it is done. --no-watch: exit code 3 if it is not."
)
@click.option(
    "--revision", default=0, type=click.IntRange(0), help="Fail unless this revision is the one that rolls out."
)
@click.option("--timeout", default="0", help="Give up after this time, such as 5m, with exit code 3. 0: never.")
@click.option("-d", "--detail", is_flag=True, help="List the updated pods, ready and not.")
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="One JSON event a line.")
@click.option("--plain", is_flag=True, help="Lines, even on a terminal.")
@flags.connection
def status(
    words: tuple[str, ...],
    where: Where,
    watch: bool,
    revision: int,
    timeout: str,
    detail: bool,
    output: str | None,
    plain: bool,
    connection: Connection,
) -> None:
    """Follow a rollout until it is done.

    On a terminal the view is redrawn in place; elsewhere each change is a line.
    """
    from kruise.cli.following import follow, must_be_revision
    from kruise.cli.reporters import reporter_for
    from kruise.cli.session import duration, run
    from kruise.verbs.errors import VerbError

    async def work(session: Session) -> None:
        seconds = duration(timeout, "--timeout")
        target, document = await session.one(words, where, "rollout status")
        if target.kind.progress is None:
            raise VerbError(f"{target} has no rollout: status is for workloads, such as a CloneSet or a Deployment")
        check = None
        if revision:
            check = must_be_revision(target.kind, revision, await session.revisions(target, document))
            check(document)
        reporter = reporter_for(target, session.clock, output=output or "", detail=detail, plain=plain or not watch)
        await follow(session, target, document, reporter, timeout=seconds, watch=watch, check=check)

    run(connection, work)


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("--revision", default=0, type=click.IntRange(0), help="Print the template of this revision.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "name"]), default=None, help="Print the objects.")
@flags.connection
def history(words: tuple[str, ...], where: Where, revision: int, output: str | None, connection: Connection) -> None:
    """List the revisions of a workload, or show one."""
    from kruise.cli import printing
    from kruise.cli.session import run
    from kruise.machinery.documents import name_of
    from kruise.verbs import history as histories
    from kruise.verbs import template_text

    async def work(session: Session) -> None:
        target, document = await session.one(words, where, "rollout history")
        known = await session.revisions(target, document)
        chosen = [histories.find(known, revision)] if revision else known
        if output == "name":
            # The object would have the same name for all of them.
            click.echo("".join(f"{one.object_name}\n" for one in chosen), nl=False)
            return
        if output:
            for index, one in enumerate(chosen):
                shown = histories.restored(target.kind, document, one)
                writing = Writing(output=output)
                printing.report(target.kind, shown, "", writing, follows=index > 0)
            return
        title = target.kind.named(name_of(document))
        click.echo(f"{title} with revision #{revision}" if revision else title)
        lines = template_text.described(chosen[0].pods) if revision else histories.table(known)
        click.echo("\n".join(lines))

    run(connection, work)


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("--to-revision", default=0, help="The revision to go back to. 0: the one before the newest.")
@flags.writing(wait=True)
@flags.connection
def undo(words: tuple[str, ...], where: Where, to_revision: int, writing: Writing, connection: Connection) -> None:
    """Go back to an earlier template."""
    from kruise.cli.session import run
    from kruise.verbs.undo import roll_back

    async def work(session: Session) -> None:
        for target, document in await session.select(words, where):
            await _go_back(
                session,
                target,
                document,
                lambda kind, now, known: roll_back(kind, now, known, to_revision),
                writing,
                "rolled back",
            )

    run(connection, work)


async def _go_back(
    session: Session,
    target: Target,
    document: Json,
    roll_back: Callable[[Face, Json, Sequence[Revision]], Rollback],
    writing: Writing,
    operation: str,
) -> None:
    from kruise.cli import changing, printing
    from kruise.verbs import template_text

    known = await session.revisions(target, document)
    rollback = roll_back(target.kind, document, known)
    if rollback.skipped:
        printing.report(target.kind, document, rollback.skipped, Writing(output=writing.output))
    elif writing.dry_run == "client" and not writing.output:
        first, *lines = template_text.described(rollback.revision.pods)
        click.echo("\n".join([f"{target} {first}", *lines]))
    else:
        await changing.change(
            session,
            [(target, document)],
            writing,
            lambda kind, now: roll_back(kind, now, known).changed,
            operation,
        )


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing(wait=True)
@flags.connection
def promote(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Let a rollout go on to its end.

    The partition becomes 0, and what is paused is resumed. Limits and hooks hold as before.
    """
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import partitioning

    run(
        connection,
        lambda session: changing.change_words(session, words, where, writing, partitioning.promote, "promoted"),
    )


@rollout.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@flags.writing(wait=True)
@flags.connection
def abort(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Take back a rollout that is under way.

    All pods go back to the template that was current before, those that are new already as well: the partition
    becomes 0, and what is paused is resumed. A rollout that is over is undone with `undo`.
    """
    from kruise.cli.session import run
    from kruise.verbs import partitioning

    async def work(session: Session) -> None:
        target, document = await session.one(words, where, "rollout abort")
        await _go_back(session, target, document, partitioning.abort, writing, "aborted")

    run(connection, work)


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing()
@flags.connection
def pause(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Stop a rollout where it is."""
    _set_paused(words, where, writing, connection, pause=True)


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing(wait=True)
@flags.connection
def resume(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Let a paused rollout go on."""
    _set_paused(words, where, writing, connection, pause=False)


def _set_paused(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection, *, pause: bool) -> None:
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import pausing

    run(
        connection,
        lambda session: changing.change_words(
            session,
            words,
            where,
            writing,
            lambda kind, document: pausing.change(kind, document, pause=pause),
            "paused" if pause else "resumed",
        ),
    )


@rollout.command(cls=flags.Command)
@flags.words
@flags.where()
@flags.writing(wait=True)
@flags.connection
def restart(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Make all pods of a workload anew.

    Pods of a CloneSet are recreated, even where it updates in place: the variable RESTARTED_AT changes in the
    environment of their containers. The limits of the update strategy hold, and so does the partition.
    """
    from kruise.cli import changing, printing
    from kruise.cli.session import run
    from kruise.verbs import restarting

    async def work(session: Session) -> None:
        now = session.clock.now()
        found = await session.select(words, where)
        for target, document in found:
            for text in restarting.notes(target.kind, document):
                printing.note(f"{target}: {text}")
        await changing.change(
            session, found, writing, lambda kind, document: restarting.change(kind, document, now), "restarted"
        )

    run(connection, work)
