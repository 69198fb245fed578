"""What a plan is made of, read from the cluster: the object, its change, and everything that decides about it.

Only `get` and `list`. What may not be read, and can be done without, is told instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kruise.admission.inventory import MUTATING
from kruise.api.meta import Key, PartialObject
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.cli.plan_edits import applied
from kruise.cli.plan_fields import Fields
from kruise.cli.plan_objects import plannable
from kruise.cli.session import Session
from kruise.faces.face import Face
from kruise.feature import Feature, Settings, converters_of
from kruise.foresight import needed
from kruise.foresight.errors import ForesightError
from kruise.foresight.needs import Need
from kruise.foresight.rendering.report import Drift, Drifted
from kruise.foresight.subjects import facts_of
from kruise.machinery import codec
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import Raw
from kruise.machinery.documents import Json
from kruise.machinery.wording import with_article
from kruise.verbs.errors import VerbError
from kruise.verbs.targets import Target

_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False, PartialObject)
_SLIM_PODS = Resource(PODS.group, PODS.version, PODS.plural, PODS.kind, True, PartialObject)

_ON_NODES = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"

Edit = Callable[[Fields, Json], Json]
Versions = dict[str, str]
"""The resourceVersion of each object by its name."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What somebody wants to know: an object, and what is to change in it."""

    target: Target
    manifest: Json | None
    edit: Edit
    subject: Resource[Any]
    """In the version that is stored."""
    fields: Fields


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that a forecast needs."""

    question: Question
    key: Key
    live: Json | None
    """In the version of the question; None: it does not exist yet."""
    changed: Json
    objects: Mapping[Resource[Any], Sequence[Any]]
    needs: tuple[Need, ...]
    server_version: Any
    notes: tuple[str, ...]

    @property
    def pods(self) -> Sequence[Any]:
        return self.objects.get(PODS, ())


def question_of(
    session: Session, named: Target, manifest: Json | None, edit: Edit, features: Sequence[Feature]
) -> Question:
    """Refuses kinds that nobody can plan for, and versions that they do not have."""
    kind = named.kind
    if not kind.forecast:
        one = with_article(str(kind))
        why = f"nobody can foresee {one}" if kind.is_ours else f"Kubernetes itself decides about {one}"
        raise VerbError(f"{named} cannot be planned: {why}. Plans are for {plannable()}")
    subject = facts_of(kind.resource).resource
    target, fields = in_its_version(session, named, manifest, subject, features)
    return Question(target=target, manifest=manifest, edit=edit, subject=subject, fields=fields)


def in_its_version(
    session: Session, named: Target, manifest: Json | None, subject: Resource[Any], features: Sequence[Feature]
) -> tuple[Target, Fields]:
    """The object in the version in which it is written, and the fields that it has there. Refuses other fields."""
    version = subject.version if manifest is None else str(manifest["apiVersion"]).rpartition("/")[2]
    fields = Fields(_definition(features, subject), version)
    if manifest is not None:
        fields.check(manifest)
    where = (named.namespace or session.namespace) if subject.namespaced else ""
    return dataclasses.replace(named, kind=_in_version(named.kind, version), namespace=where), fields


def _definition(features: Sequence[Feature], subject: Resource[Any]) -> Mapping[str, Any]:
    for feature in features:
        for one in feature.definitions:
            if (one["spec"]["group"], one["spec"]["names"]["kind"]) == (subject.group, subject.kind):
                return one
    raise VerbError(f"{with_article(subject.kind)} cannot be planned: the code of its controller is not here")


def _in_version(kind: Face, version: str) -> Face:
    return dataclasses.replace(kind, resource=dataclasses.replace(kind.resource, version=version))


async def read(session: Session, question: Question, *, features: Sequence[Feature], settings: Settings) -> Situation:
    target, manifest = question.target, question.manifest
    live: Json | None
    if manifest is None:
        base = live = await session.get(target)
    else:
        live = await find(session, target)
        base = applied(live, manifest, namespace=target.namespace)
    changed = question.edit(question.fields, base)
    needs = needed(question.subject, live or changed, features=features, settings=settings)
    objects, notes = await read_all(session, needs)
    if live is not None:
        own = _stored(live, question.subject, features)
        others = [one for one in objects.get(question.subject, ()) if one.metadata.name != target.name]
        objects[question.subject] = (own, *others)
    return Situation(
        question=question,
        key=Key(target.namespace, target.name),
        live=live,
        changed=changed,
        objects=objects,
        needs=needs,
        server_version=await _server_version(session),
        notes=tuple(notes),
    )


async def find(session: Session, target: Target) -> Json | None:
    """The object as it is; None where it could be made."""
    live = await session.find(target)
    if live is None and target.namespace:
        await _check_namespace(session, target.namespace)
    return live


@contextlib.contextmanager
def refusing_as_a_server(refused: str) -> Iterator[None]:
    """An API server asks the webhooks that change objects, then checks the object itself, then asks the others.

    `refused` is what the check of the object itself says; empty: nothing.
    """
    try:
        yield
    except ForesightError as error:
        is_first = any(f'"{entry.name}"' in str(error) for entry in MUTATING)
        raise VerbError(str(error) if is_first or not refused else refused) from error
    if refused:
        raise VerbError(refused)


async def _check_namespace(session: Session, name: str) -> None:
    try:
        await session.client.get(_NAMESPACES, name)
    except ForbiddenError:
        return  # then its being there is taken for granted
    except NotFoundError as error:
        raise VerbError(f'namespace "{name}" not found; make it first: kubectl create namespace {name}') from error


async def read_all(session: Session, needs: Iterable[Need]) -> tuple[dict[Resource[Any], Sequence[Any]], list[str]]:
    async with asyncio.TaskGroup() as group:
        tasks = [(need, group.create_task(_read_one(session, need))) for need in needs]
    objects: dict[Resource[Any], Sequence[Any]] = {}
    notes: list[str] = []
    for need, task in tasks:
        found = task.result()
        if isinstance(found, ClientError):
            raise found
        if isinstance(found, str):
            notes.append(found)
        elif found is not None:
            objects[need.resource] = found
    return objects, notes


async def _read_one(session: Session, need: Need) -> Sequence[Any] | str | ClientError | None:
    """The objects; None where the cluster does not serve the kind; a text where the plan does without it.

    Errors are answers as well: raised, they would come out of the group wrapped.
    """
    try:
        return (await session.client.list(need.resource, need.namespace, labels=need.selector)).items
    except NotFoundError as error:
        return None if need.optional else error
    except ForbiddenError as error:
        plural = need.resource.plural
        if need.shapes_pods:
            return f"no right to list {plural}: what they change in new pods is not in this plan"
        if need.places_pods:
            return f"no right to list {plural}: every node is taken to reach every volume"
        if need.resource.namespaced:
            # What may be missing altogether is done without; the notes tell of budgets that nobody could look at.
            return None if need.optional else error
        room = "room on nodes was not looked at, and every new pod is taken to find a node"
        return f"no right to list {plural}: {room if need.resource == NODES else 'the plan does without them'}"
    except ClientError as error:
        return error


async def _server_version(session: Session) -> Any:
    try:
        return await session.client.server_version()
    except ClientError:
        return None  # some clusters hide it; then it counts as a new one


def _stored(live: Json, subject: Resource[Any], features: Sequence[Feature]) -> Any:
    raw = converters_of(features).convert(Raw(codec.encode(live)), subject.api_version)
    return codec.decode(raw, subject.type)


# Who else is on the nodes?


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What takes room on the nodes."""

    pods: tuple[Pod, ...] = ()
    notes: tuple[str, ...] = ()


