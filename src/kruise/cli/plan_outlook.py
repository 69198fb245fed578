"""`kruise plan` of kinds that do not roll out: what they will do next."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import Key, controller_of
from kruise.cli import plan_reading
from kruise.cli.plan_edits import applied
from kruise.cli.session import Session
from kruise.faces.outlook import Seen
from kruise.foresight.admitting import Gatekeeper
from kruise.foresight.rendering.report import Prospect
from kruise.kinds import features
from kruise.machinery.documents import Json, namespace_of, uid_of
from kruise.machinery.zones import local_zone
from kruise.manager.options import Options
from kruise.model.world import World
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target


async def look(session: Session, target: Target, manifest: Json | None, options: Options) -> Prospect:
    """Of an object of a file as it would be stored, or of one that is there."""
    facts = target.kind.outlook_facts()
    assert facts is not None
    document, warnings = await _as_stored(session, target, manifest, options)
    uid, namespace = uid_of(document), namespace_of(document) or session.namespace
    objects: dict[Any, Any] = {}
    for resource in facts.reads(document):
        found = (await session.client.list(resource, namespace if resource.namespaced else "")).items
        if resource.namespaced and not facts.is_selecting:
            found = tuple(one for one in found if (owner := controller_of(one)) is not None and owner.uid == uid)
        objects[resource] = found
    try:
        outlook = facts.outlook(document, Seen(now=session.clock.now(), zone=local_zone(), objects=objects))
    except ValueError as error:
        raise VerbError(f"{target}: {error}") from error
    return Prospect(
        subject=str(target),
        kind=str(target.kind),
        namespace=namespace,
        name=target.name,
        outlook=outlook,
        warnings=warnings,
    )


async def _as_stored(
    session: Session, named: Target, manifest: Json | None, options: Options
) -> tuple[Json, tuple[str, ...]]:
    """The object, and what admission says beside its answer. Refuses what an API server would refuse."""
    if manifest is None:
        return await session.get(named), ()
    subject = named.kind.resource
    target, fields = plan_reading.in_its_version(session, named, manifest, subject, features())
    live = await plan_reading.find(session, target)
    changed = applied(live, manifest, namespace=target.namespace)
    gatekeeper, world = Gatekeeper(features(), options), World(session.clock.now())
    gatekeeper.enter(world)
    with plan_reading.refusing_as_a_server(fields.refusal(target.name, changed, live)):
        document = gatekeeper.admitted(subject, Key(target.namespace, target.name), changed, live, world=world)
    return document, tuple(gatekeeper.warnings)


def refuse_edits(target: Target) -> None:
    raise UsageError(f"{target} does not roll out: give a file (-f) instead of --image, --replicas and --set")
