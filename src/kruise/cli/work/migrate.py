"""What `kruise migrate` does."""

from __future__ import annotations

import asyncio

import click

from kruise import kinds
from kruise.cli import printing
from kruise.cli.flags import Connection, Writing
from kruise.cli.handover import hand_over
from kruise.cli.session import NotFinishedError, Session, run
from kruise.machinery.client.errors import AlreadyExistsError
from kruise.machinery.documents import Json, value_at
from kruise.manager import gates
from kruise.verbs import handover, migration
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.lookup import find
from kruise.verbs.migration import Route
from kruise.verbs.scaling import scaled
from kruise.verbs.targets import Target

_PAUSE = 1.0
"""Both objects are looked at once a second: a step takes as long as a pod needs to start."""


def migrate(
    to: str,
    source: str,
    src_name: str,
    dst_name: str,
    create: bool,
    with_replicas: bool,
    replicas: int,
    max_surge: int,
    force: bool,
    feature_gates: str,
    timeout_seconds: int,
    writing: Writing,
    connection: Connection,
) -> None:
    gates = _gates(feature_gates)

    async def work(session: Session) -> None:
        kind, origin = find(to), find(source)
        route, way = handover.route(origin, kind), migration.route(origin, kind)
        if route is None and way is None:
            raise UsageError(f"{origin.label} cannot become {kind.label}. This can be migrated: {_possible()}")
        if not connection.namespace:
            raise UsageError("name the namespace with -n: a migration is too much to do in the wrong one")
        if route is not None:
            if create or with_replicas or replicas != -1:
                raise UsageError(
                    "--create, --copy and --replicas are for pods that are made anew: here all are handed over"
                )
            if dst_name not in ("", src_name):
                raise UsageError(f"the {kind} has the name of the other one, {src_name}: so have its pods")

            await hand_over(
                session,
                route,
                src_name,
                lossy=force,
                gates=gates,
                timeout_seconds=timeout_seconds,
                writing=writing,
            )
            return
        assert way is not None
        if force:
            raise UsageError("--force is for kinds whose pods are handed over: nothing is left behind here")
        if not dst_name:
            raise UsageError(f"name the {kind} with --dst-name")
        if with_replicas and not create:
            raise UsageError("--copy goes with --create")
        if create:
            await _create(session, way, src_name, dst_name, with_replicas, writing)
        elif writing.dry_run != "none" or writing.output:
            raise UsageError("--dry-run and -o go with --create")
        else:
            await _move(session, way, src_name, dst_name, replicas, max_surge, timeout_seconds)

    run(connection, work)


def _gates(text: str) -> dict[str, bool]:
    try:
        return gates.resolve(gates.parse(text))
    except gates.FeatureGateError as error:
        raise click.UsageError(f"--feature-gates: {error}") from error


def _possible() -> str:
    pairs = []
    for face in kinds.faces():
        for group_kind, back in ((face.replaces, ""), (face.counterpart, " and back")):
            other = kinds.face_of(*group_kind) if group_kind else None
            if other is not None:
                pairs.append(f"{face.resource.group_resource} from {other.resource.group_resource}{back}")
    return "; ".join(pairs)


async def _create(
    session: Session, way: Route, src_name: str, dst_name: str, with_replicas: bool, writing: Writing
) -> None:
    source, kind = await session.get(Target(way.source, src_name)), way.destination
    made = migration.made_from(way, source, dst_name, with_replicas=with_replicas)
    if writing.dry_run != "client":
        try:
            made = await session.create(kind.resource, made, writing)
        except AlreadyExistsError as error:
            raise VerbError(f"{kind.named(dst_name)} exists already: choose another --dst-name") from error
    printing.report(kind, made, "created", writing)


async def _move(
    session: Session, way: Route, src_name: str, dst_name: str, replicas: int, max_surge: int, timeout_seconds: int
) -> None:
    source, destination = Target(way.source, src_name), Target(way.destination, dst_name)
    old, new = await session.get(source), await session.get(destination)
    journey = migration.begin(way, old, new, replicas=replicas, max_surge=max_surge)
    deadline = session.clock.monotonic() + timeout_seconds if timeout_seconds >= 0 else None
    told = ""
    while True:
        step = migration.next_step(journey, old, new)
        line = f"{_count(source, old)}, {_count(destination, new)}: {step.message}"
        if line != told:
            click.echo(line)
            told = line
        if step.is_done:
            return
        if deadline is not None and session.clock.monotonic() >= deadline:
            raise NotFinishedError(f"timed out after {timeout_seconds} s; the same command goes on from here")
        if step.raise_to is not None:
            new = await _scale(session, destination, new, step.raise_to)
        elif step.lower_to is not None:
            old = await _scale(session, source, old, step.lower_to)
        else:
            await asyncio.sleep(_PAUSE)
            old, new = await session.get(source), await session.get(destination)


def _count(target: object, document: Json) -> str:
    available = value_at(document, ("status", "availableReplicas"), 0)
    return f"{target} {available}/{value_at(document, ('spec', 'replicas'), 1)}"


async def _scale(session: Session, target: object, document: Json, replicas: int) -> Json:
    assert isinstance(target, Target)
    after = await session.change(target, document, lambda now: scaled(target.kind, now, replicas), Writing())
    return after or document
