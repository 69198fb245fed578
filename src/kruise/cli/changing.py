"""What verbs that change objects have in common: change each, tell it, go on after a failure, wait if asked to."""

from __future__ import annotations

import functools
import sys
from collections.abc import Awaitable, Callable, Sequence

import click

from kruise.cli import printing
from kruise.cli.flags import Where, Writing
from kruise.cli.following import follow
from kruise.cli.reporters import Lines, reporter_for
from kruise.cli.session import Session, duration, explained
from kruise.faces.face import Face
from kruise.faces.progress import Progress
from kruise.machinery.client.errors import ClientError
from kruise.machinery.documents import Json
from kruise.verbs import ended
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target

Edit = Callable[[Face, Json], Json]
Write = Callable[[Target, Json, Callable[[Json], Json], Writing], Awaitable[Json | None]]


async def change_words(
    session: Session, words: Sequence[str], where: Where, writing: Writing, edit: Edit, operation: str
) -> None:
    """Find the objects that a command names, and change them."""
    if where.local:
        if writing.dry_run == "server":
            raise UsageError("cannot specify --local and --dry-run=server - did you mean --dry-run=client?")
        if not where.filenames or words:
            raise UsageError("--local works on files: name them with -f, and name no objects")
        for index, (target, document) in enumerate(session.local(where)):
            printing.report(target.kind, edit(target.kind, document), operation, writing, follows=index > 0)
        return
    await change(session, await session.select(words, where), writing, edit, operation)


async def change(
    session: Session,
    found: Sequence[tuple[Target, Json]],
    writing: Writing,
    edit: Edit,
    operation: str,
    *,
    write: Write | None = None,
    progress: Callable[[Progress], Progress] | None = None,
) -> None:
    """Change objects that were read. `write` sends a change, where that is not the usual patch; `progress` puts into
    other words how far it is."""
    failures: list[Exception] = []
    changed: list[tuple[Target, Json]] = []
    for index, (target, document) in enumerate(found):
        try:
            ended.must_go_on(target.kind, document)
            after = await (write or session.change)(target, document, functools.partial(edit, target.kind), writing)
        except (VerbError, ClientError) as error:
            failures.append(error)
            continue
        if after is None and not writing.output:
            click.echo(f"{target} unchanged")
        else:
            printing.report(target.kind, after or document, operation, writing, follows=index > 0)
        changed.append((target, after or document))
    if failures:
        if len(found) == 1:
            raise failures[0]
        for failure in failures:
            click.echo(f"error: {explained(failure)}", err=True)
        raise click.ClickException(f"{len(failures)} of {len(found)} objects could not be changed")
    if writing.wait and writing.dry_run == "none":
        await wait(session, changed, writing, progress=progress)


async def wait(
    session: Session,
    changed: Sequence[tuple[Target, Json]],
    writing: Writing,
    *,
    progress: Callable[[Progress], Progress] | None = None,
) -> None:
    """Follow the rollouts one after the other. What `-o` prints stays alone on the standard output."""
    timeout = duration(writing.timeout, "--timeout")
    for target, document in changed:
        if target.kind.progress is None:
            raise UsageError(f"--wait: {target} has no rollout to follow")
        reporter = Lines(stream=sys.stderr) if writing.output else reporter_for(target, session.clock)
        await follow(session, target, document, reporter, timeout=timeout, progress=progress)
