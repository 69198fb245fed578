"""What `kruise setting` does."""

from __future__ import annotations

import dataclasses
import sys

import click

from kruise.cli import changing
from kruise.cli.flags import Connection, Where, Writing
from kruise.cli.session import Session, run
from kruise.cli.sources import read_source, resolved_values
from kruise.faces.face import Face
from kruise.machinery.documents import Json
from kruise.verbs import environment, identity, images, partitioning
from kruise.verbs import resources as amounts
from kruise.verbs.environment import Edits, parse_lines
from kruise.verbs.errors import UsageError
from kruise.verbs.targets import split_assignments


def image(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    async def work(session: Session) -> None:
        objects, assignments = split_assignments(words)
        wanted = images.parse(assignments)
        await changing.change_words(
            session,
            objects,
            where,
            writing,
            lambda kind, document: images.change(kind, document, wanted),
            "image updated",
        )

    run(connection, work, online=not where.local)


def env(
    words: tuple[str, ...],
    where: Where,
    containers: str,
    more: tuple[str, ...],
    source: str,
    keys: str,
    prefix: str,
    list_only: bool,
    resolve: bool,
    overwrite: bool,
    writing: Writing,
    connection: Connection,
) -> None:
    if list_only and writing.output:
        raise click.UsageError("--list and --output may not be specified together")
    if where.local and (source or resolve):
        raise click.UsageError("--local asks no server, so --from and --resolve have nothing to read from")
    if keys and not source:
        raise click.UsageError("when specifying --keys, a configmap or secret must be provided with --from")

    async def work(session: Session) -> None:
        objects, assignments = split_assignments(words, removals=True)
        if list_only:
            await _list_variables(session, objects, where, containers, resolve)
            return
        edits = environment.parse([*more, *_with_input(assignments)])
        if source:
            edits = await _with_source(session, edits, source, keys, prefix)
        if not edits:
            raise UsageError("at least one environment variable must be provided: NAME=VALUE, NAME- or --from")
        await changing.change_words(
            session,
            objects,
            where,
            writing,
            lambda kind, document: environment.change(kind, document, edits, pattern=containers, overwrite=overwrite),
            "env updated",
        )

    run(connection, work, online=not where.local)


def _with_input(assignments: list[str]) -> list[str]:
    if "-" not in assignments:
        return assignments
    read = parse_lines(sys.stdin.read())
    return [word for word in assignments if word != "-"] + read


async def _with_source(session: Session, edits: Edits, source: str, keys: str, prefix: str) -> Edits:
    wanted = tuple(part for part in keys.split(",") if part)
    entries = environment.from_source(await read_source(session, source), wanted)
    imported = environment.with_prefix(environment.Edits(entries), prefix)
    return dataclasses.replace(edits, wanted=(*edits.wanted, *imported.wanted))


async def _list_variables(session: Session, objects: list[str], where: Where, pattern: str, resolve: bool) -> None:
    found = session.local(where) if where.local else await session.select(objects, where)
    for target, document in found:
        values = await resolved_values(session, environment.sources(target.kind, document)) if resolve else {}
        for line in environment.listing(target.kind, document, pattern, values):
            click.echo(line)


def resources(
    words: tuple[str, ...],
    where: Where,
    containers: str,
    limits: str,
    requests: str,
    writing: Writing,
    connection: Connection,
) -> None:
    async def work(session: Session) -> None:
        wanted_limits, wanted_requests = amounts.parse(limits, "--limits"), amounts.parse(requests, "--requests")
        amounts.check(wanted_limits, wanted_requests)
        await changing.change_words(
            session,
            words,
            where,
            writing,
            lambda kind, document: amounts.change(
                kind, document, limits=wanted_limits, requests=wanted_requests, pattern=containers
            ),
            "resource requirements updated",
        )

    run(connection, work, online=not where.local)


def serviceaccount(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    async def work(session: Session) -> None:
        if not words:
            raise UsageError("name the workload and the service account: cloneset/web NAME")
        *objects, account = words
        await changing.change_words(
            session,
            objects,
            where,
            writing,
            lambda kind, document: identity.change_service_account(kind, document, account),
            "serviceaccount updated",
        )

    run(connection, work, online=not where.local)


def selector(
    words: tuple[str, ...], where: Where, resource_version: str, writing: Writing, connection: Connection
) -> None:
    async def work(session: Session) -> None:
        if not words:
            raise UsageError("name the Service and the selector: service/web app=web")
        *objects, expression = words
        labels = identity.parse_selector(expression)

        def edit(kind: Face, document: Json) -> Json:
            identity.check_version(kind, document, resource_version)
            return identity.change_selector(kind, document, labels)

        await changing.change_words(session, objects, where, writing, edit, "selector updated")

    run(connection, work, online=not where.local)


def partition(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    async def work(session: Session) -> None:
        if not words:
            raise UsageError("name the workload and how many pods stay behind: cloneset/web 2, or cloneset/web 40%")
        *objects, amount = words
        wanted = partitioning.parse(amount)
        await changing.change_words(
            session,
            objects,
            where,
            writing,
            lambda kind, document: partitioning.set_partition(kind, document, wanted),
            "partition updated",
        )

    run(connection, work, online=not where.local)
