"""What `kruise journal` does."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kruise.api.meta import Key
from kruise.api.resource import Resource
from kruise.cli.flags import Connection
from kruise.cli.journal_access import Dump, NotKeptError, bounds, entries, latest_dump
from kruise.cli.printing import is_terminal, note
from kruise.cli.session import Session, run
from kruise.faces.face import Face
from kruise.kinds import face_of
from kruise.machinery.client.errors import ClientError
from kruise.machinery.journal import CAPACITY, ReplayError
from kruise.machinery.redaction import redacted
from kruise.replaying import specs
from kruise.verbs import decisions, lookup
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target

_POLL_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Whose decisions are wanted. No kind: of everything; no name: of everything of that kind."""

    kind: Face | None = None
    name: str = ""
    namespace: str = ""
    controllers: tuple[str, ...] = ()

    @property
    def is_one(self) -> bool:
        return bool(self.name)

    def __str__(self) -> str:
        return self.kind.named(self.name) if self.kind is not None else ""


def journal(
    words: tuple[str, ...],
    limit: int,
    wanted: str,
    follow: bool,
    dump: str,
    redact: bool,
    output: str | None,
    manager_url: str,
    connection: Connection,
) -> None:
    async def work(session: Session) -> None:
        asked = _asked(words, session, connection)
        if redact and not dump:
            raise UsageError("--redact is about what --dump writes: say where with --dump FILE")
        if dump:
            if not asked.is_one:
                raise UsageError(
                    "--dump is about one object: name it, for example kruise journal cloneset/web --dump -"
                )
            await _dump(session, asked, dump, redact, manager_url)
        elif follow:
            if wanted:
                raise UsageError("--id shows one decision: it cannot be followed")
            await _follow(session, asked, limit, output, manager_url)
        elif wanted:
            await _show(session, asked, wanted, output, manager_url)
        else:
            await _list(session, asked, limit, output, manager_url)

    run(connection, work)


# What is asked for


def _asked(words: Sequence[str], session: Session, connection: Connection) -> _Asked:
    if not words:
        return _Asked(namespace=connection.namespace)
    if len(words) > 2 or ("/" in words[0] and len(words) > 1):
        raise UsageError("journal takes one object: KIND/NAME, or none for all of them")
    word, slash, name = words[0].partition("/")
    name = name if slash else "".join(words[1:])
    if (slash and not name) or "/" in name:
        raise UsageError(f'"{words[0]}" is no KIND/NAME, for example cloneset/web')
    kind, controllers = _controllers(word)
    namespace = session.namespace if name else connection.namespace
    return _Asked(
        kind=kind, name=name, namespace=namespace if kind.resource.namespaced else "", controllers=controllers
    )


def _controllers(word: str) -> tuple[Face, tuple[str, ...]]:
    """The kind that a word means, and who decides about it. Every kind that has a controller is known by itself."""

    known = specs()
    subjects = {spec.subject.group_resource: spec.subject for spec in known}
    subject = next((one for one in subjects.values() if word.lower() in _words(one)), None)
    if subject is None:
        subject = lookup.find(word).resource
    found = tuple(spec.name for spec in known if spec.subject.group_resource == subject.group_resource)
    if not found:
        names = ", ".join(sorted(one.kind for one in subjects.values()))
        raise UsageError(
            f"PyKruise decides nothing about a {subject.kind}, so there is no journal of it: only of {names}"
        )
    return face_of(subject.group, subject.kind) or Face(resource=subject), found


def _words(subject: Resource[Any]) -> tuple[str, ...]:
    names = (subject.kind.lower(), subject.plural)
    return (*names, *(f"{name}.{subject.group}" for name in names)) if subject.group else names


def _kinds_by_controller() -> Mapping[str, str]:
    return {spec.name: spec.subject.kind.lower() for spec in specs()}


# Reading


async def _entries(session: Session, asked: _Asked, limit: int, manager_url: str) -> tuple[list[dict[str, Any]], str]:
    """Newest first. Ours to sort where several controllers decide about a kind."""

    key = Key(asked.namespace, asked.name) if asked.is_one else None
    found: list[dict[str, Any]] = []
    source = ""
    for controller in asked.controllers or ("",):
        part = await entries(
            session,
            controller=controller,
            key=key,
            namespace=asked.namespace,
            limit=limit,
            manager_url=manager_url,
        )
        found += part.items
        source = part.source
    found.sort(key=lambda entry: str(entry["time"]), reverse=True)
    return found[:limit], source


async def _nothing(session: Session, asked: _Asked, source: str) -> str:
    """Why there are no entries."""

    if not asked.is_one:
        return f"{source} has made no such decision that it remembers. {bounds()}"
    gone = await _gone(session, asked)
    return gone or f"{source} has made no decision about {asked} that it remembers. {bounds()}"


