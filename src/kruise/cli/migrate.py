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
@click.argument("to", metavar="KIND")
@click.option("--from", "source", required=True, help="The kind to take pods from.")
@click.option("--src-name", required=True, help="Name of the object to take pods from.")
@click.option("--dst-name", default="", help="Name of the object that gets them. Where pods are handed over: the same.")
@click.option("--create", is_flag=True, help="Make the CloneSet from the Deployment, without pods, and move nothing.")
@click.option("--copy", "with_replicas", is_flag=True, help="With --create: with as many pods as the Deployment has.")
@click.option("--replicas", default=-1, help="How many pods to move to the CloneSet. -1: all.")
@click.option("--max-surge", default=1, show_default=True, help="How many pods there may be on top while moving.")
@click.option("--force", is_flag=True, help="Where pods are handed over: leave fields behind that KIND does not have.")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="Gates that the manager runs with.")
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
    force: bool,
    feature_gates: str,
    timeout_seconds: int,
    writing: Writing,
    connection: Connection,
) -> None:
    """Give the pods of one workload to another.

    Between Kubernetes' StatefulSet or DaemonSet and ours (kruise migrate asts --from sts, and back) the pods stay as
    they are and get another owner. Broken off, the same command goes on.

    A CloneSet is made from a Deployment (--create), or gets its pods step by step: up to --max-surge more, and when all
    its pods are available the Deployment loses as many.

    The namespace must be named with -n.
    """
    from kruise.cli.session import run
    from kruise.faces.native import DEPLOYMENT
    from kruise.verbs import handover
    from kruise.verbs.errors import UsageError
    from kruise.verbs.lookup import find
    from kruise.workloads.cloneset.face import FACE as CLONE_SET

    gates = _gates(feature_gates)

    async def work(session: Session) -> None:
        kind, origin = find(to), find(source)
        route = handover.route(origin, kind)
        if route is None and (kind is not CLONE_SET or origin is not DEPLOYMENT):
            raise UsageError(f"{origin.label} cannot become {kind.label}. This can be migrated: {_possible()}")
        if not connection.namespace:
            raise UsageError("name the namespace with -n: a migration is too much to do in the wrong one")
        if route is not None:
            if create or with_replicas or replicas != -1:
                raise UsageError("--create, --copy and --replicas are for CloneSets: here all pods are handed over")
            if dst_name not in ("", src_name):
                raise UsageError(f"the {kind} has the name of the other one, {src_name}: so have its pods")
            from kruise.cli.handover import hand_over

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
        if force:
            raise UsageError("--force is for kinds whose pods are handed over: nothing is left behind here")
        if not dst_name:
            raise UsageError("name the CloneSet with --dst-name")
        if with_replicas and not create:
            raise UsageError("--copy goes with --create")
        if create:
            await _create(session, src_name, dst_name, with_replicas, writing)
        elif writing.dry_run != "none" or writing.output:
            raise UsageError("--dry-run and -o go with --create")
        else:
            await _move(session, src_name, dst_name, replicas, max_surge, timeout_seconds)

    run(connection, work)


def _gates(text: str) -> dict[str, bool]:
    from kruise.manager import gates

    try:
        return gates.resolve(gates.parse(text))
    except gates.FeatureGateError as error:
        raise click.UsageError(f"--feature-gates: {error}") from error


def _possible() -> str:
    from kruise import kinds

    pairs = ["clonesets.apps.kruise.io from deployments.apps"]
    for face in kinds.faces():
        other = kinds.face_of(*face.counterpart) if face.counterpart else None
        if other is not None:
            pairs.append(f"{face.resource.group_resource} from {other.resource.group_resource} and back")
    return "; ".join(pairs)


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