class Others:
    """The pods of the whole cluster: read once, and only when somebody asks."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._taken: Taken | None = None

    async def read(self) -> Taken:
        if self._taken is None:
            self._taken = await self._read()
        return self._taken

    async def _read(self) -> Taken:
        try:
            found = await self._session.client.list(PODS, fields=_ON_NODES)
        except ForbiddenError:
            note = "no right to list the pods of all namespaces: the room that others take on nodes was not counted"
            return Taken(notes=(note,))
        return Taken(pods=found.items)


# Has anything changed since?


async def drifted(session: Session, situation: Situation) -> tuple[Drifted, ...]:
    """The subject and the pods that are not any more as they were read."""
    target = situation.question.target
    was = "" if situation.live is None else str(situation.live["metadata"].get("resourceVersion", ""))
    found = await _drift_of_subject(session, target, was)
    for need in situation.needs:
        if need.resource == PODS and PODS in situation.objects:
            listed = await session.client.list(_SLIM_PODS, need.namespace, labels=need.selector)
            found += _drift(_versions(situation.pods), _versions(listed.items))
    return tuple(found)


async def _drift_of_subject(session: Session, target: Target, before: str) -> list[Drifted]:
    request = Request(Verb.GET, target.kind.resource, target.namespace, target.name)
    try:
        seen = codec.decode((await session.client.send(request)).body, PartialObject)
    except NotFoundError:
        return [Drifted(object=str(target), how=Drift.GONE)] if before else []
    if not before:
        return [Drifted(object=str(target), how=Drift.APPEARED)]
    if seen.metadata.resource_version != before:
        return [Drifted(object=str(target), how=Drift.CHANGED)]
    return []


def _versions(objects: Iterable[Any]) -> Versions:
    return {one.metadata.name: one.metadata.resource_version for one in objects}


def _drift(before: Versions, after: Versions) -> list[Drifted]:
    found = []
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            found.append(Drifted(object=f"pod/{name}", how=Drift.GONE))
        elif name not in before:
            found.append(Drifted(object=f"pod/{name}", how=Drift.APPEARED))
        elif before[name] != after[name]:
            found.append(Drifted(object=f"pod/{name}", how=Drift.CHANGED))
    return found
