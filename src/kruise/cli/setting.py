"""`kruise set`: image, env, resources, serviceaccount, partition, selector."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where, Writing

if TYPE_CHECKING:
    from kruise.cli.session import Session
    from kruise.verbs.environment import Edits


def _complete_assignment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from kruise.cli.completion import targets_and_containers

    return targets_and_containers(ctx, param, incomplete)


@click.group("set", cls=flags.Group)
def set_() -> None:
    """Change a workload: its images, variables, resources, service account, partition; the selector of a Service.

    Only what differs is sent, so no other field of the object is touched. `unchanged` is printed where nothing does.
    """


@set_.command(cls=flags.Command)
@click.argument("words", nargs=-1, metavar="KIND/NAME CONTAINER=IMAGE...", shell_complete=_complete_assignment)
@flags.where(local=True)
@flags.writing(wait=True, record=True)
@flags.connection
def image(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Set images of containers: kruise set image cloneset/web main=nginx:1.27. A `*` means all containers."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import images
    from kruise.verbs.targets import split_assignments

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


@set_.command(cls=flags.Command)
@click.argument("words", nargs=-1, metavar="KIND/NAME NAME=VALUE... NAME-...", shell_complete=_complete_assignment)
@flags.where(local=True)
@click.option("-c", "--containers", default="*", show_default=True, help="Containers to change; wildcards are allowed.")
@click.option("-e", "--env", "more", multiple=True, help="Another NAME=VALUE.")
@click.option("--from", "source", default="", help="Take variables from configmap/NAME or secret/NAME.")
@click.option("--keys", default="", help="With --from: only these keys, such as a,b.")
@click.option("--prefix", default="", help="With --from: what the names begin with.")
@click.option("--list", "list_only", is_flag=True, help="Print the variables and change nothing.")
@click.option("--resolve", is_flag=True, help="With --list: read values from ConfigMaps and Secrets.")
@click.option("--overwrite/--no-overwrite", default=True, help="Whether variables that are there may change.")
@flags.writing(wait=True)
@flags.connection
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
    """Set, remove (NAME-), import (--from) or list (--list) variables of containers."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import environment
    from kruise.verbs.errors import UsageError
    from kruise.verbs.targets import split_assignments

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
    from kruise.verbs.environment import parse_lines

    if "-" not in assignments:
        return assignments
    read = parse_lines(sys.stdin.read())
    return [word for word in assignments if word != "-"] + read


async def _with_source(session: Session, edits: Edits, source: str, keys: str, prefix: str) -> Edits:
    import dataclasses

    from kruise.cli.sources import read_source
    from kruise.verbs import environment

    wanted = tuple(part for part in keys.split(",") if part)
    entries = environment.from_source(await read_source(session, source), wanted)
    imported = environment.with_prefix(environment.Edits(entries), prefix)
    return dataclasses.replace(edits, wanted=(*edits.wanted, *imported.wanted))


async def _list_variables(session: Session, objects: list[str], where: Where, pattern: str, resolve: bool) -> None:
    from kruise.cli.sources import resolved_values
    from kruise.verbs import environment

    found = session.local(where) if where.local else await session.select(objects, where)
    for target, document in found:
        values = await resolved_values(session, environment.sources(target.kind, document)) if resolve else {}
        for line in environment.listing(target.kind, document, pattern, values):
            click.echo(line)


@set_.command(cls=flags.Command)
@flags.words
@flags.where(local=True)
@click.option("-c", "--containers", default="*", show_default=True, help="Containers to change; wildcards are allowed.")
@click.option("--limits", default="", help="Such as cpu=200m,memory=512Mi.")
@click.option("--requests", default="", help="Such as cpu=100m,memory=256Mi.")
@flags.writing(wait=True, record=True)
@flags.connection
def resources(
    words: tuple[str, ...],
    where: Where,
    containers: str,
    limits: str,
    requests: str,
    writing: Writing,
    connection: Connection,
) -> None:
    """Set requests and limits of containers. What is not named stays."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import resources as amounts

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


@set_.command(cls=flags.Command)
@flags.words
@flags.where(local=True)
@flags.writing(wait=True, record=True)
@flags.connection
def serviceaccount(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Set the service account of the pods: kruise set serviceaccount cloneset/web NAME."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import identity
    from kruise.verbs.errors import UsageError

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


@set_.command(cls=flags.Command)
@flags.words
@flags.where(local=True)
@click.option("--resource-version", default="", help="Refuse unless the object has this version.")
@flags.writing(record=True)
@flags.connection
def selector(
    words: tuple[str, ...], where: Where, resource_version: str, writing: Writing, connection: Connection
) -> None:
    """Set the selector of a Service: kruise set selector service web app=web,tier=front."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.faces.face import Face
    from kruise.machinery.documents import Json
    from kruise.verbs import identity
    from kruise.verbs.errors import UsageError

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


@set_.command(cls=flags.Command)
@click.argument("words", nargs=-1, metavar="KIND/NAME NUMBER|PERCENT%", shell_complete=_complete_assignment)
@flags.where(local=True)
@flags.writing(wait=True, record=True)
@flags.connection
def partition(words: tuple[str, ...], where: Where, writing: Writing, connection: Connection) -> None:
    """Set how many pods stay at their old template: kruise set partition cloneset/web 2, or 40%."""
    from kruise.cli import changing
    from kruise.cli.session import run
    from kruise.verbs import partitioning
    from kruise.verbs.errors import UsageError

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


set_.add_command(serviceaccount, "sa")