async def _gone(session: Session, asked: _Asked) -> str:
    """That the object is not there, with names that are near; empty where it is there, or nobody may tell."""

    assert asked.kind is not None
    try:
        await session.get(Target(asked.kind, asked.name, asked.namespace))
    except VerbError as error:
        return str(error)
    except ClientError:
        return ""
    return ""


async def _list(session: Session, asked: _Asked, limit: int, output: str | None, manager_url: str) -> None:
    found, source = await _entries(session, asked, limit, manager_url)
    if output:
        click.echo(json.dumps(found, indent=4))
        return
    if not found:
        raise VerbError(await _nothing(session, asked, source))
    _print(found, with_object=not asked.is_one)


async def _show(session: Session, asked: _Asked, wanted: str, output: str | None, manager_url: str) -> None:
    kinds = _kinds_by_controller()
    found, source = await _entries(session, asked, CAPACITY * len(kinds), manager_url)
    matching = [entry for entry in found if str(entry["reconcile_id"]).startswith(wanted)]
    if len(matching) != 1:
        problem = f"{len(matching)} decisions have ids that begin so" if matching else "no decision has that id"
        raise VerbError(f"{source}: --id {wanted}: {problem}. {bounds()}")
    if output:
        click.echo(json.dumps(matching[0], indent=4))
    else:
        click.echo("\n".join(decisions.described(matching[0], kinds=kinds)))


async def _dump(session: Session, asked: _Asked, file: str, redact: bool, manager_url: str) -> None:
    try:
        body, source = await _latest(session, asked, manager_url)
    except NotKeptError as error:
        raise NotKeptError(await _gone(session, asked) or str(error)) from error
    if redact:
        body = _redacted(body)
    if file == "-":
        click.echo(body, nl=False)
        return
    _write(file, body)
    note(f"{source}: the latest decision about {asked} is in {file}")


async def _latest(session: Session, asked: _Asked, manager_url: str) -> tuple[bytes, str]:
    """Of the controllers that decide about the kind, the one that did so last."""

    found: list[Dump] = []
    missing: NotKeptError | None = None
    for controller in asked.controllers:
        key = Key(asked.namespace, asked.name)
        try:
            found.append(await latest_dump(session, controller, key, manager_url=manager_url))
        except NotKeptError as error:
            missing = missing or error
    if not found:
        assert missing is not None
        raise missing
    newest = max(found, key=lambda dump: dump.time)
    return newest.body, newest.source


def _redacted(body: bytes) -> bytes:
    try:
        return redacted(body, specs(), key=secrets.token_bytes(32))
    except ReplayError as error:
        raise VerbError(f"nothing was written: {error}") from error


def _write(file: str, body: bytes) -> None:
    try:
        Path(file).write_bytes(gzip.compress(body, mtime=0) if file.endswith(".gz") else body)
    except OSError as error:
        raise UsageError(f"--dump {file} cannot be written: {error.strerror or error}") from error


# Printing


def _print(found: Sequence[Mapping[str, Any]], *, with_object: bool) -> None:
    kinds = _kinds_by_controller()
    if not is_terminal():
        click.echo("\n".join(decisions.lines(found, kinds=kinds, with_object=with_object)))
        return
    from rich.console import Console
    from rich.text import Text

    from kruise.cli.drawn_tables import fitted

    rows = []
    for entry in found:
        style = "red" if decisions.is_trouble(entry) else ""
        rows.append([Text(cell, style) for cell in decisions.row(entry, kinds=kinds, with_object=with_object)])
    console = Console()
    # Only what can be long is broken; times and ids stay in one piece.
    breaking = ("ACTIONS", "HELD", "OUTCOME")
    console.print(fitted(decisions.header(with_object=with_object), rows, console, breaking=breaking))


async def _follow(session: Session, asked: _Asked, limit: int, output: str | None, manager_url: str) -> None:
    """Oldest first, as a log. The manager cannot call us, so it is asked once a second."""

    kinds = _kinds_by_controller()
    seen: set[str] = set()
    widths = [0] * len(decisions.header(with_object=not asked.is_one))

    def print_row(cells: Sequence[str]) -> None:
        widths[:] = [max(width, len(cell)) for width, cell in zip(widths, cells, strict=True)]
        click.echo("   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip())

    if not output:
        print_row(decisions.header(with_object=not asked.is_one))
    while True:
        found, _ = await _entries(session, asked, limit, manager_url)
        for entry in reversed(found):
            if str(entry["reconcile_id"]) in seen:
                continue
            seen.add(str(entry["reconcile_id"]))
            if output:
                click.echo(json.dumps(entry))
            else:
                print_row(decisions.row(entry, kinds=kinds, with_object=not asked.is_one))
        await asyncio.sleep(_POLL_SECONDS)
