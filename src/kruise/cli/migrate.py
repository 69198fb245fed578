"""`kruise migrate`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Writing

if TYPE_CHECKING:
    from kruise.cli.session import Session
    from kruise.machinery.documents import Json

_PAUSE = 1.0
"""Both objects are looked at once a second: a step takes as long as a pod needs to start."""


@click.command(cls=flags.Command)
@click.argument("to", metavar="CloneSet")
@click.option("--from", "source", required=True, help="The kind to take pods from: Deployment.")
@click.option("--src-name", required=True, help="Name of the Deployment.")
@click.option("--dst-name", required=True, help="Name of the CloneSet.")
@click.option("--create", is_flag=True, help="Make the CloneSet from the Deployment, without pods, and move nothing.")
@click.option("--copy", "with_replicas", is_flag=True, help="With --create: with as many pods as the Deployment has.")
@click.option("--replicas", default=-1, help="How many pods to move. -1: all.")
@click.option("--max-surge", default=1, show_default=True, help="How many pods there may be on top while moving.")
@click.option("--timeout-seconds", default=-1, help="Give up after this, with exit code 3. -1: never.")
@flags.writing()
@flags.connection
def migrate(
    to: str,
    source: str,
    src_name: str,
    dst_name: str,
    create: bool,
    with_replicas: bool,
    replicas: int,
    max_surge: int,
    timeout_seconds: int,
    writing: Writing,
    connection: Connection,
) -> None:
    """Make a CloneSet from a Deployment (--create), or move pods from the one to the other.

    Pods are moved step by step: the CloneSet gets up to --max-surge more, and when all its pods are available the
    Deployment loses as many. The namespace must be named with -n.
    """
    from kruise.cli.session import run
    from kruise.faces.native import DEPLOYMENT
    from kruise.verbs.errors import UsageError
    from kruise.verbs.lookup import find
    from kruise.workloads.cloneset.face import FACE as CLONE_SET

    async def work(session: Session) -> None:
        if find(to) is not CLONE_SET or find(source) is not DEPLOYMENT:
            raise UsageError("only this can be migrated: kruise migrate CloneSet --from Deployment")
        if not connection.namespace:
            raise UsageError("name the namespace with -n: a migration is too much to do in the wrong one")
        if with_replicas and not create:
            raise UsageError("--copy goes with --create")
        if create:
            await _create(session, src_name, dst_name, with_replicas, writing)
        elif writing.dry_run != "none" or writing.output:
            raise UsageError("--dry-run and -o go with --create")
        else:
            await _move(session, src_name, dst_name, replicas, max_surge, timeout_seconds)

    run(connection, work)


async def _create(session: Session, src_name: str, dst_name: str, with_replicas: bool, writing: Writing) -> None:
    from kruise.cli import printing
    from kruise.faces.native import DEPLOYMENT
    from kruise.machinery.client.errors import AlreadyExistsError
    from kruise.verbs import migration
    from kruise.verbs.errors import VerbError
    from kruise.verbs.targets import Target
    from kruise.workloads.cloneset.face import FACE as CLONE_SET

    deployment = await session.get(Target(DEPLOYMENT, src_name))
    made = migration.cloneset_from(deployment, dst_name, with_replicas=with_replicas)
    if writing.dry_run != "client":
        try:
            made = await session.create(CLONE_SET.resource, made, writing)
        except AlreadyExistsError as error:
            raise VerbError(f"{CLONE_SET.named(dst_name)} exists already: choose another --dst-name") from error
    printing.report(CLONE_SET, made, "created", writing)


async def _move(
    session: Session, src_name: str, dst_name: str, replicas: int, max_surge: int, timeout_seconds: int
) -> None:
    from kruise.cli.session import NotFinishedError
    from kruise.faces.native import DEPLOYMENT
    from kruise.verbs import migration
    from kruise.verbs.targets import Target
    from kruise.workloads.cloneset.face import FACE as CLONE_SET

    source, destination = Target(DEPLOYMENT, src_name), Target(CLONE_SET, dst_name)
    deployment, cloneset = await session.get(source), await session.get(destination)
    journey = migration.begin(deployment, cloneset, replicas=replicas, max_surge=max_surge)
    deadline = session.clock.monotonic() + timeout_seconds if timeout_seconds >= 0 else None
    told = ""
    while True:
        step = migration.next_step(journey, deployment, cloneset)
        line = f"{_count(source, deployment)}, {_count(destination, cloneset)}: {step.message}"
        if line != told:
            click.echo(line)
            told = line
        if step.is_done:
            return
        if deadline is not None and session.clock.monotonic() >= deadline:
            raise NotFinishedError(f"timed out after {timeout_seconds} s; the same command goes on from here")
        if step.raise_to is not None:
            cloneset = await _scale(session, destination, cloneset, step.raise_to)
        elif step.lower_to is not None:
            deployment = await _scale(session, source, deployment, step.lower_to)
        else:
            await asyncio.sleep(_PAUSE)
            deployment, cloneset = await session.get(source), await session.get(destination)


def _count(target: object, document: Json) -> str:
    from kruise.machinery.documents import value_at

    available = value_at(document, ("status", "availableReplicas"), 0)
    return f"{target} {available}/{value_at(document, ('spec', 'replicas'), 1)}"


async def _scale(session: Session, target: object, document: Json, replicas: int) -> Json:
    from kruise.verbs.scaling import scaled
    from kruise.verbs.targets import Target

    assert isinstance(target, Target)
    after = await session.change(target, document, lambda now: scaled(target.kind, now, replicas), Writing())
    return after or document
