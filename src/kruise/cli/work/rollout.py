"""What `kruise rollout` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from kruise.cli import changing, printing
from kruise.cli.flags import Connection, Where, Writing
from kruise.cli.following import follow, must_be_revision
from kruise.cli.reporters import reporter_for
from kruise.cli.session import Session, duration, run
from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of
from kruise.verbs import history as histories
from kruise.verbs import partitioning, pausing, restarting, template_text
from kruise.verbs.errors import VerbError
from kruise.verbs.history import Revision
from kruise.verbs.targets import Target
from kruise.verbs.undo import Rollback, roll_back


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


def history(words: tuple[str, ...], where: Where, revision: int, output: str | None, connection: Connection) -> None:
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


def undo(words: tuple[str, ...], where: Where, to_revision: int, writing: Writing, connection: Connection) -> None:
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


def promote(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    run(
        connection,
        lambda session: changing.change_words(session, words, where, writing, partitioning.promote, "promoted"),
    )


def abort(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    async def work(session: Session) -> None:
        target, document = await session.one(words, where, "rollout abort")
        await _go_back(session, target, document, partitioning.abort, writing, "aborted")

    run(connection, work)


def pause(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    _set_paused(words, where, writing, connection, pause=True)


def resume(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    _set_paused(words, where, writing, connection, pause=False)


def _set_paused(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection, *, pause: bool) -> None:
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


def restart(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
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
